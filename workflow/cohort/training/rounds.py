"""The one loop over rounds of every procedure. A procedure says what happens in a round; here are
the ledger, due evaluations, the test for divergence, the history, and where a run can resume."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from math import isnan
from statistics import median
from typing import ClassVar

import numpy as np
import safetensors.torch
from torch import nn

from cohort.training import contract, evaluation, evaluators, updates
from cohort.training.ledger import Cursor, Ledger
from cohort.training.task import RunState, Task


class Rounds(ABC):
    """The rounds of one procedure on one task. What must survive a round is in the state, so that a
    run can resume after any. `costs` are recorded in every round, even if they are zero."""

    costs: ClassVar[tuple[str, ...]] = "bytes_down", "bytes_up", "client_steps", "selection_samples"

    def __init__(self, task: Task):
        self.task = task
        self.cursor = Cursor()
        self.local_models: updates.Updates | None = None  # of the last round's cohort

    def begin(self) -> RunState:
        """The state before the first round."""
        return RunState(self.task.initial_weights(), {}, {})

    @abstractmethod
    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        """Play a round: return the state after it, with its cohort and metrics in the ledger.
        `state` itself stays as it is: a round that is interrupted is played again from it."""

    def network(self, round: int) -> nn.Module:
        """The network to which the weights belong after a round."""
        return self.task.model

    @cached_property
    def transfer_seconds(self) -> float:
        """The seconds of a transfer of the model, measured once: to save and load its weights."""
        seconds, model = [], self.task.model
        for _ in range(3):  # the first one is slower
            started = time.perf_counter()
            weights = {name: values.contiguous() for name, values in model.state_dict().items()}
            model.load_state_dict(safetensors.torch.load(safetensors.torch.save(weights)))
            seconds.append(time.perf_counter() - started)
        return median(seconds)

    def client_arrays(self, state: RunState) -> dict[str, np.ndarray]:
        """Further arrays for the record, with one entry for each client."""
        return {}

    def evaluate(self, state: RunState, ledger: Ledger) -> None:
        """Run the evaluators due after a round, and enter their metrics into the ledger."""
        for evaluator in (kind() for kind in evaluators.EVALUATORS.values()):
            is_planned = state.round in evaluator.rounds(self.task) and not state.diverged
            if is_planned and evaluator.applies(self.task):
                network = self.network(state.round)
                metrics = evaluator.evaluate(self.task, network, state, self.local_models)
                method = f"evaluator '{evaluator.name}'"
                ledger.record(**contract.checked_metrics(metrics, evaluator.metrics, method))

    def run(self, state: RunState, cursor: Cursor | None = None) -> Iterator[RunState]:
        """Play the remaining rounds, yielding the state after each, until weights are not finite.
        `cursor` says where in the first round to begin, and saves states inside rounds."""
        strategy = self.task.settings.strategy
        self.cursor = cursor or Cursor()
        for round in range(state.round + 1, self.task.settings.rounds + 1):
            ledger = self.cursor.begin_round(self.costs)
            with contract.locate_errors(strategy, round):
                after = self.play(state, round, ledger)
            state = replace(after, round=round, diverged=not evaluation.all_finite(after.weights))
            with contract.locate_errors(strategy, round):
                with ledger.timed("evaluating"):
                    self.evaluate(state, ledger)
                if isnan(ledger.metrics.get("test_loss", 0)):  # outputs of finite weights overflow
                    state = replace(state, diverged=True)
                ledger.close(state.history, round)
            self.local_models = None
            self.cursor.end_round()
            yield state
            if state.diverged:
                return
