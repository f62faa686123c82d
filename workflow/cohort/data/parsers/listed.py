"""Pictures in a zip, as a split that is decoded block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from cohort.core.errors import UserError
from cohort.data.pictures import decode_picture
from cohort.data.split import Blocks, Split
from cohort.data.zips import Zip

BLOCK = 16 << 20  # bytes of pixels decoded at once


@dataclass(frozen=True, order=True)
class ListedPicture:
    """A picture in a zip: its group, its class and its member. Parsers sort pictures, so that the
    order of the zip does not matter."""

    group: int
    label: int
    member: str


def picture_split(
    path: Path,
    listed: Sequence[ListedPicture],
    side: int,
    *,
    resize: bool = False,
    groups: bool = False,
) -> Split:
    """The split of these pictures of a zip, in this order, decoded to 3 x `side` x `side` bytes.
    With `resize` pictures may have any size, without it another one is an error; with `groups` the
    split has their groups."""

    def read() -> Iterator[np.ndarray]:
        count = max(1, BLOCK // (3 * side * side))
        with Zip(path) as archive:
            for begin in range(0, len(listed), count):
                names = [item.member for item in listed[begin : begin + count]]
                yield np.stack([decoded(archive, name) for name in names])

    def decoded(archive: Zip, name: str) -> np.ndarray:
        return decode_picture(archive.read(name), side, f"{path}: {name}", resize=resize)

    labels = np.array([item.label for item in listed], dtype=np.int64)
    numbers = np.array([item.group for item in listed], dtype=np.int64) if groups else None
    return Split(Blocks((len(listed), 3, side, side), read), labels, numbers)


def is_picture(name: str) -> bool:
    """Whether a file is a picture, judged by its name."""
    file = PurePosixPath(name.lower())
    return not file.name.startswith(".") and file.suffix in (".jpg", ".jpeg", ".png")


def number_in(names: Sequence[str], word: str, kind: str, called: str) -> int:
    """The index of a class or group in `names`; UserError if it is not among them."""
    if word not in names:
        raise UserError(f"{called}: '{word}' is not a {kind} of this data set ({', '.join(names)})")
    return names.index(word)


def root_of(names: Iterable[str], inner: str, called: str) -> str:
    """The prefix of `inner` among a zip's names, such as a top folder; UserError unless there is
    one."""
    roots = [
        name.removesuffix(inner) for name in names if name == inner or name.endswith("/" + inner)
    ]
    if len(roots) != 1:
        raise UserError(f"{called}: holds {'no' if not roots else 'more than one'} {inner}")
    return roots[0]
