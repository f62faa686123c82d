"""Rounds of FedTAN: those of FedAvg, with a first step that clients take together."""

from __future__ import annotations

from cohort.training.ledger import Ledger
from cohort.training.procedures.federated import Federated
from cohort.training.procedures.federated.rounds import FederatedRounds, Pool
from cohort.training.procedures.fedtan import FedTan
from cohort.training.procedures.fedtan.first_step import FirstStepTogether
from cohort.training.procedures.fedtan.shared_norm import charge_exchange
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers.local_work import LocalWork
from cohort.training.updates import Updates


class FedTanRounds(FederatedRounds):
    """Federated rounds in whose first local step clients share batch statistics, which is
    billed."""

    def __init__(self, procedure: FedTan, task: Task):
        super().__init__(Federated(), task)
        data = task.objective, task.train_samples, task.shards.indices
        self.trainer = self.together = FirstStepTogether(task.model, task.settings, *data)

    def train(self, state: RunState, works: list[LocalWork], pool: Pool, ledger: Ledger) -> Updates:
        updates = super().train(state, works, pool, ledger)
        charge_exchange(state.weights, len(self.together.first), ledger)
        return updates
