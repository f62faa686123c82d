"""The protocol between driver and worker: one word per line on the worker's stdin and stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import numpy as np

READY, SAVED = "ready", "saved"
GO, SAVE = "go", "save"

Answer = Callable[[], np.ndarray]
"""Returns the result so far as a vector: all weights, or the metrics."""


class Channel:
    """The worker's end. Anything else that the worker prints goes to stderr."""

    def __init__(self) -> None:
        self._replies = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        # Keeps stdout and stderr in order, so that an error message is the last line of the log.
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]

    def wait(self, answer: Answer) -> bool:
        """Report the last round as done, then wait; return False when there are no more rounds."""
        print(READY, file=self._replies)
        for line in sys.stdin:
            command, _, path = line.strip().partition(" ")
            if command == GO:
                return True
            if command == SAVE:
                np.save(path, answer())
                print(SAVED, file=self._replies)
        return False


def serve(step: Callable[[], object], answer: Answer) -> None:
    """Run `step` once for each round that the driver asks for; return when it hangs up."""
    channel = Channel()
    while channel.wait(answer):
        step()
