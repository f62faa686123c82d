"""The description of a data set's samples in config/datasets.yaml, which is part of the digest of
its prepared file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cohort.data.parsers import PARSERS, parser_name

DatasetInfo = Mapping[str, Any]
"""An entry of config/datasets.yaml."""

DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(
        ("shape", "classes", "groups", "train", "test", "validation", "scale", "mean", "std")
    ),
    "standardized": None,
    "kind": "images",
    "generated": False,
    "parser": None,
}
"""Every key of an entry that describes samples, with the defaults of the optional ones."""


def sample_info(info: DatasetInfo) -> dict[str, Any]:
    """The settings of a data set's entry that describe its samples, without those at their
    defaults: a new optional key does not change the digests of prepared data."""
    return {
        key: info[key] for key, default in DEFAULTS.items() if info.get(key, default) != default
    }


def sample_identity(dataset: str, info: DatasetInfo) -> dict[str, Any]:
    """The settings from which, with its files' checksums, a prepared data set's digest is made."""
    identity = {"dataset": dataset} | sample_info(info)
    if not PARSERS[parser_name(dataset, info)].in_digest:
        del identity["parser"]
    return identity
