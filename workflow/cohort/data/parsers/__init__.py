"""Parsers of the publishers' files, and what config/datasets.yaml says of their samples."""

from collections.abc import Mapping
from typing import Any

from cohort.core.components import Catalog
from cohort.data.parsers import arrays, pictures, text
from cohort.data.split import Parser

DatasetInfo = Mapping[str, Any]
"""An entry of config/datasets.yaml."""

PARSERS = Catalog("cohort.data.parsers", Parser, (
    arrays.Arrays, arrays.Cifar10, arrays.Cifar10Unit, arrays.Cifar100, arrays.Cifar100Coarse,
    arrays.Digits, arrays.FashionMnist, arrays.MedMnist, arrays.Mnist,
    pictures.BrainTumorMri224, pictures.Cinic10, pictures.DigitsDg, pictures.Pacs,
    pictures.TinyImageNet, text.Covtype, text.Shakespeare, text.ShakespeareCentral,
))  # fmt: skip


_KEYS = ("shape", "classes", "groups", "train", "test", "validation", "scale", "mean", "std")
DEFAULTS: dict[str, Any] = dict.fromkeys((*_KEYS, "standardized"))
DEFAULTS |= {"kind": "images", "parser": None}
"""The keys of an entry that describe samples, part of the digest of prepared data, and defaults."""


def parser_name(dataset: str, info: DatasetInfo) -> str:
    """The name of a data set's parser: that of its entry's key `parser`, or the data set's own."""
    return str(info.get("parser") or dataset)


def sample_settings(info: DatasetInfo) -> dict[str, Any]:
    """The settings of a data set's entry that describe its samples, without those at their
    defaults: a new optional key does not change the digests of prepared data."""
    return {key: info[key] for key, value in DEFAULTS.items() if info.get(key, value) != value}


def sample_identity(dataset: str, info: DatasetInfo) -> dict[str, Any]:
    """The settings from which, with its files' checksums, a prepared data set's digest is made."""
    identity = {"dataset": dataset} | sample_settings(info)
    if not PARSERS[parser_name(dataset, info)].in_digest:
        identity.pop("parser", None)
    return identity
