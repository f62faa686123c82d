"""What a data set's parser is: its publisher's files in, training and test samples out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cohort.core.components import Component
from cohort.data.split import Split


@dataclass(frozen=True, kw_only=True)
class Parser(Component):
    """Reads one data set's raw files. Its facts (sources, checksums, sizes, scaling) stand in config/datasets.yaml."""

    def parse(self, folder: Path) -> tuple[Split, Split]:
        """The training and the test split."""
        raise NotImplementedError
