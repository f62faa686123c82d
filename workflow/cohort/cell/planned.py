"""Plans of everything that the pipeline makes: settings, a digest of them, and a path that contains
the digest.

The driver freezes each plan in `results/plan/{digest}.json` before any job starts. A job reads that
file and no config, so editing a study does not disturb waiting jobs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError
from cohort.core.files import write_text
from cohort.core.paths import RUN_OPTIONS, plan_file
from cohort.core.sealed_json import read_sealed, to_sealed_json

DIGEST = r"k[0-9a-f]{12}"
PLAN_FIX = "start snakemake again, which writes it anew"


@dataclass(frozen=True)
class PlannedFile:
    """The plan of one file that the pipeline makes: prepared data, shards or a record."""

    path: str
    digest: str
    settings: dict[str, Any]
    science: dict[str, int]
    inputs: dict[str, str]


def digest_of(settings: Mapping[str, Any], science: Mapping[str, int]) -> str:
    """The digest of a planned file: `k` and 12 hex digits of a hash of the settings that differ
    from their defaults and of the science versions above 1."""
    bumped = {name: version for name, version in science.items() if version != 1}
    text = json.dumps(
        {"settings": settings, "science": bumped}, sort_keys=True, separators=(",", ":")
    )
    return "k" + hashlib.sha256(text.encode()).hexdigest()[:12]


def write_plan(planned: PlannedFile) -> None:
    """Write the plan file of a planned file, unless it already has the same content."""
    text = to_sealed_json(vars(planned), indent=1)
    file = plan_file(planned.digest)
    if not file.exists() or file.read_bytes() != text.encode():
        write_text(file, text, sync=False)


def read_plan(file: str | Path) -> PlannedFile:
    """Read a plan file; UserError if it is damaged or another file's plan."""
    content = read_sealed(file, "a plan file", PLAN_FIX)
    try:
        planned = PlannedFile(**content)
    except TypeError as error:
        raise UserError(f"{file}: cannot be read as a plan file ({error}); {PLAN_FIX}") from None
    if planned.digest != Path(file).stem:
        raise UserError(f"{file}: is the plan of {planned.digest}; {PLAN_FIX}")
    return planned


def check_digest(
    planned: PlannedFile, identity: Callable[[PlannedFile], Mapping[str, Any]]
) -> None:
    """Raise UserError unless the planned file's digest is that of its identity, which `identity`
    derives from its settings, and of its science versions."""
    try:
        is_right = planned.digest == digest_of(identity(planned), planned.science)
    except (KeyError, TypeError, ValueError, AttributeError):  # settings of another kind
        is_right = False
    if not is_right:
        raise UserError(
            f"{plan_file(planned.digest)}: its settings are not those of {planned.digest}; "
            f"{PLAN_FIX}"
        )


def options_of(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of each stage, by stage: everything in the config that cannot change a result."""
    keys = ("device", "trainer", "jobs_per_gpu", "checkpoint_seconds")
    train = {key: config[key] for key in keys if key in config}
    return {
        "train": train,
        "download": {
            "mirror": config.get("data_mirror", ""),
            "paths": config.get("data_paths", {}),
        },
        "request": {key: config[key] for key in ("max_runtime",) if key in config},
    }


def run_options(stage: str) -> dict[str, Any]:
    """Read the options that the driver wrote for a stage; empty if it wrote no file."""
    if not RUN_OPTIONS.exists():
        return {}
    options: dict[str, dict[str, Any]] = read_sealed(RUN_OPTIONS, "the options of jobs", PLAN_FIX)
    return options.get(stage, {})
