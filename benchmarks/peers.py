"""Other frameworks, each pinned in its own virtual environment (`make bench-peers`)."""

from __future__ import annotations

import os
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = {"flower": "Flower", "pfl": "pfl", "blazefl": "BlazeFL"}


def python_of(peer: str, environments: Path = HERE / ".environments") -> Path | None:
    """The Python interpreter of a peer's virtual environment; None if it is not installed."""
    folder = environments / peer
    return folder / "bin/python" if (folder / "ready").exists() else None


def pins(peer: str) -> str:
    """The peer's pinned packages except torch and numpy, as "flwr 1.41.0, ray 2.55.1"."""
    lines = (HERE / "peers" / f"{peer}.txt").read_text().split()
    return ", ".join(
        re.sub(r"(\[.*\])?==", " ", line)
        for line in lines
        if not line.startswith(("torch", "numpy"))
    )


def environment(tree: Path = ROOT) -> dict[str, str]:
    """Environment variables with which a process imports `cohort` and `benchmarks` from a tree. In
    this one what PYTHONPATH already names comes after them; another must not fall back on it."""
    named = os.environ.get("PYTHONPATH", "").split(":") if tree == ROOT else []
    places = [str(tree), str(tree / "workflow"), *named]
    return os.environ | {"PYTHONPATH": ":".join(folder for folder in places if folder)}
