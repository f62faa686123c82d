"""Parsers of the publishers' files, one per data set."""

from cohort.core.components import Catalog
from cohort.data.parsers.parser import Parser

PARSERS = Catalog("cohort.data.parsers", Parser)

__all__ = ["PARSERS", "Parser"]
