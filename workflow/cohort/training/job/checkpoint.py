"""Checkpoints: the whole state of a run in one safetensors file.

Everything but tensors is JSON in its header, and a checksum covers both. The previous checkpoint is
kept, so that at every moment, even between two renames, a whole one exists.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from cohort.core.errors import UserError, explain_errors
from cohort.core.files import atomic_write
from cohort.records.history import History
from cohort.training.job.checkpoint_header import header_of
from cohort.training.job.lease import PREVIOUS
from cohort.training.state import RunState
from cohort.training.updates import Weights

KINDS = ("weights", "server", "selector", "reports", "history", "cursor")


class Unusable(Exception):
    """A run cannot resume from this checkpoint; the message says why."""


def save(path: Path, state: RunState, digest: str, cursor: Weights | None = None) -> None:
    """Write a checkpoint; the one before it becomes the previous one. A `cursor` says where inside
    the next round the run stands."""
    kinds: dict[str, Weights] = {
        "weights": state.weights,
        "server": state.server,
        "selector": _tensors(state.selector),
        "reports": _tensors(state.reports),
        "history": _tensors(state.history.arrays()),
        "cursor": cursor or {},
    }
    tensors: Weights = {}
    for kind, values in kinds.items():
        tensors |= {f"{kind}/{name}": value.cpu().contiguous() for name, value in values.items()}
    header = json.dumps(
        {
            "digest": digest,
            "round": state.round,
            "diverged": state.diverged,
            "sessions": state.sessions,
        }
    )
    with atomic_write(path, keep=path.with_name(PREVIOUS)) as temporary:
        metadata = {"facts": header, "sha256": _checksum(header, tensors)}
        safetensors.torch.save_file(tensors, temporary, metadata)


def load(
    path: Path, digest: str, like: RunState, device: torch.device
) -> tuple[RunState, Weights] | None:
    """Load the state and the cursor of this cell's checkpoint, or of the previous one, which then
    takes its place; None if neither can be used. A file that is damaged, of another cell, or of
    another form than `like`, the state before the first round, is passed over with a printed
    line."""
    reasons = []
    for file in (path, path.with_name(PREVIOUS)):
        try:
            state, cursor = _read_state(file, digest, like, device)
        except FileNotFoundError:
            continue
        except Unusable as reason:
            reasons.append(f"{file} is not used, because {reason}")
            continue
        if file != path:
            print(
                "; ".join([*reasons, f"the checkpoint before it is, of round {state.round}"]),
                flush=True,
            )
            file.replace(path)  # or the next save would keep the unusable one as the previous
        return state, cursor
    if reasons:
        print("; ".join([*reasons, "the run begins anew"]), flush=True)
    return None


def load_history(path: Path) -> History | None:
    """Read only the history of a checkpoint, for showing an unfinished cell."""
    for file in (path, path.with_name(PREVIOUS)):
        try:
            return _history(_read(file)[1]["history"])
        except (FileNotFoundError, UserError, Unusable):
            continue
    return None


def _read_state(
    path: Path, digest: str, like: RunState, device: torch.device
) -> tuple[RunState, Weights]:
    header, tensors = _read(path)
    if header["digest"] != digest:
        raise Unusable(f"it is of the cell {header['digest']}")
    history = _history(tensors["history"])
    selector, reports = (_arrays(tensors[kind]) for kind in ("selector", "reports"))
    same_form = (
        _fits(tensors["weights"], tensors["server"], like)
        and _same_layout(selector, like.selector)
        and _same_layout(reports, like.reports)
    )
    if not same_form:
        raise Unusable("its tensors are not those of this cell's model, server rule and selector")
    if (
        type(header["round"]) is not int
        or header["round"] != len(history.cohorts)
        or not isinstance(header["sessions"], list)
    ):
        raise Unusable("its header and its history disagree")
    on_device: dict[str, Weights] = {}
    for kind in ("weights", "server", "cursor"):
        on_device[kind] = {name: tensor.to(device) for name, tensor in tensors[kind].items()}
    state = RunState(
        on_device["weights"],
        on_device["server"],
        selector,
        history,
        header["round"],
        header["diverged"],
        header["sessions"],
        reports,
    )
    return state, on_device["cursor"]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Weights]]:
    """The header and tensors of a checkpoint, their checksum verified. An error of the disk is
    raised as it is: it is no reason to start over."""
    with explain_errors(path):
        content = path.read_bytes()
    grouped: dict[str, Weights] = {kind: {} for kind in KINDS}
    try:
        tensors = safetensors.torch.load(content)
        head = content[8 : 8 + int.from_bytes(content[:8], "little")]
        metadata = json.loads(head)["__metadata__"]
        if _checksum(metadata["facts"], tensors) != metadata["sha256"]:
            raise Unusable("its checksum does not fit: it was damaged after it was written")
        fields = header_of(head)
        header = {key: fields[key] for key in ("digest", "round", "diverged", "sessions")}
        for key, tensor in tensors.items():
            kind, _, name = key.partition("/")
            grouped[kind][name] = tensor
    except Unusable:
        raise
    except Exception as error:  # a file that was not written here may raise anything
        raise Unusable(
            f"it cannot be read ({' '.join(str(error).split())[:200] or type(error).__name__})"
        ) from None
    return header, grouped


def _history(tensors: Weights) -> History:
    try:
        return History.from_arrays({name: np.asarray(tensor) for name, tensor in tensors.items()})
    except Exception as error:
        raise Unusable(f"its history cannot be read ({error!r})") from None


def _tensors(arrays: Mapping[str, np.ndarray]) -> Weights:
    """Convert arrays to tensors; one that is read-only is copied, as PyTorch has no such
    tensors."""
    return {
        name: torch.from_numpy(np.require(array, requirements="W"))
        for name, array in arrays.items()
    }


def _arrays(tensors: Weights) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _fits(weights: Weights, server: Weights, like: RunState) -> bool:
    """Whether a run like this can resume from these weights and this memory of the server. An
    optimizer's tensors are named after the weight they belong to."""
    expected = like.weights | like.server
    owners = {name: name if name in like.server else name.rpartition("/")[0] for name in server}
    return (
        _form(weights) == _form(like.weights)
        and set(like.server) <= set(server)
        and all(
            owner in expected and server[name].shape in (expected[owner].shape, ())
            for name, owner in owners.items()
        )
    )


def _same_layout(arrays: Mapping[str, np.ndarray], like: Mapping[str, np.ndarray]) -> bool:
    """Whether `arrays` have the names, dtypes and shapes of `like`. The shape is not checked where
    `like` is empty, because such arrays grow."""
    return set(arrays) == set(like) and all(
        array.dtype == like[name].dtype and (array.shape == like[name].shape or not like[name].size)
        for name, array in arrays.items()
    )


def _form(weights: Weights) -> dict[str, Any]:
    return {name: (tensor.dtype, tensor.shape) for name, tensor in weights.items()}


def _checksum(header: str, tensors: Weights) -> str:
    """The SHA-256 of the header and of each tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        if tensor.numel():  # torch cannot view an empty tensor as bytes
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
