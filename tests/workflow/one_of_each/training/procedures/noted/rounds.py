"""What happens in a round that is noted."""

from __future__ import annotations

from cohort.training.ledger import Ledger
from cohort.training.procedures.federated import FederatedRounds
from cohort.training.task import RunState


class NotedRounds(FederatedRounds):
    """A federated round with one metric more."""

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        ledger.record(parity=round % 2)
        return super().play(state, round, ledger)
