"""The scratch memory of generated code."""

from __future__ import annotations

from cohort.native.target import CACHE_LINE, Target


class Arena:
    """Allocates arrays in one block of memory, counted in numbers, each on a cache line."""

    def __init__(self, target: Target):
        self.used, self._line = 0, CACHE_LINE // target.size

    def allocate(self, count: int) -> int:
        """Reserve room for `count` numbers and return the offset of the first."""
        start = self.used
        self.used += -(-count // self._line) * self._line
        return start
