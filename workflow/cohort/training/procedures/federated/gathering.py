"""Gathers what a selector needs to be told, and enters what that costs into the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cohort.needs import NEEDS, Need
from cohort.training.contract.mistakes import WrongAnswer
from cohort.training.contract.read_only import read_only
from cohort.training.ledger import Ledger
from cohort.training.procedures.federated.evaluation_context import ModelEvaluations
from cohort.training.task import Task
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.local_work import LocalWork
from cohort.training.updates import Updates, Weights


class NeedGatherer:
    """Gathers the needs of a selector from the clients of a task, and charges what they send."""

    def __init__(self, names: Iterable[str], task: Task):
        self.task = task
        self.all: list[Need] = [NEEDS[name]() for name in sorted(names)]

    def gathered_at(self, when: str) -> list[Need]:
        """The needs that are gathered `once`, `before` choosing or `after` training."""
        return [need for need in self.all if need.gathered == when]

    def gather_once(self, seconds: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Gather what all clients report before the first round, by need; a round is expected to
        take each of them these `seconds`."""
        everybody = read_only(np.arange(self.task.settings.clients))
        context = ModelEvaluations(self.task, everybody, Ledger(), seconds=seconds)
        return {need.name: _measure_need(need, context) for need in self.gathered_at("once")}

    def charge_setup(self, ledger: Ledger) -> None:
        """Record what all clients uploaded before the first round."""
        self._charge(self.gathered_at("once"), self.task.settings.clients, ledger)

    def gather_before_choosing(
        self, weights: Weights, pool: np.ndarray, round: int, ledger: Ledger
    ) -> dict[str, np.ndarray]:
        """Gather what the clients of a pool report of the global model, by need: a row for each
        client of the federation, NaN for those outside the pool."""
        needs = self.gathered_at("before")
        context = ModelEvaluations(self.task, read_only(pool), ledger, weights=weights, round=round)
        with ledger.timed("selecting"):
            answers = {need.name: _measure_need(need, context) for need in needs}
        self._charge(needs, len(pool), ledger)
        clients = self.task.settings.clients
        return {name: scatter_rows(values, pool, clients) for name, values in answers.items()}

    def gather_after_training(
        self,
        weights: Weights,
        updates: Updates,
        trainer: Trainer,
        ledger: Ledger,
        seconds: np.ndarray | None = None,
        works: Sequence[LocalWork] = (),
    ) -> dict[str, np.ndarray]:
        """Gather what the selector needs of the clients that answered, by need: one row each. They
        began with these weights and took these `seconds` for their `works`."""
        needs = self.gathered_at("after")
        clients = read_only(np.array(updates.clients, dtype=np.int64))
        context = ModelEvaluations(
            self.task,
            clients,
            ledger,
            trainer=trainer,
            weights=weights,
            local_models=updates,
            seconds=seconds,
            works=works,
        )
        with ledger.timed("selecting"):
            answers = {need.name: _measure_need(need, context) for need in needs}
        self._charge(needs, len(clients), ledger)
        return answers

    def _charge(self, needs: Iterable[Need], clients: int, ledger: Ledger) -> None:
        for need in needs:
            size = need.upload(self.task.classes)
            if size:
                ledger.sent(need.name, size, to="server", copies=clients)


def _measure_need(need: Need, context: ModelEvaluations) -> np.ndarray:
    """Measure a need and check the result: numbers, one row for each client that is asked."""
    answers = np.asarray(need.measure(context))
    if answers.shape[:1] != (len(context.clients),) or answers.dtype.kind not in "fiub":
        raise WrongAnswer(
            f"need '{need.name}' returned an array of shape {answers.shape} and type "
            f"{answers.dtype}, "
            f"not a row of numbers for each of {len(context.clients)} clients"
        )
    return answers


def scatter_rows(values: np.ndarray, positions: np.ndarray, count: int) -> np.ndarray:
    """Put rows at their positions among `count` rows, NaN in all others."""
    rows = np.full((count, *values.shape[1:]), np.nan)
    rows[positions] = values
    return rows
