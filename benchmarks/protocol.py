"""How a variant's process is told to go on: one word a line on its standard input, one word a line back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import numpy as np

READY, SAVED = "ready", "saved"
GO, SAVE = "go", "save"

Answer = Callable[[], np.ndarray]
"""What came of the rounds so far: all weights in one row, or what was found out."""


class Channel:
    """The variant's end. What else is printed in its process goes to standard error."""

    def __init__(self) -> None:
        self._replies = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # so that last words come last

    def wait(self, answer: Answer) -> bool:
        """Say that the work so far is done, then wait for the word to go on; False when there is no more to do."""
        print(READY, file=self._replies)
        for line in sys.stdin:
            word, _, path = line.strip().partition(" ")
            if word == GO:
                return True
            if word == SAVE:
                np.save(path, answer())
                print(SAVED, file=self._replies)
        return False


def serve(step: Callable[[], object], answer: Answer) -> None:
    """One step for each word to go on."""
    channel = Channel()
    while channel.wait(answer):
        step()
