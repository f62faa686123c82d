"""Whether two records hold the same run, and the settings of records older than some settings."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cohort.records.record import PLAIN, Record
from cohort.settings import DEFAULTS
from cohort.training.cell import PARTS


def settings_with_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A record's settings, with the defaults of settings and parameters that are younger than the
    record, and without parameters that no longer exist."""
    parts = {}
    for part, components in PARTS.items():
        spec = settings[part]
        is_known = spec["name"] in components
        parts[part] = components[spec["name"]].from_spec(spec).spec() if is_known else spec
    return DEFAULTS | dict(settings) | parts


def is_same(first: Record, second: Record) -> bool:
    """Whether two runs of a cell agree to the last bit, in all but provenance and measured
    times."""
    arrays, others = _untimed_arrays(first), _untimed_arrays(second)
    return (
        all(first.header[key] == second.header[key] for key in ("status", "weights_sha256"))
        and arrays.keys() == others.keys()
        and all(np.array_equal(arrays[name], others[name], equal_nan=True) for name in arrays)
    )


def _untimed_arrays(record: Record) -> dict[str, np.ndarray]:
    """All arrays of a record by path, without those of measured seconds."""
    arrays = record.history.arrays()
    for group in PLAIN:
        arrays |= {f"{group}/{name}": array for name, array in getattr(record, group).items()}
    return {path: array for path, array in arrays.items() if "/seconds" not in path}
