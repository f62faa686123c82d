"""Which card of a machine trains a cell: each card has some slots, and a cell holds one of them while it trains.

A slot is a locked file, and a lock dies with its process. The files lie in the system's temporary directory and bear the cards' own names,
so that all processes of a user on a machine agree: those of several working directories, and those that see other cards. A cell that finds
no free slot waits for one. Meanwhile it holds a core of Snakemake's `--cores`, which does no harm: who trained there would need a card too.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import torch

from cohort.core.errors import UserError, explained

LOOK_SECONDS = 0.5  # between two looks for a free slot


@contextlib.contextmanager
def placed(device: str, jobs_per_gpu: int) -> Iterator[torch.device]:
    """Where a cell is to train: the processor, the card that SLURM gave to the job, or a card of which a slot is held meanwhile."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "config/config.yaml or --device: device is cuda, but no GPU is seen here; choose auto or cpu"
        )
    if device == "cpu" or not torch.cuda.is_available():
        yield torch.device("cpu")
        return
    cards = visible_cards()
    if "SLURM_JOB_ID" in os.environ and len(cards) == 1:
        yield torch.device("cuda", 0)
        return
    with slot(
        cards,
        jobs_per_gpu,
        waiting=lambda: print("every GPU is taken: waiting for one", flush=True),
    ) as place:
        torch.cuda.set_device(place)
        yield torch.device("cuda", place)


def visible_cards() -> list[str]:
    """What the cards are called that this process may use, in torch's order. CUDA_VISIBLE_DEVICES alone names a part of a card (MIG)."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    parts = dict(enumerate(name.strip() for name in named if name.strip().startswith("MIG-")))
    return [
        parts.get(n) or str(torch.cuda.get_device_properties(n).uuid)
        for n in range(torch.cuda.device_count())
    ]


@contextlib.contextmanager
def slot(
    cards: Sequence[str], slots: int, waiting: Callable[[], None], folder: Path | None = None
) -> Iterator[int]:
    """Hold one of the slots of the card that has the fewest taken, and say which card of the list that is."""
    folder = folder or Path(tempfile.gettempdir(), f"cohort-cards-{os.getuid()}")
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = _take(cards, slots, folder)
        if file is None:
            waiting()
        while file is None:
            time.sleep(LOOK_SECONDS)
            file = _take(cards, slots, folder)
    place, held = file
    with held:
        yield place


def _take(cards: Sequence[str], slots: int, folder: Path) -> tuple[int, IO[str]] | None:
    """A card with a free slot, by its place, and the locked file. One process at a time looks: none is taken between look and lock."""
    names = [re.sub(r"[^\w-]", "_", card) for card in cards]
    with open(folder / "looking", "a") as look:
        fcntl.flock(look, fcntl.LOCK_EX)
        taken = [sum(map(_is_locked, folder.glob(f"{name}.*"))) for name in names]
        place = taken.index(min(taken))
        if taken[place] >= slots:
            return None
        files = (_locked(folder / f"{names[place]}.{number}") for number in itertools.count())
        return place, next(file for file in files if file is not None)


def _is_locked(path: Path) -> bool:
    file = _locked(path)
    if file is not None:
        file.close()
    return file is None


def _locked(path: Path) -> IO[str] | None:
    """The file, locked as long as it is open, or nothing where another process has locked it."""
    file = open(path, "a")  # noqa: SIM115 (the caller's)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
