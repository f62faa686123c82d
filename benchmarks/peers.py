"""The other programs: each at a pinned version in an environment of its own, which `make bench-peers` makes."""

from __future__ import annotations

import os
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = {"flower": "Flower", "pfl": "pfl", "fedlab": "FedLab"}


def python_of(peer: str, environments: Path = HERE / ".environments") -> Path | None:
    """The interpreter of a peer's environment, if it was made."""
    folder = environments / peer
    return folder / "bin/python" if (folder / "ready").exists() else None


def pins(peer: str) -> str:
    """The packages of a peer and their versions, torch's aside."""
    lines = (HERE / "peers" / f"{peer}.txt").read_text().split()
    return ", ".join(
        re.sub(r"(\[.*\])?==", " ", line)
        for line in lines
        if not line.startswith(("torch", "numpy"))
    )


def environment(tree: Path = ROOT) -> dict[str, str]:
    """Environment variables of a variant's process: it imports `cohort` and `benchmarks` from this source tree."""
    return os.environ | {"PYTHONPATH": f"{tree}:{tree / 'workflow'}"}
