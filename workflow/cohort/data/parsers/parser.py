"""Base class of the parsers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cohort.core.components import Component
from cohort.data.split import Split


@dataclass(frozen=True, kw_only=True)
class Parser(Component):
    """Reads the raw files of the data set of its name. Sources, checksums, sizes and scaling are
    facts in config/datasets.yaml."""

    def parse(self, folder: Path) -> tuple[Split, ...]:
        """Read the raw files in `folder` and return the training and the test split, and then the
        publisher's validation split if there is one."""
        raise NotImplementedError
