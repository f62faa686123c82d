"""Parsers of the publishers' files, one per data set."""

from cohort.core.components import catalog
from cohort.data.parsers.parser import Parser

PARSERS = catalog("cohort.data.parsers", Parser)

__all__ = ["PARSERS", "Parser"]
