"""Tiny files in the formats of Gutenberg's text and UCI's covertype."""

import gzip
from collections.abc import Iterable, Mapping

import numpy as np

ROW_SETS = ("shakespeare", "shakespeare-central", "covtype")
FOREST = (37, 50, 6, 1, 2, 3, 4)  # rows per kind
SAID = {
    "THE_TEMPEST_SON": "What is this, a tempest, or what else is it that I hear? " * 3,
    "CYMBELINE_SON": "No, it is " * 14,
}
HEAD = """The Project Gutenberg EBook of The Complete Works of William Shakespeare, by
William Shakespeare

1609

THE SONNETS

by William Shakespeare

  POET. This role stands before the plays
  POET. and is not among them,
  POET. because they begin later.
"""


def gutenberg(plays: Mapping[str, Iterable[str]]) -> str:
    """Each play's title, two lines above the author, and its lines."""
    parts = [
        f"\n1600\n\n{title}\n\nby William Shakespeare\n\n\n"
        + "".join(f"{line}\n" for line in lines)
        for title, lines in plays.items()
    ]
    return HEAD + "\n\n".join(["", *parts])


def samples(text_by_user: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """User, 80 characters and the next one, user by user."""
    return [
        (user, text[begin : begin + 80], text[begin + 80])
        for user, text in text_by_user.items()
        for begin in range(len(text) - 80)
    ]


def forest(*sizes: int, seed: int = 0) -> np.ndarray:
    """Rows as UCI's: ten numbers, one of them negative at times, one of four areas, one of 40 soils, the kind."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(np.repeat(np.arange(1, len(sizes) + 1), sizes))
    numbers = rng.integers(
        [1859, 0, 0, 0, -173, 0, 0, 0, 0, 0],
        [3859, 361, 67, 1398, 602, 7118, 255, 255, 255, 7174],
        (len(kinds), 10),
    )
    areas, soils = (
        np.eye(count, dtype=int)[rng.integers(0, count, len(kinds))] for count in (4, 40)
    )
    return np.column_stack([numbers, areas, soils, kinds])


def lines(rows: np.ndarray) -> list[str]:
    """The rows as UCI writes them."""
    return [",".join(map(str, row)) + "\n" for row in rows.tolist()]


def row_contents(dataset: str) -> dict[str, bytes]:
    """The file that a data set's parser reads, by name."""
    if dataset == "covtype":
        return {"covtype.data.gz": gzip.compress("".join(lines(forest(*FOREST))).encode(), mtime=0)}
    plays = (("THE TEMPEST", SAID["THE_TEMPEST_SON"]), ("CYMBELINE", SAID["CYMBELINE_SON"]))
    return {
        "raw_data.txt": gutenberg(
            {title: [f"  SON. {text}", *["    "] * 2, "  NOBODY. "] for title, text in plays}
        ).encode()
    }


def row_counts(dataset: str) -> dict[str, int]:
    """How many samples each split holds."""
    if dataset == "covtype":
        return {"train": 70, "test": 17}
    count = len(samples(SAID))
    test = round(count / (10 if dataset == "shakespeare-central" else 20))
    return {"train": count - test, "test": test}
