"""Parsers of the publishers' files: one file each."""

from collections.abc import Mapping
from typing import Any

from cohort.core.components import Catalog
from cohort.data.parsers.arrays import Arrays
from cohort.data.parsers.brain_tumor import BrainTumorMri, BrainTumorMri224
from cohort.data.parsers.cifar import Cifar10, Cifar10Unit, Cifar100, Cifar100Coarse
from cohort.data.parsers.cinic10 import Cinic10
from cohort.data.parsers.digits import Digits
from cohort.data.parsers.domains import DigitsDg, Pacs
from cohort.data.parsers.medmnist import MedMnist
from cohort.data.parsers.mnist import FashionMnist, Mnist
from cohort.data.parsers.parser import Parser
from cohort.data.parsers.table import Covtype
from cohort.data.parsers.text import Shakespeare, ShakespeareCentral, ShakespeareCsv
from cohort.data.parsers.tiny_imagenet import TinyImageNet

PARSERS = Catalog(
    "cohort.data.parsers",
    Parser,
    (
        Arrays,
        BrainTumorMri,
        BrainTumorMri224,
        Cifar10,
        Cifar10Unit,
        Cifar100,
        Cifar100Coarse,
        Cinic10,
        Covtype,
        Digits,
        DigitsDg,
        FashionMnist,
        MedMnist,
        Mnist,
        Pacs,
        Shakespeare,
        ShakespeareCentral,
        ShakespeareCsv,
        TinyImageNet,
    ),
)

__all__ = ["PARSERS", "Parser", "parser_name"]


def parser_name(dataset: str, info: Mapping[str, Any]) -> str:
    """The name of a data set's parser: that of its entry's key `parser`, or the data set's own."""
    return str(info.get("parser") or dataset)
