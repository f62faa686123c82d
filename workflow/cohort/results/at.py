"""At which rounds of a run a value is taken: a word, a round, or a range of rounds."""

import math
import re
from typing import Any

from cohort.core.errors import UserError

WORDS = {
    "last": "last evaluation",
    "max": "highest evaluation",
    "min": "lowest evaluation",
    "mean": "mean of all evaluations",
    "last-10": "mean of the last ten rounds",
}
RANGE = r"[1-9][0-9]*-[1-9][0-9]*"
SIMPLE = "last, max, min, mean, last-10, a round"
AT_HELP = f"{SIMPLE}, or a range such as 21-30 (the mean of these rounds)"
AT_SCHEMA: dict[str, Any] = {"minimum": 1, "pattern": rf"^({'|'.join(WORDS)}|{RANGE})$"}

# A run whose last evaluation is before this share of a round has no value at that round.
ENDED_EARLY = 0.9


def rounds_of(at: int | str, share: float = 1.0) -> tuple[int, int] | None:
    """The first and the last round of an `at`, a round or a range of rounds; None for a word.

    In a run of a share of its full rounds, ten rounds become this share of ten, one at least. A
    single round begins at 1, because the last evaluation up to it counts.
    """
    text = str(at)
    if text.isdigit():
        return 1, max(1, round(int(text) * share))
    if not re.fullmatch(RANGE, text):
        return None
    first, last = map(int, text.split("-"))
    end = max(1, round(last * share))
    before = math.floor(round((first - 1) * share, 9))  # rounding: 100 * 0.29 is 28.999...
    return min(before + 1, end), end


def scaled_at(at: int | str, share: float) -> int | str:
    """The `at` for a run that trains a share of its rounds: `21-30` becomes `3-3` for a tenth."""
    rounds = rounds_of(at, share)
    if rounds is None:
        return at
    return rounds[1] if str(at).isdigit() else f"{rounds[0]}-{rounds[1]}"


def at_in_words(at: int | str) -> str:
    """`at` in words, for the notes of tables."""
    first, _, last = str(at).partition("-")
    text = f"mean of rounds {first} to {last}" if last else f"evaluation of round {first}"
    return WORDS.get(str(at), text)


def check_at(at: int | str, rounds: int, owner: str) -> None:
    """Raise UserError if `at` is a range that runs backwards, or if the runs of `owner`, which have
    this many rounds, end before it."""
    limits = rounds_of(at)
    first, _, last = str(at).partition("-")
    if first.isdigit() and last.isdigit() and int(first) > int(last):
        raise UserError(f"at is '{at}', a range that ends before it begins")
    if limits and rounds < ENDED_EARLY * limits[1]:
        raise UserError(f"at is {at}, but {owner} end after {rounds} rounds")
