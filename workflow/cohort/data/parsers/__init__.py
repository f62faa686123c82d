"""Parsers of the publishers' files."""

from collections.abc import Mapping
from typing import Any

from cohort.core.components import Catalog
from cohort.data.parsers.parser import Parser

PARSERS = Catalog("cohort.data.parsers", Parser)


def parser_name(dataset: str, info: Mapping[str, Any]) -> str:
    """The name of a data set's parser: that of its entry's key `parser`, or the data set's own."""
    return str(info.get("parser") or dataset)
