"""Federated learning: choose a cohort, train it, merge its updates, and again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cohort.cell.evaluations import is_evaluated
from cohort.core.randomness import generator
from cohort.selection.entropy import entropy_bits
from cohort.selection.selector import Need, View
from cohort.training.procedures.procedure import Procedure

if TYPE_CHECKING:
    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.trainers.base import Probed, Trainer
    from cohort.training.updates import Weights


NORM_BYTES = 8  # of the one number that a probed client sends


@dataclass(frozen=True, kw_only=True)
class Federated(Procedure):
    """The loop that the papers' algorithm boxes print."""

    name: ClassVar[str] = "federated"

    def check(self, settings: Mapping[str, Any]) -> None:
        if settings["schedule"] != "constant":
            raise ValueError(
                f"follows lr_decay, not the schedule '{settings['schedule']}', which is for centralized runs; leave it out"
            )

    def begin(self, task: Task) -> RunState:
        from cohort.training.state import RunState

        weights = task.initial_weights()
        return RunState(
            weights,
            task.server.begin(_trained(task, weights)),
            task.selector.begin(view_of(task), generator(task.settings.seed, "selection")),
        )

    def rounds(self, task: Task, state: RunState) -> Iterator[RunState]:
        from cohort.training.evaluation import all_finite
        from cohort.training.needs import Lookout, bytes_each, bytes_once, reports
        from cohort.training.orders import orders_of
        from cohort.training.trainers import TRAINERS
        from cohort.training.updates import size_in_bytes

        settings, selector, history = task.settings, task.selector, state.history
        trainer = TRAINERS[task.trainer](
            task.model, settings, task.objective, task.train_samples, task.shards.indices
        )
        lookout = Lookout(
            trainer, task.test_samples, task.reserved, task.train_samples, task.shards.indices
        )
        view, candidates = view_of(task), np.arange(settings.clients)
        model_bytes = task.server.copies * size_in_bytes(state.weights)
        once, each = (
            bytes_once(selector.needs, settings.clients, task.classes),
            bytes_each(selector.needs, task.classes),
        )

        for round in range(state.round + 1, settings.rounds + 1):
            started = time.perf_counter()
            draw = partial(generator, settings.seed, round=round)
            probed = (
                _probe(task, trainer, state, selector.draw_pool(candidates, view, draw("pool")))
                if selector.probing()
                else None
            )
            cohort = selector.select(state.selector, candidates, view, draw("selection"))
            there = task.participation.answers(cohort, draw("answers"))
            quotas = selector.quotas(cohort, view)
            updates = trainer.train(
                state.weights,
                cohort[there],
                round,
                probed,
                orders_of(task, cohort, quotas, state.server, round),
            )
            measured, looks = reports(selector.needs, updates, lookout)
            sizes = updates.sizes.cpu().numpy()
            rows = np.flatnonzero(selector.keep(measured, sizes) & (sizes > 0))
            if len(
                rows
            ):  # clients without samples have no say, and a cohort of them alone changes nothing
                heard, before = updates.of_rows(rows.tolist()), _trained(task, state.weights)
                statistics = heard.only(state.weights.keys() - before.keys()).mean(
                    heard.sizes / heard.sizes.sum()
                )
                heard = heard.only(before)
                history.add(
                    round,
                    train_loss=float(heard.losses.mean()),
                    update_norm=float(heard.distances(before).mean()),
                )
                after, state.server, facts = task.server.apply(before, heard, state.server)
                state.weights = after | statistics
                history.add(round, **facts)
            state.selector = selector.observe(state.selector, cohort, spread(measured, there), view)
            state.round, state.diverged = round, not all_finite(state.weights)

            history.cohorts.append(cohort)
            held = task.shards.label_counts[cohort] if quotas is None else quotas
            history.add(round, cohort_entropy=float(entropy_bits(held[there][rows].sum(axis=0))))
            if len(rows) < len(cohort):
                history.add(round, updates_used=len(rows))
            if (
                is_evaluated(settings.evaluate_every, round)
                or round == settings.rounds
                or state.diverged
            ):
                history.add(round, **_evaluations(task, state))
            history.add_cost(
                round,
                bytes_down=(len(probed.pool) if probed else len(cohort)) * model_bytes,
                bytes_up=len(sizes) * (model_bytes + each)
                + (once if round == 1 else 0)
                + (NORM_BYTES * len(probed.pool) if probed else 0),
                client_steps=int(updates.steps.sum())
                + (int(probed.updates.steps.sum()) if probed else 0),
                selection_samples=looks,
                seconds=time.perf_counter() - started,
            )
            yield state
            if state.diverged:
                return


def _trained(task: Task, weights: Weights) -> Weights:
    """The weights that are trained, without the statistics of normalizations."""
    return {name: weights[name] for name, _ in task.model.named_parameters()}


def _probe(task: Task, trainer: Trainer, state: RunState, pool: np.ndarray) -> Probed:
    """Train the pool for a moment, and tell the selector how far each model moved."""
    probed = trainer.probe(state.weights, pool, state.round + 1, task.selector.probing())
    before = _trained(task, state.weights)
    norms = probed.updates.only(before).distances(before).cpu().numpy()
    state.history.pools.append(pool)
    state.history.norms.append(norms)
    state.selector = task.selector.look(state.selector, pool, norms)
    return probed


def _evaluations(task: Task, state: RunState) -> dict[str, float]:
    """How the global model does on the test samples and on those set aside for validation."""
    from cohort.training.evaluation import evaluate

    found = evaluate(task.model, state.weights, task.test_samples, task.test).of("test")
    if len(task.validation):
        found |= evaluate(task.model, state.weights, task.train_samples, task.validation).of(
            "validation"
        )
    return found


def spread(measured: Mapping[Need, np.ndarray], there: np.ndarray) -> dict[Need, np.ndarray]:
    """What was measured of those who answered as a row for each client of the cohort, NaN for those who did not."""
    full = {
        need: np.full((len(there), *values.shape[1:]), np.nan) for need, values in measured.items()
    }
    for need, values in measured.items():
        full[need][there] = values
    return full


def view_of(task: Task) -> View:
    """What its selector may know of a task."""
    counts = task.shards.label_counts if "label_counts" in task.selector.needs else None
    return View(
        clients=task.settings.clients,
        cohort=task.settings.cohort,
        rounds=task.settings.rounds,
        sizes=task.sizes,
        label_counts=counts,
    )
