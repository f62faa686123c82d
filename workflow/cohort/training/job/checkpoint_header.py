"""The header of a checkpoint, read without PyTorch: which cell it is of and how far that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cohort.training.job.lease import CHECKPOINT, PREVIOUS

LONGEST = 10_000_000  # bytes of a header that is read


def saved_header(folder: Path) -> dict[str, Any]:
    """The header of the checkpoint in a state folder; empty if none can be read."""
    for name in (CHECKPOINT, PREVIOUS):
        try:
            with open(folder / name, "rb") as file:
                size = int.from_bytes(file.read(8), "little")
                return header_of(file.read(min(size, LONGEST)))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return {}


def header_of(head: bytes) -> dict[str, Any]:
    """Parse the digest, round, diverged and sessions of a checkpoint from the head of its file."""
    fields: dict[str, Any] = json.loads(json.loads(head)["__metadata__"]["facts"])
    return fields
