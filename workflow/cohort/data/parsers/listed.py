"""Pictures that lie in a zip, as a split that is decoded block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from cohort.core.errors import UserError
from cohort.data.pictures import picture
from cohort.data.split import Blocks, Split
from cohort.data.zips import Zip

BLOCK = 16 << 20  # bytes of the pixels that are decoded at once


@dataclass(frozen=True, order=True)
class Listed:
    """One picture: whose group and class it is of, and the member that holds it. Sorted, a set does not depend on the order of its zip."""

    group: int
    label: int
    member: str


def split_of(
    path: Path, listed: Sequence[Listed], side: int, *, resize: bool = False, groups: bool = False
) -> Split:
    """The pictures in this order, as channels x `side` x `side`."""

    def read() -> Iterator[np.ndarray]:
        count = max(1, BLOCK // (3 * side * side))
        with Zip(path) as archive:
            for begin in range(0, len(listed), count):
                members = [item.member for item in listed[begin : begin + count]]
                yield np.stack(
                    [
                        picture(archive.read(name), side, f"{path}: {name}", resize=resize)
                        for name in members
                    ]
                )

    labels = np.array([item.label for item in listed], dtype=np.int64)
    numbers = np.array([item.group for item in listed], dtype=np.int64) if groups else None
    return Split(Blocks((len(listed), 3, side, side), read), labels, numbers)


def is_picture(name: str) -> bool:
    """By its name."""
    return not PurePosixPath(name).name.startswith(".") and name.lower().endswith(
        (".jpg", ".jpeg", ".png")
    )


def number_in(names: Sequence[str], word: str, kind: str, called: str) -> int:
    """The place of a class or group among those that there are."""
    if word not in names:
        raise UserError(f"{called}: '{word}' is no {kind} of this data set ({', '.join(names)})")
    return names.index(word)


def root_of(names: Iterable[str], inner: str, called: str) -> str:
    """What comes before `inner` in a zip, whose files may or may not lie in a folder of their own."""
    found = [
        name.removesuffix(inner) for name in names if name == inner or name.endswith("/" + inner)
    ]
    if len(found) != 1:
        raise UserError(f"{called}: holds {'no' if not found else 'more than one'} {inner}")
    return found[0]
