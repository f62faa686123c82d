"""A run's whole state in one safetensors file, with its JSON in the header: written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from cohort.files import replacing
from cohort.records.history import History
from cohort.training.state import RunState
from cohort.training.updates import Weights

UNREADABLE = (OSError, SafetensorError, KeyError, TypeError, ValueError)  # cut off, of another program, or without our header


def save(path: Path, state: RunState, digest: str) -> None:
    """Write a checkpoint."""
    tensors = {f"weights/{name}": tensor for name, tensor in state.weights.items()}
    tensors |= {f"server/{name}": tensor for name, tensor in state.server.items()}
    tensors |= {f"selector/{name}": torch.from_numpy(array) for name, array in state.selector.items()}
    tensors |= {f"history/{name}": torch.from_numpy(array) for name, array in state.history.arrays().items()}
    facts = {"digest": digest, "round": state.round, "diverged": state.diverged, "sessions": state.sessions}
    with replacing(path) as temporary:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, {"cohort": json.dumps(facts)})


def load(path: Path, digest: str, device: torch.device) -> RunState | None:
    """The state of a checkpoint of this cell, or nothing where there is none that can be read."""
    try:
        facts, tensors = _read(path, str(device))
    except UNREADABLE:
        return None
    if facts.pop("digest") != digest:
        return None
    arrays = {kind: {name: tensor.cpu().numpy() for name, tensor in tensors[kind].items()} for kind in ("selector", "history")}
    return RunState(tensors["weights"], tensors["server"], arrays["selector"], History.from_arrays(arrays["history"]), **facts)


def load_history(path: Path) -> History | None:
    """Only the history of a checkpoint: what an unfinished cell has to show."""
    try:
        _, tensors = _read(path, "cpu")
    except UNREADABLE:
        return None
    return History.from_arrays({name: np.asarray(tensor) for name, tensor in tensors["history"].items()})


def _read(path: Path, device: str) -> tuple[dict[str, Any], dict[str, Weights]]:
    grouped: dict[str, Weights] = {"weights": {}, "server": {}, "selector": {}, "history": {}}
    with safe_open(path, framework="pt", device=device) as file:
        facts = json.loads(file.metadata()["cohort"])
        for key in file.keys():  # noqa: SIM118 (not a dict)
            kind, _, name = key.partition("/")
            grouped[kind][name] = file.get_tensor(key)
    return facts, grouped
