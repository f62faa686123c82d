"""Parsers of the publishers' files."""

from collections.abc import Mapping
from typing import Any

from cohort.core.components import Catalog
from cohort.data.parsers import arrays, pictures, text
from cohort.data.parsers.parser import Parser

PARSERS = Catalog(
    "cohort.data.parsers",
    Parser,
    (
        arrays.Arrays,
        arrays.Cifar10,
        arrays.Cifar10Unit,
        arrays.Cifar100,
        arrays.Cifar100Coarse,
        arrays.Digits,
        arrays.FashionMnist,
        arrays.MedMnist,
        arrays.Mnist,
        pictures.BrainTumorMri,
        pictures.BrainTumorMri224,
        pictures.Cinic10,
        pictures.DigitsDg,
        pictures.Pacs,
        pictures.TinyImageNet,
        text.Covtype,
        text.Shakespeare,
        text.ShakespeareCentral,
        text.ShakespeareCsv,
    ),
)


def parser_name(dataset: str, info: Mapping[str, Any]) -> str:
    """The name of a data set's parser: that of its entry's key `parser`, or the data set's own."""
    return str(info.get("parser") or dataset)
