"""The selector's contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from cohort.selection import Selector
from cohort.selection.selector import (
    Allocating,
    Filtering,
    MetricRecording,
    Probing,
    Reports,
    Screening,
    Skipping,
    State,
    View,
    Weighing,
)
from cohort.training.contract.answers import array_text, as_array, check_metrics, check_shape
from cohort.training.contract.mistakes import WrongAnswer
from cohort.training.contract.read_only import read_only, read_only_arrays


class CheckedSelector:
    """A selector that gets read-only arrays, and whose answers are checked. Where the selector
    lacks an ability, the answer is as if nothing was asked."""

    def __init__(self, selector: Selector):
        self.selector = selector

    @property
    def draws_pool(self) -> bool:
        """Whether the selector draws a pool of clients first and chooses the cohort from it."""
        return isinstance(self.selector, Screening)

    @property
    def probe_batches(self) -> int:
        """The number of batches on which the pool trains before the choice; 0 if the selector does
        not probe."""
        return self.selector.batches if isinstance(self.selector, Probing) else 0

    @property
    def allocates(self) -> bool:
        """Whether the selector decides on how many samples of each class clients train."""
        return isinstance(self.selector, Allocating)

    def asks(self, state: State, view: View) -> bool:
        """Whether needs are gathered before choosing in this round: always unless skipped."""
        if not isinstance(self.selector, Skipping):
            return True
        return bool(self.selector.asks(_read_only_state(state), _read_only_view(view)))

    def begin(self, view: View, rng: np.random.Generator) -> State:
        """The selector's state before the first round, checked."""
        return _check_state(self.selector.begin(_read_only_view(view), rng), "begin")

    def draw_pool(self, candidates: np.ndarray, view: View, rng: np.random.Generator) -> np.ndarray:
        """The pool of clients, checked: all candidates unless the selector screens them."""
        if not isinstance(self.selector, Screening):
            return candidates
        pool = self.selector.draw_pool(read_only(candidates), _read_only_view(view), rng)
        return _check_clients(pool, candidates, "draw_pool")

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        """The cohort, checked: distinct candidates, no more than its size."""
        arguments = _read_only_state(state), read_only(candidates), _read_only_view(view)
        cohort = _check_clients(self.selector.select(*arguments, rng), candidates, "select")
        if len(cohort) > view.cohort:
            raise WrongAnswer(
                f"select returned {len(cohort)} clients for a cohort of {view.cohort}"
            )
        return cohort

    def measure(
        self, state: State, candidates: np.ndarray, cohort: np.ndarray, view: View
    ) -> dict[str, float]:
        """The selector's metrics of a round, checked; none if it does not measure."""
        if not isinstance(self.selector, MetricRecording):
            return {}
        arguments = (
            _read_only_state(state),
            read_only(candidates),
            read_only(cohort),
            _read_only_view(view),
        )

        def inputs_are_finite() -> bool:
            reports = [values[candidates] for values in view.reports.values()]
            return all(np.isfinite(array).all() for array in [*state.values(), *reports])

        return check_metrics(
            self.selector.measure(*arguments),
            self.selector.metrics,
            method="measure",
            owner="selector",
            inputs_are_finite=inputs_are_finite,
        )

    def probabilities(self, state: State, candidates: np.ndarray, view: View) -> np.ndarray | None:
        """The probability of each candidate; None if the selector does not weigh them."""
        if not isinstance(self.selector, Weighing):
            return None
        arguments = _read_only_state(state), read_only(candidates), _read_only_view(view)
        answer = self.selector.probabilities(*arguments)
        chances = check_shape(answer, (len(candidates),), "probabilities")
        if chances.dtype.kind not in "fiu" or not (chances >= 0).all() or np.isinf(chances).any():
            raise WrongAnswer(
                f"probabilities returned {array_text(chances)}, not finite numbers from 0 up"
            )
        return chances

    def quotas(self, cohort: np.ndarray, view: View, held: np.ndarray) -> np.ndarray:
        """The number of samples of each class that each client of the cohort uses (client, class):
        all that are `held` unless the selector allocates them."""
        if not isinstance(self.selector, Allocating):
            return held
        answer = self.selector.quotas(read_only(cohort), _read_only_view(view))
        quotas = check_shape(answer, held.shape, "quotas")
        if quotas.dtype.kind not in "iu" or (quotas < 0).any():
            raise WrongAnswer(f"quotas returned {array_text(quotas)}, not whole numbers from 0 up")
        return quotas

    def keep(self, reports: Reports, sizes: np.ndarray) -> np.ndarray:
        """Whether each update counts (client): all do unless the selector filters them."""
        if not isinstance(self.selector, Filtering):
            return np.ones(len(sizes), dtype=bool)
        answer = self.selector.keep(read_only_arrays(reports), read_only(sizes))
        kept = check_shape(answer, (len(sizes),), "keep")
        if kept.dtype.kind != "b":
            raise WrongAnswer(
                f"keep returned {array_text(kept)}, not true or false for each update"
            )
        return kept

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        """The selector's next state after a round, checked."""
        arguments = _read_only_state(state), read_only(cohort), read_only_arrays(reports)
        return _check_state(self.selector.observe(*arguments, _read_only_view(view)), "observe")


def _read_only_state(state: State) -> State:
    """A read-only copy of a state's arrays, by name."""
    return cast(State, read_only_arrays(state))


def _read_only_view(view: View) -> View:
    """A view whose arrays are read-only."""
    counts = None if view.label_counts is None else read_only(view.label_counts)
    reports = read_only_arrays(view.reports)
    return replace(view, sizes=read_only(view.sizes), label_counts=counts, reports=reports)


def _check_clients(answer: Any, candidates: np.ndarray, method: str) -> np.ndarray:
    """Return the clients that a method returned. Raise WrongAnswer unless they are at least one,
    distinct, and all candidates."""
    clients = as_array(answer, method)
    if not clients.size:
        raise WrongAnswer(f"{method} returned no client")
    if clients.ndim != 1 or clients.dtype.kind not in "iu":
        raise WrongAnswer(f"{method} returned {array_text(clients)}, not a row of client numbers")
    numbers = clients.tolist()
    if len(set(numbers)) < len(numbers):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise WrongAnswer(
            f"{method} returned {array_text(clients)}, in which client {twice} is twice"
        )
    if not (are_candidates := np.isin(clients, candidates)).all():
        stranger = clients[~are_candidates][0]
        raise WrongAnswer(
            f"{method} returned {array_text(clients)}, but client {stranger} is not a candidate"
        )
    return clients


def _check_state(answer: Any, method: str) -> State:
    """Check a selector's state that a method returned, arrays of numbers by name; return it."""
    if not isinstance(answer, Mapping):
        raise WrongAnswer(f"{method} returned {answer!r:.80}, not arrays by name")
    for name, array in answer.items():
        if not isinstance(array, np.ndarray | np.generic) or array.dtype.kind not in "fiub":
            raise WrongAnswer(f"{method} returned {array!r:.80} as {name}, not an array of numbers")
    return dict(answer)
