"""Tensors that a component is given, which cannot be read-only but count their changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor

from cohort.training.contract.mistakes import WrongAnswer


@contextmanager
def forbid_changes(method: str, **arguments: Mapping[str, Tensor]) -> Iterator[None]:
    """Raise WrongAnswer if the block changes one of the given tensors in place. A change behind
    PyTorch's back (`.data`, a shared NumPy array) is not noticed."""
    tensors = [
        (what, name, tensor) for what, part in arguments.items() for name, tensor in part.items()
    ]
    versions = [tensor._version for _, _, tensor in tensors]
    yield
    for (what, name, tensor), version in zip(tensors, versions, strict=True):
        if tensor._version != version:
            raise WrongAnswer(
                f"{method} changed {what}{f' ({name})' if name else ''} in place; "
                "what a component is given is read-only: work on a copy (tensor.clone())"
            )
