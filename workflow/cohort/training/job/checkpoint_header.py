"""The facts of a checkpoint, read without PyTorch: which cell it is of and how far that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cohort.training.job.lease import CHECKPOINT, PREVIOUS

LONGEST = 10_000_000  # bytes of a header that is read


def saved_facts(folder: Path) -> dict[str, Any]:
    """The facts of the checkpoint in a state folder; none if there is none that can be read."""
    for name in (CHECKPOINT, PREVIOUS):
        try:
            with open(folder / name, "rb") as file:
                size = int.from_bytes(file.read(8), "little")
                return facts_of(file.read(min(size, LONGEST)))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return {}


def facts_of(header: bytes) -> dict[str, Any]:
    """The facts in the header of a checkpoint: digest, round, diverged, sessions."""
    facts: dict[str, Any] = json.loads(json.loads(header)["__metadata__"]["facts"])
    return facts
