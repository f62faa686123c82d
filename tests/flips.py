"""Flip single bits of a file, and see what its reader makes of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError


def flip_bits(file: Path, read: Callable[[], Any], times: int, seed: int = 0) -> Counter[str]:
    """Flip one random bit at a time; count how often the reader refuses the file in a sentence that
    names it, and how often it reads the same as before. Anything else is an error."""
    whole, expected = file.read_bytes(), repr(read())
    rng, outcomes = random.Random(seed), Counter[str]()
    for _ in range(times):
        bit = rng.randrange(8 * len(whole))
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        try:
            actual = repr(read())
        except UserError as error:
            assert file.stem in str(error) and "snakemake again" in str(error), error
            outcomes["refused"] += 1
        else:
            assert actual == expected, f"bit {bit} of {file} is believed"
            outcomes["the same"] += 1
    file.write_bytes(whole)
    return outcomes
