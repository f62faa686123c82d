"""The server rule's contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from cohort.training.contract.answers import check_metrics
from cohort.training.contract.mistakes import WrongAnswer
from cohort.training.contract.tensors import forbid_changes
from cohort.training.servers import Merged, ServerRule
from cohort.training.updates import Updates, Weights


def begin(rule: ServerRule, weights: Weights, redraw: Callable[[], Weights]) -> Weights:
    """Let a server rule make its memory before the first round, and check it: tensors by name."""
    with forbid_changes("begin", weights=weights):
        memory = rule.begin(dict(weights), redraw)
    return _check_tensors(memory, "begin", "its memory")


def apply(rule: ServerRule, weights: Weights, updates: Updates, memory: Weights) -> Merged:
    """Let a server rule merge updates, and check what it returns: weights that have the form of
    those before, the new memory, and finite metrics that the rule declares."""
    tensors = {"sizes": updates.sizes, "steps": updates.steps, "losses": updates.losses}
    in_full_precision = torch.autocast(updates.sizes.device.type, enabled=False)
    with (
        in_full_precision,
        forbid_changes("apply", weights=weights, updates=updates.weights | tensors, memory=memory),
    ):
        shown = replace(updates, weights=dict(updates.weights))
        merged = rule.apply(dict(weights), shown, dict(memory))
    if not isinstance(merged, tuple) or len(merged) != len(Merged._fields):
        raise WrongAnswer(f"apply returned {merged!r:.80}, not Merged(weights, memory, measured)")
    after, new_memory, measured = merged
    return Merged(
        _check_weights(after, weights),
        _check_memory(new_memory, memory, weights),
        check_metrics(
            measured,
            rule.metrics,
            method="apply",
            owner="server rule",
            inputs_are_finite=lambda: _is_finite(weights, updates.weights | tensors, memory),
        ),
    )


def control_variate(rule: ServerRule, memory: Weights, client: int, weights: Weights) -> Weights:
    """Ask a server rule for the correction that a client adds to its weights after each step, and
    check it: nothing, or a tensor for each weight."""
    variate = _check_tensors(rule.control_variate(dict(memory), client), "control_variate", "it")
    if variate and _form(variate) != _form(weights):
        raise WrongAnswer("control_variate returned other names, shapes or types than the weights'")
    return variate


def _check_weights(after: Any, before: Weights) -> Weights:
    weights = _check_tensors(after, "apply", "the weights")
    if missing := sorted(before.keys() - weights.keys()):
        raise WrongAnswer(f"apply returned weights without '{missing[0]}'")
    if added := sorted(weights.keys() - before.keys()):
        raise WrongAnswer(f"apply returned weights with '{added[0]}', which the model lacks")
    for name, tensor in weights.items():
        if _kind(tensor) != _kind(before[name]):
            raise WrongAnswer(
                f"apply returned the weights '{name}' as {_tensor_text(tensor)}, "
                f"not {_tensor_text(before[name])}"
            )
    return weights


def _check_memory(after: Any, before: Weights, weights: Weights) -> Weights:
    """Check a server rule's memory and return it. Tensors that were there stay, in their form;
    others are named `{weight}/...` and have that weight's shape, or are single numbers."""
    memory = _check_tensors(after, "apply", "the memory")
    if missing := sorted(before.keys() - memory.keys()):
        raise WrongAnswer(f"apply returned a memory without '{missing[0]}'")
    for name, tensor in memory.items():
        like = before.get(name, weights.get(name.rpartition("/")[0]))
        if like is None:
            raise WrongAnswer(
                f"apply returned a memory with '{name}', which is not named after a weight: "
                "call it '{weight}/...'"
            )
        is_new_number = name not in before and not tensor.dim()
        if _kind(tensor) != _kind(like) and not is_new_number:
            raise WrongAnswer(
                f"apply returned the memory '{name}' as {_tensor_text(tensor)}, "
                f"not {_tensor_text(like)}"
            )
    return memory


def _check_tensors(answer: Any, method: str, what: str) -> Weights:
    if not isinstance(answer, Mapping):
        raise WrongAnswer(f"{method} returned {answer!r:.80}, not tensors by name")
    for name, tensor in answer.items():
        if not isinstance(tensor, Tensor):
            raise WrongAnswer(f"{method} returned {tensor!r:.80} as {name} of {what}, not a tensor")
    return dict(answer)


def _form(weights: Weights) -> dict[str, object]:
    return {name: _kind(tensor) for name, tensor in weights.items()}


def _kind(tensor: Tensor) -> object:
    return tensor.shape, tensor.dtype, tensor.device


def _tensor_text(tensor: Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{dtype} of shape {tuple(tensor.shape)} on {tensor.device}"


def _is_finite(*groups: Weights) -> bool:
    return all(bool(tensor.isfinite().all()) for group in groups for tensor in group.values())
