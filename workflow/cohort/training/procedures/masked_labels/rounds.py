"""The one round of masked labels: a run of the encrypted protocol."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from cohort.core.errors import UserError
from cohort.privacy.masked_labels import Client, Exchange, new_key
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
        ledger.cohort = np.arange(len(counts))
        key = new_key()
        clients = [Client(key, row) for row in counts.tolist()]
        exchange = Exchange(clients, self.task.classes, ledger.sent)
        for name, step, share in (
            ("encrypting", exchange.encrypt, len(counts)),
            ("unique_list", exchange.list_labels, 1),
            ("mapping", exchange.map_labels, len(counts)),
            ("counts", exchange.count, 1),
        ):
            started = time.perf_counter()
            step()
            ledger.measured(**{f"seconds_{name}": (time.perf_counter() - started) / share})
        ledger.measured(comparisons=exchange.comparisons)
        decrypted = {
            (label, exchange.counts[placeholder])
            for client in clients
            for label, placeholder in client.placeholders.items()
        }
        exact = {(label, total) for label, total in enumerate(counts.sum(axis=0).tolist()) if total}
        if decrypted != exact or len(exchange.counts) != len(exact):
            raise UserError(
                "the decrypted label counts differ from the clients' own, first in "
                f"{sorted(decrypted ^ exact)[:3]} (label, count): a defect of the protocol, "
                "please report it"
            )
        return state

    def evaluate(self, state: RunState, ledger: Ledger) -> None:
        """Evaluate nothing: the accuracy of an untrained network says nothing."""
