"""The one round of masked labels: a run of the encrypted protocol."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from cohort.core.errors import UserError
from cohort.privacy.masked_labels import Exchange
from cohort.training.ledger import Ledger
from cohort.training.procedures.masked_labels import MaskedLabels
from cohort.training.rounds import Rounds
from cohort.training.state import RunState
from cohort.training.task import Task


class MaskedLabelsRounds(Rounds):
    """One run of the protocol with the label counts of all clients; no weight changes."""

    costs: ClassVar[tuple[str, ...]] = ("bytes_down", "bytes_up", "bytes_between")

    def __init__(self, procedure: MaskedLabels, task: Task):
        super().__init__(task)

    def begin(self) -> RunState:
        return RunState(self.task.initial_weights(), {}, {})

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        counts = self.task.shards.label_counts
        clients = len(counts)
        ledger.cohort = np.arange(clients)
        exchange = Exchange.begin(counts.tolist(), self.task.classes, ledger.sent)
        ledger.measured(seconds_encrypting=_measure_seconds(exchange.encrypt) / clients)
        ledger.measured(seconds_unique_list=_measure_seconds(exchange.list_labels))
        ledger.measured(seconds_mapping=_measure_seconds(exchange.map_labels) / clients)
        ledger.measured(seconds_counts=_measure_seconds(exchange.count))
        ledger.measured(comparisons=exchange.comparisons)
        _check(exchange, counts)
        return state

    def evaluate(self, state: RunState, ledger: Ledger) -> None:
        """Evaluate nothing: the accuracy of an untrained network says nothing."""


def _measure_seconds(step: Callable[[], None]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def _check(exchange: Exchange, counts: np.ndarray) -> None:
    """Raise UserError unless the decrypted counts are those of all clients' labels."""
    decrypted = {
        (label, exchange.counts[placeholder])
        for client in exchange.clients
        for label, placeholder in client.placeholders.items()
    }
    exact = {(label, total) for label, total in enumerate(counts.sum(axis=0).tolist()) if total}
    if decrypted != exact or len(exchange.counts) != len(exact):
        wrong = sorted(decrypted ^ exact)[:3]
        raise UserError(
            f"the decrypted label counts differ from the clients' own, first in {wrong} "
            "(label, count): a defect of the protocol, please report it"
        )
