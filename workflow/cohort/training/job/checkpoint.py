"""Checkpoints: the whole state of a run in one safetensors file, what is no tensor as JSON in its
header, with a checksum. The previous one is kept: at every moment a whole one exists."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from cohort.core import UserError, explain_errors, files
from cohort.records.history import History
from cohort.training.job.lease import PREVIOUS
from cohort.training.task import RunState
from cohort.training.updates import Weights

ARRAYS = ("selector", "reports", "history")  # parts that are arrays of NumPy
PARTS = ("weights", "server", *ARRAYS, "cursor")
Saved = tuple[RunState, Weights]
"""A run's state, and a cursor that says where inside the next round it stands."""


class Unusable(Exception):
    """A run cannot resume from this checkpoint; the message says why."""


def save(path: Path, state: RunState, digest: str, cursor: Weights | None = None) -> None:
    """Write a checkpoint; keep the previous one. `cursor`: clients already done in this round."""
    arrays = map(_tensors, (state.selector, state.reports, state.history.arrays()))
    parts, tensors = (state.weights, state.server, *arrays, cursor or {}), Weights()
    for part, values in zip(PARTS, parts, strict=True):
        tensors |= {f"{part}/{name}": value.cpu().contiguous() for name, value in values.items()}
    fields = {key: getattr(state, key) for key in ("round", "diverged", "sessions")}
    header = json.dumps({"digest": digest} | fields)
    metadata = {"facts": header, "sha256": _checksum(header, tensors)}
    with files.atomic_write(path, keep=path.with_name(PREVIOUS)) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode  # as the umask says; safetensors makes a private file
        safetensors.torch.save_file(tensors, temporary, metadata)
        temporary.chmod(mode)


def load(path: Path, digest: str, like: RunState, device: torch.device) -> Saved | None:
    """Load the state and the cursor of this cell's checkpoint, or of the previous one, which then
    takes its place; None if neither can be used: one is damaged, of another cell, or of another
    form than `like`, the state before the first round. A printed line says which."""
    reasons = []
    for file in (path, path.with_name(PREVIOUS)):
        try:
            header, parts = _read(file)
            if header["digest"] != digest:
                raise Unusable(f"it is of the cell {header['digest']}")
            if not _fits(parts, like):
                raise Unusable("its tensors are not those of this cell's model and strategy")
        except FileNotFoundError:
            continue
        except Unusable as reason:
            reasons.append(f"{file} is not used, because {reason}")
            continue
        if file != path:
            reasons.append(f"the checkpoint before it is, of round {header['round']}")
            print("; ".join(reasons), flush=True)
            file.replace(path)  # or the next save would keep the unusable one as the previous
        return _state(header, parts, device)
    if reasons:
        print("; ".join([*reasons, "the run begins anew"]), flush=True)
    return None


def load_history(path: Path) -> History | None:
    """Read only the history of a checkpoint, for showing an unfinished cell."""
    for file in (path, path.with_name(PREVIOUS)):
        try:
            return History.from_arrays(_arrays(_read(file)[1]["history"]))
        except (FileNotFoundError, UserError, Unusable):
            continue
    return None


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Weights]]:
    """The header and tensors of a checkpoint, their checksum verified. An error of the disk is
    raised as it is: it is no reason to start over."""
    with explain_errors(path):
        content = path.read_bytes()
    try:
        tensors = safetensors.torch.load(content)
        head = content[8 : 8 + int.from_bytes(content[:8], "little")]
        metadata = json.loads(head)["__metadata__"]
        is_whole = _checksum(metadata["facts"], tensors) == metadata["sha256"]
        header: dict[str, Any] = json.loads(metadata["facts"])
    except Exception as error:  # a file that was not written here may raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise Unusable(f"it cannot be read ({reason})") from None
    if not is_whole:
        raise Unusable("its checksum does not fit: it was damaged after it was written")
    parts: dict[str, Weights] = {part: {} for part in PARTS}
    for key, tensor in tensors.items():
        part, _, name = key.partition("/")
        parts[part][name] = tensor
    return header, parts


def _state(header: dict[str, Any], parts: dict[str, Weights], device: torch.device) -> Saved:
    selector, reports, history = (_arrays(parts[name]) for name in ARRAYS)
    for tensors in (parts["weights"], parts["server"], parts["cursor"]):
        tensors.update({name: tensor.to(device) for name, tensor in tensors.items()})
    fields = {key: header[key] for key in ("round", "diverged", "sessions")}
    fields |= {"selector": selector, "reports": reports, "history": History.from_arrays(history)}
    return RunState(weights=parts["weights"], server=parts["server"], **fields), parts["cursor"]


def _fits(parts: dict[str, Weights], like: RunState) -> bool:
    """Whether a run that begins like this can have come to these tensors. The shapes of a
    selector's arrays are free, because they may grow."""
    begun = like.weights, _tensors(like.selector), _tensors(like.reports)
    for part, tensors in zip(("weights", "selector", "reports"), begun, strict=True):
        if parts[part].keys() != tensors.keys():
            return False
        for name, tensor in tensors.items():
            saved = parts[part][name]
            is_same = saved.shape == tensor.shape or part == "selector"
            if not is_same or saved.dtype != tensor.dtype:
                return False
    return like.server.keys() <= parts["server"].keys()


def _tensors(arrays: Mapping[str, np.ndarray]) -> Weights:
    """Arrays as tensors; one that is read-only is copied, as PyTorch has no such tensors."""
    writable = {name: np.require(array, requirements="W") for name, array in arrays.items()}
    return {name: torch.from_numpy(array) for name, array in writable.items()}


def _arrays(tensors: Weights) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _checksum(header: str, tensors: Weights) -> str:
    """The SHA-256 of the header and of each tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        if tensor.numel():  # torch cannot view an empty tensor as bytes
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
