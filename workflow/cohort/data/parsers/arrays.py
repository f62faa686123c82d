"""A user's own data set, as `cohort data add` stores it: arrays in an .npz."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cohort.data.npz import StoredArray
from cohort.data.parsers.parser import Parser
from cohort.data.split import Blocks, Split

FILE = "arrays.npz"


@dataclass(frozen=True, kw_only=True)
class Arrays(Parser):
    """Parses an .npz of whole numbers: `x_train`, `y_train`, `x_test` and `y_test`, labels from
    0."""

    name: ClassVar[str] = "arrays"

    def parse(self, folder: Path) -> tuple[Split, ...]:
        return tuple(self._split(folder / FILE, part) for part in ("train", "test"))

    def _split(self, path: Path, part: str) -> Split:
        values = StoredArray.open(path, f"x_{part}")
        labels = StoredArray.open(path, f"y_{part}").all()
        return Split(Blocks(values.shape, values.blocks), labels)
