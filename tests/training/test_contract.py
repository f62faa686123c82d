"""What components are given cannot be changed, and what they return is checked: a mistake ends the
run with one sentence."""

import io
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from cohort.core.errors import UserError
from cohort.core.metric import Metric
from cohort.selection.selector import (
    Allocating,
    Filtering,
    MetricRecording,
    Reports,
    Rng,
    Screening,
    State,
    View,
)  # fmt: skip
from cohort.selection.simple import Random
from cohort.training.availability import AVAILABILITIES, Availability
from cohort.training.job import checkpoint
from cohort.training.job.train import TRAINERS
from cohort.training.objectives import Objective
from cohort.training.participation import PARTICIPATIONS, Participation, parse_participation
from cohort.training.servers import Average
from tests.training.small_task import run, small_task

SMALL = {"sizes": (4, 9, 2, 6), "cohort": 2, "rounds": 3, "J": "J2"}
WRITTEN = "what a component is given is read-only: change a copy and return it"


def sentence_of(**parts: Any) -> str:
    """The one sentence in which a run ends."""
    with pytest.raises(UserError) as caught:
        run(small_task(**(SMALL | parts)))
    return str(caught.value)


@dataclass(frozen=True, kw_only=True)
class Wrong(Random, Allocating, MetricRecording):
    """A selector of which one method does something else."""

    needs: ClassVar[frozenset[str]] = frozenset({"label_counts", "local_accuracy"})
    metrics: ClassVar[Mapping[str, Metric]] = {"doubt": Metric("Doubt")}
    method: str = ""
    instead: Callable[..., Any] = print

    def _answer(self, method: str, default: Any, *args: Any) -> Any:
        return self.instead(*args) if method == self.method else default

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return self._answer("begin", {"seen": np.zeros(view.clients)}, view)

    def select(self, state: State, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        cohort = candidates[: view.cohort]
        return self._answer("select", cohort, state, candidates, view)

    def quotas(self, cohort: np.ndarray, view: View) -> np.ndarray:
        assert view.label_counts is not None
        return self._answer("quotas", view.label_counts[cohort], cohort, view)

    def measure(
        self, state: State, candidates: np.ndarray, cohort: np.ndarray, view: View
    ) -> dict[str, float]:
        return self._answer("measure", {"doubt": float(len(cohort))})

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        return self._answer("observe", state, state, reports)


@pytest.mark.parametrize("procedure", ["federated", "concat-2"])
@pytest.mark.parametrize(
    ("method", "answer", "sentence"),
    [
        ("select", [0, 0], r"select returned \[0, 0\], in which client 0 is twice"),
        ("select", [], "select returned no client"),
        ("select", range(4), "select returned 4 clients for a cohort of 2"),
        ("select", [0, 7], r"select returned \[0, 7\], but client 7 is not a candidate"),
        ("select", [0.5, 1], r"select returned \[0.5, 1.0\], not a row of client numbers"),
        ("measure", {"faith": 1.0}, "measure returned 'faith', which is not declared in metrics"),
        ("measure", None, "measure returned None, not values by name"),
        ("measure", {"doubt": "much"}, "measure returned 'much' as doubt, not a number"),
        ("measure", {"doubt": -1.0}, "measure returned -1.0 as doubt, not a value that .*"),
        ("observe", {"seen": "much"}, "observe returned 'much' as seen, not an array of numbers"),
        ("observe", None, "observe returned None, not values by name"),
        ("observe", {"seen": np.ones(4, int)}, "obs.* returned .*int64.*, not arrays as bef.*"),
    ],
)
def test_every_procedure_checks_what_its_selector_returns(
    procedure: str, method: str, answer: Any, sentence: str
):
    selector = Wrong(method=method, instead=lambda *_: answer)
    actual = sentence_of(selector=selector, procedure=procedure)
    assert re.fullmatch(f"strategy 'none', round 1: {sentence}", actual)


def test_begin_returns_a_state():
    selector = Wrong(method="begin", instead=lambda *_: "state")
    assert sentence_of(selector=selector).endswith("begin returned 'state', not values by name")


@pytest.mark.parametrize("answer", [None, np.ones(1, dtype=bool), np.ones(2)])
def test_keep_says_of_each_client_whether_it_is_kept(answer: Any):
    class Keeping(Wrong, Filtering):
        def keep(self, reports: Any, sizes: np.ndarray) -> Any:
            return answer

    assert sentence_of(selector=Keeping()).endswith("not 2 times true or false")


@pytest.mark.parametrize("quotas", [np.ones((2, 2), int), np.ones((2, 3)), -np.ones((2, 3), int)])
def test_quotas_are_whole_numbers_by_client_and_class(quotas: np.ndarray):
    actual = sentence_of(selector=Wrong(method="quotas", instead=lambda *_: quotas))
    assert "not whole numbers from 0 up of shape (2, 3) (client, class)" in actual


def test_a_quota_of_more_than_a_client_holds_is_all_it_holds():
    states = []
    for quotas in (lambda cohort, view: view.label_counts[cohort], lambda *_: np.full((2, 3), 99)):
        selector = Wrong(method="quotas", instead=quotas)
        states.append(run(small_task(**(SMALL | {"selector": selector}))))
    first, second = states
    assert first.history.metrics["cohort_entropy"] == second.history.metrics["cohort_entropy"]
    for name, tensor in first.weights.items():
        torch.testing.assert_close(second.weights[name], tensor, rtol=0, atol=0)


def test_reported_counts_cannot_change_the_shards():
    class Noisy(Wrong):
        def reported_counts(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            counts[:] = 7
            return counts

    assert WRITTEN in sentence_of(selector=Noisy())


@pytest.mark.parametrize(
    ("method", "answer", "sentence"),
    [
        ("responds", [1, 1], "responds returned int64 of shape (2,), not 2 times true or false"),
        ("responds", [False, False], "no client responds"),
        ("efforts", [1, 2, 2, 0], "efforts returned int64 of shape (4,), not a whole number from"),
        ("efforts", [1.0] * 4, "efforts returned float64 of shape (4,), not a whole number from"),
    ],
)
def test_a_participation_says_who_responds_and_how_much_each_does(
    method: str, answer: list, sentence: str, monkeypatch: pytest.MonkeyPatch
):
    wrong = type("Wrong", (Participation,), {"name": "wrong", method: lambda *_: np.array(answer)})
    monkeypatch.setitem(PARTICIPATIONS.by_name, "wrong", wrong)
    parse_participation.cache_clear()
    assert sentence in sentence_of(participation="wrong")


def test_availability_is_a_mask_of_all_clients(monkeypatch: pytest.MonkeyPatch):
    numbers = type(
        "Numbers", (Availability,), {"name": "wrong", "present": lambda *_: np.array([2, 3])}
    )
    monkeypatch.setitem(AVAILABILITIES.by_name, "wrong", numbers)
    actual = sentence_of(availability="wrong")
    assert actual.endswith("present returned int64 of shape (2,), not 4 times true or false")


def test_the_cohort_is_no_larger_than_the_pool():
    class One(Random, Screening):
        def draw_pool(self, candidates: np.ndarray, view: View, rng: Any) -> np.ndarray:
            return candidates[:1]

    state = run(small_task(**(SMALL | {"selector": One()})))
    assert [cohort.tolist() for cohort in state.history.cohorts] == [[0]] * 3


def test_an_evaluator_records_only_what_it_declares(monkeypatch: pytest.MonkeyPatch):
    def evaluate(*_: Any) -> dict[str, float]:
        return {"train_loss": 3.0}

    monkeypatch.setattr("cohort.training.evaluators.TestEvaluator.evaluate", evaluate)
    assert "evaluator 'test' returned 'train_loss', which is not declared" in sentence_of()


@pytest.mark.parametrize(
    ("method", "change", "sentence"),
    [
        ("select", lambda state, *_: state["seen"].fill(1), WRITTEN),
        ("select", lambda state, *_: state.update(seen=1), WRITTEN),
        ("select", lambda state, candidates, view: candidates.sort(), WRITTEN),
        ("select", lambda state, candidates, view: view.sizes.fill(1), WRITTEN),
        ("quotas", lambda cohort, view: view.label_counts.fill(1), WRITTEN),
        ("observe", lambda state, reports: reports["local_accuracy"].fill(1), WRITTEN),
        ("select", lambda *_: sys.exit(3), "SystemExit: 3"),
        ("select", lambda *_: setattr(Wrong(), "seen", 1), "put it into the state that is"),
        ("observe", lambda state, reports: reports["duration"], "selector must list it in needs"),
    ],
)
def test_a_mistake_is_located(
    method: str, change: Callable, sentence: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("cohort.training.contract.COMPONENTS", (__name__,))
    monkeypatch.setattr("sys.stdout", io.StringIO())
    folder = Path.cwd()
    actual = sentence_of(selector=Wrong(method=method, instead=change))
    assert actual.startswith("strategy 'none', round 1: ") and sentence in actual
    assert "a component" in actual or "tests/training/test_contract.py, line " in actual
    assert Path.cwd() == folder


@pytest.mark.parametrize("error", [OSError("no space"), MemoryError(), KeyboardInterrupt()])
def test_what_is_no_components_fault_passes(error: BaseException, monkeypatch: pytest.MonkeyPatch):
    def fail(*args: Any) -> None:
        raise error

    monkeypatch.setattr("cohort.training.contract.COMPONENTS", (__name__,))
    with pytest.raises(type(error)):
        run(small_task(selector=Wrong(method="select", instead=fail), **SMALL))


@pytest.mark.filterwarnings("error")  # of PyTorch, for a read-only array
def test_a_state_that_is_handed_back_can_be_saved(tmp_path: Path):
    state = run(small_task(selector=Wrong(), **SMALL))
    assert state.history.metrics["doubt"] == [(1, 2.0), (2, 2.0), (3, 2.0)]
    assert not state.selector["seen"].flags.writeable
    checkpoint.save(tmp_path / "c", state, "k0")


@dataclass(frozen=True, kw_only=True)
class Losses(Objective):
    name: ClassVar[str] = "losses"
    of: Callable[[Tensor, Tensor], Any]

    def losses(self, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return self.of(outputs, targets)


@pytest.mark.parametrize("trainer", ["serial", "batched"])
@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (lambda *_: None, "None, not one loss for each of 4 samples"),
        (lambda *_: [0.5] * 4, r"\[0.5, 0.5, 0.5, 0.5\], not one loss for each of 4"),
        (lambda outputs, _: outputs.detach()[:, 0], "values without gradients"),
        (cross_entropy, r"torch\.float\d\d of shape \(\), not one loss"),
        (lambda outputs, _: outputs, r"torch\.float\d\d of shape \(4, 3\), not one loss"),
    ],
)
def test_an_objective_gives_one_loss_per_sample(trainer: str, of: Callable, sentence: str):
    task = small_task(objective=Losses(of=of), **{**SMALL, "sizes": (8, 8, 8)})
    with pytest.raises(UserError, match=f"objective 'losses': losses returned {sentence}"):
        run(replace(task, trainer=TRAINERS[trainer]))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [(None, "None, not values by name"), ({"m": [0.0]}, "[0.0] as m, not a tensor")],
)
def test_a_server_rule_begins_with_a_memory(answer: Any, sentence: str):
    class Forgetful(Average):
        def begin(self, *args: Any) -> Any:
            return answer

    actual = sentence_of(server=Forgetful())
    assert actual == f"strategy 'none', round 0: begin returned {sentence}"


def replaced(name: str, tensor: Any) -> Callable:
    """What replaces one tensor of a server rule's answer."""
    return lambda merged, *_: merged._replace(weights=merged.weights | {name: tensor})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda merged, *_: None, "None, not weights, memory and metrics (Merged)"),
        (lambda merged, *_: merged.weights, "{'1.weight': tensor("),
        (lambda merged, *_: merged._replace(weights=None), "None, not values by name"),
        (replaced("1.bias", 0.0), "0.0 as the weights '1.bias', not torch.float64 of shape (64,)"),
        (replaced("1.bias", torch.ones(1, 64)), "(1, 64) as the weights '1.bias', not torch"),
        (lambda merged, *_: merged._replace(weights={}), "None as the weights '1.bias', not"),
        (replaced("more", 1.0), "1.0 as the weights 'more', not None"),
        (lambda merged, *_: merged._replace(memory=None), "None, not values by name"),
        (lambda merged, *_: merged._replace(memory={"m": 1.0}), "1.0 as m, not a tensor"),
        (lambda merged, *_: merged._replace(measured=None), "None, not values by name"),
        (lambda merged, *_: merged._replace(measured={"n": torch.ones(2)}), "not a number"),
        (lambda merged, *_: merged._replace(measured={"n": 1.0}), "'n', which is not declared"),
        (lambda merged, weights, *_: weights["1.bias"].zero_(), "a tensor in place"),
        (lambda merged, _, updates, *__: updates.weights["1.bias"].zero_(), "in place"),
    ],
)
def test_a_server_rule_returns_weights_memory_and_metrics(change: Callable, sentence: str):
    class Wrong(Average):
        def apply(self, *args: Any) -> Any:
            return change(super().apply(*args), *args)

    actual = sentence_of(server=Wrong())
    assert actual.startswith("strategy 'none', round 1: apply ") and sentence in actual
