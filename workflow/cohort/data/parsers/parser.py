"""The base of all parsers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from cohort.core.components import Component
from cohort.data.split import Split


@dataclass(frozen=True, kw_only=True)
class Parser(Component):
    """Reads the raw files of the data set of its name, and of those that name it as their `parser`.
    Sources, checksums, sizes and scaling are facts in config/datasets.yaml."""

    in_digest: ClassVar[bool] = True
    """Whether its name is part of the digest of data sets that name it. Not if their files say all
    that it depends on."""

    @classmethod
    def of(cls, files: Sequence[str]) -> Self:
        """The parser for a data set with raw files of these names."""
        return cls()

    def parse(self, folder: Path) -> tuple[Split, ...]:
        """Read the raw files in `folder` and return the training and the test split, and then the
        publisher's validation split if there is one."""
        raise NotImplementedError
