"""What holds for every selector, whatever clients report."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng

from cohort.needs import NEEDS
from cohort.selection import SELECTORS, Selector
from cohort.selection import selector as abilities
from cohort.selection.selector import Reports, State, View

CLASSES, RESERVED, WEIGHTS, ROUNDS = 4, 6, 10, 6
SHAPES = {
    "reserved_predictions": (RESERVED, CLASSES),
    "reserved_correct": (RESERVED,),
    "soft_labels": (CLASSES,),
    "bias_update": (CLASSES,),
    "update": (WEIGHTS,),
}
MAY_BE_SMALLER = {"fixed-probability", "kl", "oort-fedscale", "tifl"}
NAMES = [name for name in SELECTORS if not SELECTORS[name].__module__.startswith("my.")]


def reported(name: str, clients: int, rng: np.random.Generator) -> np.ndarray:
    """A report of each client: numbers of the shape that the need has, above zero."""
    values = rng.random((clients, *SHAPES.get(name, ()))) + 0.1
    if name in ("reserved_predictions", "soft_labels"):
        return values / values.sum(axis=-1, keepdims=True)
    if name in ("overlap", "reserved_correct"):
        return (values > 0.6).astype(float)
    return values


def view_of(selector: Selector, clients: int, cohort: int, rng: np.random.Generator) -> View:
    counts = rng.integers(0, 9, (clients, CLASSES)) + np.eye(clients, CLASSES, dtype=int)
    counts[:, 0] += 1
    once = {need for need in selector.needs if NEEDS[need].gathered == "once"} - {"label_counts"}
    return View(
        clients=clients,
        cohort=cohort,
        rounds=ROUNDS,
        sizes=counts.sum(axis=1),
        label_counts=counts if "label_counts" in selector.needs else None,
        reports={name: reported(name, clients, rng) for name in sorted(once)},
    )


def frozen(arrays: Reports) -> State:
    """Copies that cannot be written to: a selector that changes what it is given fails."""
    copies = {name: array.copy() for name, array in arrays.items()}
    for array in copies.values():
        array.setflags(write=False)
    return copies


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), clients=st.integers(9, 20), cohort=st.integers(1, 4))
def test_cohorts_are_distinct_candidates_drawn_by_the_generator_alone(
    name: str, seed: int, clients: int, cohort: int
):
    """In six rounds, with clients that do not answer. State, reports and view do not change."""
    selector, rng = SELECTORS[name](), default_rng(seed)
    view = view_of(selector, clients, cohort, rng)
    state = selector.begin(view, default_rng([seed, 0]))
    for round in range(1, ROUNDS + 1):
        state, pool = frozen(state), rng.permutation(clients)
        if isinstance(selector, abilities.Screening):
            pool = selector.draw_pool(np.arange(clients), view, default_rng([seed, round]))
            assert cohort <= len(set(pool.tolist())) == len(pool) <= clients
        before = {need for need in selector.needs if NEEDS[need].gathered == "before"}
        if isinstance(selector, abilities.ConditionalNeeds) and not selector.asks(state, view):
            before = set()
        gathered = {name: reported(name, clients, rng) for name in sorted(before)}
        gathered["probe_norm"] = rng.random(clients)
        full_view = dataclasses.replace(view, reports=frozen({**view.reports, **gathered}))
        draws = [
            selector.select(state, pool, full_view, default_rng([seed, round, 1])) for _ in range(2)
        ]
        np.testing.assert_array_equal(*draws)
        chosen = draws[0]
        assert set(chosen) <= set(pool)
        if isinstance(selector, abilities.UpdateWeighing):
            weights = selector.weights(state, pool, chosen, full_view)
            assert weights.shape == chosen.shape and (weights > 0).all()
        else:
            assert len(set(chosen.tolist())) == len(chosen)
        assert len(chosen) == cohort or (name in MAY_BE_SMALLER and 1 <= len(chosen) < cohort)
        after = {need for need in selector.needs if NEEDS[need].gathered == "after"}
        chosen = np.unique(chosen)
        reports = {name: reported(name, len(chosen), rng) for name in sorted(after)}
        silent = rng.random(len(chosen)) < 0.3
        for report in reports.values():
            report[silent] = np.nan
        state = selector.observe(state, chosen, frozen(reports), full_view)
