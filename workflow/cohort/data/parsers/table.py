"""UCI's covertype: the kind of forest on 30 by 30 meters, from maps."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

import numpy as np

from cohort.core.errors import UserError, refusal
from cohort.core.randomness import generator
from cohort.data.parsers.parser import Parser
from cohort.data.split import Split

COLUMNS = 54  # ten numbers, then four wilderness areas and 40 soil types as zeros and ones
KINDS = 7  # of forest
SIZES = {1: 211_840, 2: 283_301}  # samples of the two kinds that are used
TEST_SHARE = 1 / 5
BLOCK = 20_000  # rows


@dataclass(frozen=True, kw_only=True)
class Covtype(Parser):
    """Parses COVTYPE's two largest of seven kinds: spruce and fir is class 0, lodgepole pine class
    1. A fifth is drawn for testing, because the publisher's split, 4 to 96, is of all seven
    kinds."""

    name: ClassVar[str] = "covtype"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        path = folder / "covtype.data.gz"
        none = np.empty((0, COLUMNS + 1), dtype=np.int16)
        table = np.concatenate([none, *(rows[rows[:, -1] <= len(SIZES)] for rows in _blocks(path))])
        values, labels = table[:, :-1], table[:, -1]
        counts = {kind: int((labels == kind).sum()) for kind in SIZES}
        if counts != SIZES:
            raise UserError(
                f"{path}: holds {counts[1]} and {counts[2]} samples of kinds 1 and 2, "
                f"but UCI's has {SIZES[1]} and {SIZES[2]}"
            )
        shuffled = generator(0, "covtype test split").permutation(len(table))
        test = np.zeros(len(table), dtype=bool)
        test[shuffled[: round(len(table) * TEST_SHARE)]] = True
        return Split(values[~test], labels[~test] - 1), Split(values[test], labels[test] - 1)


def _blocks(path: Path) -> Iterator[np.ndarray]:
    """Read the rows of the table, 54 columns and the kind, in blocks."""
    first = 1
    try:
        with gzip.open(path, "rt", encoding="ascii", errors="replace") as file:
            while lines := list(islice(file, BLOCK)):
                yield _table(path, first, lines)
                first += len(lines)
    except (EOFError, OSError, zlib.error) as error:
        if refusal(error):  # the disk's fault, not the file's
            raise
        raise UserError(f"{path}: cannot be unpacked ({error})") from None


def _table(path: Path, first: int, lines: list[str]) -> np.ndarray:
    """Parse lines; if that fails, one by one, to name the broken line."""
    texts = [line.strip() or "nothing" for line in lines]
    with contextlib.suppress(ValueError):
        table = np.loadtxt(texts, np.int16, delimiter=",", comments=None, ndmin=2)
        kinds = table[:, -1]
        if table.shape[1] == COLUMNS + 1 and kinds.min() >= 1 and kinds.max() <= KINDS:
            return table
    if len(lines) == 1:
        row = f"{COLUMNS} whole numbers and a kind of forest, 1 to {KINDS}"
        raise UserError(
            f"{path}: line {first} is broken ({row}, with commas between them, are expected)"
        )
    return np.concatenate(
        [_table(path, first + number, [line]) for number, line in enumerate(lines)]
    )
