"""What selectors and needs are given cannot be changed, and what they return is checked, whichever
procedure calls them."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from cohort.core.metric import Metric
from cohort.needs import NEEDS, EvaluationContext, Need
from cohort.selection.selector import (
    Allocating,
    Filtering,
    MetricRecording,
    Reports,
    Screening,
    Selector,
    State,
    View,
    Weighing,
)
from cohort.selection.simple import Random
from cohort.training.contract.read_only import read_only
from cohort.training.job import checkpoint
from cohort.training.servers import Average
from tests.training.contract.sentences import ALL, sentence_of
from tests.training.small_task import run, small_task

READ_ONLY = "what a component is given is read-only"


@dataclass(frozen=True, kw_only=True)
class Meddler(Selector, Screening, Allocating, Filtering, MetricRecording, Weighing):
    """Changes something in one of its methods."""

    needs: ClassVar[frozenset[str]] = frozenset(
        {"label_counts", "candidate_loss", "local_accuracy"}
    )
    method: str
    change: Callable[[dict[str, Any]], object]

    def _called(self, method: str, **given: Any) -> None:
        if method == self.method:
            self.change(given)

    def begin(self, view: View, rng: np.random.Generator) -> State:
        self._called("begin", view=view)
        return {"seen": np.zeros(view.clients)}

    def draw_pool(self, candidates: np.ndarray, view: View, rng: np.random.Generator) -> np.ndarray:
        self._called("draw_pool", candidates=candidates, view=view)
        return candidates

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        self._called("select", state=state, candidates=candidates, view=view)
        return candidates[: view.cohort]

    def quotas(self, cohort: np.ndarray, view: View) -> np.ndarray:
        self._called("quotas", cohort=cohort, view=view)
        assert view.label_counts is not None
        return view.label_counts[cohort]

    def keep(self, reports: Reports, sizes: np.ndarray) -> np.ndarray:
        self._called("keep", reports=reports, sizes=sizes)
        return sizes > 0

    def measure(
        self, state: State, candidates: np.ndarray, cohort: np.ndarray, view: View
    ) -> dict[str, float]:
        self._called("measure", state=state, candidates=candidates, cohort=cohort, view=view)
        return {}

    def probabilities(self, state: State, candidates: np.ndarray, view: View) -> np.ndarray:
        self._called("probabilities", state=state, candidates=candidates, view=view)
        return np.ones(len(candidates))

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        self._called("observe", state=state, cohort=cohort, reports=reports, view=view)
        return state


def arrays_in(value: Any, path: str = "") -> dict[str, np.ndarray]:
    """Every array in what a selector is given."""
    if isinstance(value, np.ndarray):
        return {path: value}
    if isinstance(value, View):
        value = {name: getattr(value, name) for name in ("sizes", "label_counts", "reports")}
    parts = value.items() if isinstance(value, Mapping) else ()
    results: dict[str, np.ndarray] = {}
    for name, part in parts:
        results |= arrays_in(part, f"{path}.{name}")
    return results


METHODS = {
    "begin": 2,
    "draw_pool": 3,
    "select": 5,
    "quotas": 4,
    "keep": 2,
    "measure": 6,
    "probabilities": 5,
    "observe": 6,
}
"""The methods of a selector, and how many arrays each is given."""


@pytest.mark.parametrize("method", METHODS)
def test_no_array_that_a_selector_is_given_can_be_written_to(method: str):
    seen: dict[str, np.ndarray] = {}
    run(
        small_task(
            selector=Meddler(method=method, change=lambda given: seen.update(arrays_in(given))),
            **ALL,
        )
    )
    assert len(seen) == METHODS[method], seen.keys()
    for path, array in seen.items():
        assert not array.flags.writeable, path
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
            array.setflags(write=True)
        assert isinstance(array.base, bytes), path


@pytest.mark.parametrize("rows", [3, 200_000])
@pytest.mark.parametrize("order", ["C", "F", "A"])
def test_no_array_is_made_writable_again_by_itself_or_its_base(rows: int, order: str):
    """Neither a small one, which is copied, nor a large one; values and order in memory stay."""
    array = np.arange(2 * rows, dtype=float).reshape(rows, 2, order="A" if order == "A" else "C")
    array = array[::-1] if order == "A" else np.asarray(array, order=order)  # type: ignore[call-overload]
    given = read_only(array)
    np.testing.assert_array_equal(given, array)
    if order != "A":
        assert given.strides == array.strides
    with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
        given.setflags(write=True)
    with pytest.raises(TypeError):
        memoryview(given.base)[0] = 1  # type: ignore[arg-type, index]
    assert np.shares_memory(given, array) == (rows > 3)
    assert read_only(given) is given  # handed back and out again


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("select", lambda given: given["state"]["seen"].__setitem__(0, 1)),
        ("select", lambda given: given["state"].__setitem__("more", np.ones(1))),
        ("select", lambda given: given["view"].sizes.fill(1)),
        ("select", lambda given: given["view"].sizes.setflags(write=True)),
        ("select", lambda given: given["candidates"].sort()),
        ("observe", lambda given: given["reports"]["local_accuracy"].fill(1)),
        ("observe", lambda given: given["state"].update(seen=np.ones(4))),
        ("observe", lambda given: given["view"].reports.pop("candidate_loss")),
    ],
)
def test_whoever_writes_is_told_where_and_what_to_do(
    method: str, change: Callable, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("cohort.training.contract.mistakes.COMPONENTS", (__name__,))
    sentence = sentence_of(small_task(selector=Meddler(method=method, change=change), **ALL))
    assert re.match(
        r"strategy 'none', round 1: tests/training/contract/test_selector\.py, line \d+", sentence
    )
    assert f"{READ_ONLY}: copy what you want to change" in sentence


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda given: sys.exit(3),
            r"tests/training/contract/test_selector\.py, line .*: SystemExit: 3",
        ),
        (lambda given: os.chdir("/"), r"a component changed the working directory \(os.chdir\)"),
        (lambda given: sys.stdout.close(), "a component closed sys.stdout"),
    ],
)
def test_whoever_changes_the_process_is_told_of_the_strategy(
    change: Callable, sentence: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("cohort.training.contract.mistakes.COMPONENTS", (__name__,))
    monkeypatch.setattr("sys.stdout", io.StringIO())
    folder = Path.cwd()
    actual = sentence_of(small_task(selector=Meddler(method="select", change=change), **ALL))
    assert re.match(rf"strategy 'none', round 1: {sentence}", actual)
    assert Path.cwd() == folder


@pytest.mark.filterwarnings("error")  # of PyTorch, for a read-only array
def test_a_state_that_is_handed_back_can_be_saved(tmp_path: Path):
    state = run(small_task(selector=Meddler(method="", change=print), **ALL))
    assert not state.selector["seen"].flags.writeable
    checkpoint.save(tmp_path / "c", state, "k0")


@dataclass(frozen=True, kw_only=True)
class Choosing(Random):
    """Chooses what it is told to."""

    cohort: Any

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        return np.array(self.cohort, dtype=np.int64)


@pytest.mark.parametrize("procedure", ["federated", "concat-2"])
@pytest.mark.parametrize(
    ("cohort", "sentence"),
    [
        ([0, 0], "select returned [0, 0], in which client 0 is twice"),
        ([], "select returned no client"),
        (range(4), "select returned 4 clients for a cohort of 2"),
        ([0, 7], "select returned [0, 7], but client 7 is not a candidate"),
    ],
)
def test_every_procedure_with_a_selector_checks_its_cohorts(
    procedure: str, cohort: Any, sentence: str
):
    task = small_task(selector=Choosing(cohort=cohort), procedure=procedure, **ALL)
    assert sentence_of(task) == f"strategy 'none', round 1: {sentence}"


@dataclass(frozen=True, kw_only=True)
class Measured(Random, MetricRecording):
    metrics: ClassVar[Mapping[str, Metric]] = {"doubt": Metric("Doubt")}

    def measure(
        self, state: State, candidates: np.ndarray, cohort: np.ndarray, view: View
    ) -> dict[str, float]:
        return {"doubt": float(len(cohort))}


@pytest.mark.parametrize("procedure", ["federated", "concat-2"])
def test_every_procedure_with_a_selector_records_what_it_measures(procedure: str):
    history = run(small_task(selector=Measured(), procedure=procedure, **ALL)).history
    assert history.metrics["doubt"] == [(1, 2.0), (2, 2.0), (3, 2.0)]


@dataclass(frozen=True, kw_only=True)
class Curious(Random):
    needs: ClassVar[frozenset[str]] = frozenset({"curiosity"})


@pytest.mark.parametrize("what", ["clients", "label_counts", "softmax", "labels"])
def test_a_need_cannot_change_what_it_measures_with(what: str, monkeypatch: pytest.MonkeyPatch):
    @dataclass(frozen=True, kw_only=True)
    class Curiosity(Need):
        name: ClassVar[str] = "curiosity"
        gathered = "after"

        def measure(self, context: EvaluationContext) -> np.ndarray:
            results, *_ = context.local_on_reserved()
            given = {
                "clients": context.clients,
                "label_counts": context.label_counts(),
                "softmax": results.softmax,
                "labels": results.labels,
            }
            given[what].fill(1)
            return np.ones(len(context.clients))

    monkeypatch.setattr("cohort.training.contract.mistakes.COMPONENTS", (__name__,))
    monkeypatch.setitem(NEEDS, "curiosity", Curiosity)
    assert READ_ONLY in sentence_of(small_task(selector=Curious(), **ALL))


@pytest.mark.parametrize("error", [OSError("no space"), MemoryError(), KeyboardInterrupt()])
def test_what_is_no_components_fault_passes(error: BaseException, monkeypatch: pytest.MonkeyPatch):
    def fail(given: dict[str, Any]) -> None:
        raise error

    monkeypatch.setattr("cohort.training.contract.mistakes.COMPONENTS", (__name__,))
    with pytest.raises(type(error)):
        run(small_task(selector=Meddler(method="select", change=fail), **ALL))


def test_an_exception_outside_of_components_passes(monkeypatch: pytest.MonkeyPatch):
    def fail(*given: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Average, "apply", fail)  # of this module, which is no component's
    with pytest.raises(RuntimeError, match="a defect"):
        run(small_task(**ALL))
