"""What objectives, server rules, participations, models and augmentations return is checked, and what
they are given is as it was."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cohort.core.metric import Metric
from cohort.data.augmentations import AUGMENTATIONS, Augmentation
from cohort.models import MODELS, Model
from cohort.training.objectives import Objective
from cohort.training.participation import Participation
from cohort.training.servers import Merged, ServerRule
from cohort.training.task import Task
from cohort.training.updates import Updates, Weights
from tests.training.contract.sentences import ALL, sentence_of
from tests.training.small_task import CLASSES, run, small_task


@dataclass(frozen=True, kw_only=True)
class Losses(Objective):
    name: ClassVar[str] = "losses"
    of: Callable[[Tensor, Tensor, Tensor], Any]

    def losses(self, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return self.of(outputs, targets, statistics)


@pytest.mark.parametrize("trainer", ["serial", "batched"])
@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (
            lambda outputs, targets, statistics: cross_entropy(outputs, targets),
            "a tensor of shape ()",
        ),
        (lambda outputs, targets, statistics: outputs, "a tensor of shape (4, 3)"),
        (
            lambda outputs, targets, statistics: 1.0,
            "losses returned 1.0, not one loss for each of 4",
        ),
        (
            lambda outputs, targets, statistics: outputs[:, 0] + statistics.add_(1)[0],
            "changed its targets or",
        ),
        (
            lambda outputs, targets, statistics: outputs[:, 0] * targets.zero_(),
            "changed its targets or",
        ),
    ],
)
def test_an_objective_gives_one_loss_per_sample_and_changes_nothing(
    trainer: str, of: Callable, sentence: str
):
    task = small_task(objective=Losses(of=of), **{**ALL, "sizes": (8, 8, 8)})
    assert sentence in sentence_of(replace(task, trainer=trainer))


@dataclass(frozen=True, kw_only=True)
class Rule(ServerRule):
    name: ClassVar[str] = "rule"
    metrics: ClassVar[Mapping[str, Metric]] = {"size": Metric("Size")}
    change: Callable[[Weights, Weights, Updates, Weights], Any]

    def begin(self, weights: Weights, redraw: Callable[[], Weights]) -> Weights:
        return {"total": torch.zeros(2)}

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        mean, measured = updates.mean(updates.shares()), {"size": 1.0}
        merged = self.change(mean, weights, updates, memory)
        return merged or Merged(mean, memory, measured)


RULES: dict[str, Callable[[Weights, Weights, Updates, Weights], Any]] = {
    "weights without '1.bias'": lambda mean, *_: _drop(mean),
    "weights with 'more', which the model lacks": lambda mean, *_: mean.update(more=torch.ones(1)),
    "the weights '1.bias' as float32": lambda mean, *_: mean.update(
        {"1.bias": mean["1.bias"].float()}
    ),
    "the weights '1.bias' as float64 of shape (1, 64)": lambda mean, *_: mean.update(
        {"1.bias": mean["1.bias"][None]}
    ),
    "None, not tensors by name": lambda mean, *_: Merged(None, {}, {}),  # type: ignore[arg-type]
    "changed weights (1.bias) in place": lambda mean, weights, *_: _zero(weights["1.bias"]),
    "changed updates (1.bias) in place": lambda mean, weights, updates, _: _zero(
        updates.weights["1.bias"]
    ),
    "changed updates (losses) in place": lambda mean, weights, updates, _: _zero(updates.losses),
    "changed memory (total) in place": lambda mean, weights, updates, memory: _zero(
        memory["total"]
    ),
    "a memory without 'total'": lambda mean, *_: Merged(mean, {}, {}),
    "a memory with 'calls', which is not named after a weight": lambda mean, *_: Merged(
        mean, {"total": torch.zeros(2), "calls": torch.ones(1)}, {}
    ),
    "the memory '1.bias/x' as": lambda mean, *_: Merged(
        mean, {"total": torch.zeros(2), "1.bias/x": torch.ones(3).double()}, {}
    ),
    "nan as size, not a finite number": lambda mean, w, u, memory: Merged(
        mean, memory, {"size": math.nan}
    ),
    "'weight', which the server rule does not declare": lambda mean, w, u, memory: Merged(
        mean, memory, {"weight": 1.0}
    ),
}


def _drop(mean: Weights) -> None:
    del mean["1.bias"]


def _zero(tensor: Tensor) -> None:
    tensor.zero_()


@pytest.mark.parametrize("sentence", RULES)
def test_a_server_rule_keeps_the_form_of_weights_and_memory(sentence: str):
    actual = sentence_of(small_task(server=Rule(change=RULES[sentence]), **ALL))
    assert actual.startswith("strategy 'none', round 1: apply ") and sentence in actual


def test_a_server_rule_may_measure_what_is_not_finite_in_a_run_that_diverges():
    rule = Rule(change=lambda mean, w, updates, memory: Merged(mean, memory, {"size": math.nan}))
    state = run(small_task(server=rule, **{**ALL, "lr": 1e300, "J": "J3"}))
    assert state.diverged


@dataclass(frozen=True, kw_only=True)
class Odd(Participation):
    name: ClassVar[str] = "odd"
    mask: Any = (True, True)
    managed: Any = (2, 2, 2, 1)

    def responds(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        assert not cohort.flags.writeable
        return np.array(self.mask)

    def efforts(
        self, clients: int, most: int, fixed: np.random.Generator, rng: np.random.Generator
    ) -> np.ndarray:
        return np.array(self.managed)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mask": (1, 0)}, "responds returned [1, 0], not true or false for each client"),
        ({"mask": (True,)}, "responds returned an array of shape (1,), not (2,)"),
        ({"mask": (False, False)}, "responds returned a mask in which no client responds"),
        ({"managed": (2, 2, 2, 0.5)}, "not whole numbers from 1 to 2"),
        ({"managed": (2, 2, 2, 0)}, "efforts returned [2, 2, 2, 0], not whole numbers from 1 to 2"),
        ({"managed": (2, 2, 2, 3)}, "efforts returned [2, 2, 2, 3], not whole numbers from 1 to 2"),
        ({"managed": (2, 2)}, "efforts returned an array of shape (2,), not (4,)"),
    ],
)
def test_a_participation_gives_a_mask_and_efforts_in_range(changes: dict[str, Any], sentence: str):
    run(with_participation(Odd()))
    assert sentence in sentence_of(with_participation(Odd(**changes)))


def with_participation(participation: Participation) -> Task:
    """A task whose participation is not the one that its settings name."""
    task = small_task(**ALL)
    vars(task)["participation"] = participation  # in place of what it would cache
    return task


class Network(nn.Module):
    """A linear network that changes its outputs in some way."""

    def __init__(self, change: Callable[[Network, Tensor], Tensor]):
        super().__init__()
        self.linear, self.change, self.calls = nn.Linear(64, CLASSES).double(), change, 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.calls += 1
        return self.change(self, self.linear(inputs.flatten(1)))


@pytest.fixture
def model_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """`small-mlp` is a model of the user's folder."""
    module = types.ModuleType("my.models.small")
    module.__file__ = "my/models/small.py"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(
        MODELS, "small-mlp", type("Small", (Model,), {"__module__": module.__name__})
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda network, outputs: outputs + torch.rand(1), "puts out other numbers for the same"),
        (lambda network, outputs: outputs + network.calls, "puts out other numbers for the same"),
        (lambda network, outputs: outputs.sum(), "puts out () for 2 samples, not (2, 3)"),
        (lambda network, outputs: outputs.nothing, "AttributeError: 'Tensor' object has no"),
    ],
)
@pytest.mark.usefixtures("model_of_the_user")
def test_a_model_in_evaluation_mode_puts_out_the_same_twice(change: Callable, sentence: str):
    actual = sentence_of(small_task(model=Network(change), **ALL))
    assert sentence in actual
    assert "model 'small-mlp' (my/models/small.py)" in actual


@pytest.mark.parametrize(("is_of_the_user", "checks"), [(True, 2), (False, 0)])
def test_only_a_model_of_the_user_is_checked_once_per_run(
    is_of_the_user: bool, checks: int, request: pytest.FixtureRequest
):
    if is_of_the_user:
        request.getfixturevalue("model_of_the_user")
    task = small_task(model=(network := Network(lambda network, outputs: outputs)), **ALL)
    before = network.calls
    rounds = len(list(task.procedure.rounds(task, task.procedure.begin(task))))
    # one call per step of two clients and one per evaluation
    assert network.calls - before == checks + rounds * (2 * 2 + 1)


@dataclass(frozen=True, kw_only=True)
class Writing(Augmentation):
    name: ClassVar[str] = "writing"
    numbers: ClassVar[int] = 1
    kind: ClassVar[str] = ""

    def apply(self, images: Tensor, numbers: Tensor) -> Tensor:
        return images.mul_(0.5) if self.kind == "writes" else images[:, :, 1:]


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("writes", "augmentation 'writing': apply changed its images"),
        (
            "crops",
            "apply returned a tensor of shape (4, 1, 7, 8), not images of shape (4, 1, 8, 8)",
        ),
    ],
)
def test_an_augmentation_changes_neither_its_input_nor_the_shape(
    kind: str, sentence: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Writing, "kind", kind)
    monkeypatch.setitem(AUGMENTATIONS, "writing", Writing)
    task = small_task(augmentation="writing", **{**ALL, "sizes": (8, 8, 8)})
    assert sentence in sentence_of(task)
