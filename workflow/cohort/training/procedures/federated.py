"""Federated learning: choose a cohort, train it, merge its updates, and again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cohort.cell import is_evaluated
from cohort.randomness import generator
from cohort.selection.entropy import entropy_bits
from cohort.selection.selector import View
from cohort.training.procedures.procedure import Procedure

if TYPE_CHECKING:
    from cohort.training.state import RunState
    from cohort.training.task import Task


NORM_BYTES = 8  # of the one number that a probed client sends


@dataclass(frozen=True, kw_only=True)
class Federated(Procedure):
    """The loop that the papers' algorithm boxes print."""

    name: ClassVar[str] = "federated"

    def check(self, settings: Mapping[str, Any]) -> None:
        if settings["schedule"] != "constant":
            raise ValueError(f"follows lr_decay, not the schedule '{settings['schedule']}', which is for centralized runs; leave it out")

    def begin(self, task: Task) -> RunState:
        from cohort.training.state import RunState

        weights = task.initial_weights()
        trained = {name: weights[name] for name, _ in task.model.named_parameters()}
        return RunState(weights, task.server.begin(trained), task.selector.begin(_view(task), generator(task.settings.seed, "selection")))

    def rounds(self, task: Task, state: RunState) -> Iterator[RunState]:
        from cohort.training.evaluation import all_finite, evaluate
        from cohort.training.needs import Lookout, bytes_once, reports
        from cohort.training.serial import SerialTrainer
        from cohort.training.updates import size_in_bytes

        settings, selector, history = task.settings, task.selector, state.history
        trainer = SerialTrainer(task.model, settings, task.objective, task.train_samples, task.shards.indices)
        view, lookout = _view(task), Lookout(task.model, task.test_samples, task.reserved)
        candidates = np.arange(settings.clients)
        model_bytes = size_in_bytes(state.weights)
        once = bytes_once(selector.needs, settings.clients, task.classes)

        for round in range(state.round + 1, settings.rounds + 1):
            started = time.perf_counter()
            probed = None
            if selector.probing():
                pool = selector.draw_pool(candidates, view, generator(settings.seed, "pool", round=round))
                probed = trainer.probe(state.weights, pool, round, selector.probing())
                norms = probed.updates.distances(state.weights).cpu().numpy()
                history.pools.append(pool)
                history.norms.append(norms)
                state.selector = selector.look(state.selector, pool, norms)
            cohort = selector.select(state.selector, candidates, view, generator(settings.seed, "selection", round=round))
            updates = trainer.train(state.weights, cohort, round, probed)
            trained = np.flatnonzero(task.sizes[cohort]).tolist()
            if trained:  # clients without samples have no say, and a cohort of them alone changes nothing
                heard = updates if len(trained) == len(cohort) else updates.of_rows(trained)
                history.add(round, train_loss=float(heard.losses.mean()), update_norm=float(heard.distances(state.weights).mean()))
                state.weights, state.server, facts = task.server.apply(state.weights, heard, state.server)
                history.add(round, **facts)
            measured, looks = reports(selector.needs, updates, lookout)
            state.selector = selector.observe(state.selector, cohort, measured, view)
            state.round, state.diverged = round, not all_finite(state.weights)

            history.cohorts.append(cohort)
            pooled = task.shards.label_counts[cohort].sum(axis=0)
            history.add(round, cohort_entropy=float(entropy_bits(pooled)))
            if is_evaluated(settings.evaluate_every, round) or round == settings.rounds or state.diverged:
                history.add(round, **evaluate(task.model, state.weights, task.test_samples, task.test).of("test"))
                if len(task.validation):
                    history.add(round, **evaluate(task.model, state.weights, task.train_samples, task.validation).of("validation"))
            history.add_cost(
                round,
                bytes_down=(len(cohort) if probed is None else len(probed.pool)) * model_bytes,
                bytes_up=len(cohort) * model_bytes + (once if round == 1 else 0) + (0 if probed is None else NORM_BYTES * len(probed.pool)),
                client_steps=int(updates.steps.sum()) + (0 if probed is None else int(probed.updates.steps.sum())),
                selection_samples=looks,
                seconds=time.perf_counter() - started,
            )
            yield state
            if state.diverged:
                return


def _view(task: Task) -> View:
    counts = task.shards.label_counts if "label_counts" in task.selector.needs else None
    return View(
        clients=task.settings.clients, cohort=task.settings.cohort, rounds=task.settings.rounds, sizes=task.sizes, label_counts=counts
    )
