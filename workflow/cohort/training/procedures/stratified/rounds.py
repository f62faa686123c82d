"""Rounds of Stratify's procedures and of sequential federated learning."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from cohort.core.randomness import generator
from cohort.training.ledger import Ledger
from cohort.training.procedures.centralized.rounds import CentralizedRounds
from cohort.training.procedures.fedtan.rounds import charge_exchange
from cohort.training.procedures.stratified import (
    Sequential,
    StratifiedBatch,
    StratifiedHybrid,
    StratifiedSingle,
)
from cohort.training.procedures.stratified.label_schedule import (
    ClientData,
    Epoch,
    label_frequencies,
    schedule_batches,
    schedule_single_samples,
)
from cohort.training.rounds import Rounds
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers import TRAINERS
from cohort.training.trainers.local_work import LocalWork
from cohort.training.updates import Weights, size_in_bytes

LABEL_BYTES = 4  # of a placeholder


class HandoffRounds(Rounds):
    """Base of the procedures in which clients hand the model on to each other."""

    costs: ClassVar[tuple[str, ...]] = ("bytes_down", "bytes_up", "bytes_between", "client_steps")

    def __init__(self, procedure: StratifiedSingle | Sequential, task: Task):
        super().__init__(task)
        data = task.objective, task.train_samples, task.shards.indices
        self.procedure = procedure
        self.trainer = TRAINERS[task.trainer](task.model, task.settings, *data)

    def begin(self) -> RunState:
        return RunState(self.task.initial_weights(), {}, {})

    def train_work(self, work: LocalWork, ledger: Ledger) -> tuple[Weights, float]:
        """Train by this work; return the weights after it and its mean loss."""
        with ledger.timed("training"):
            updates = self.trainer.train([work], work.weights, self.cursor)
        ledger.stepped(int(updates.steps.sum()))
        return updates.client_weights(0), float(updates.losses[0])

    def charge(self, weights: Weights, transfers: int, ledger: Ledger, downloads: int = 1) -> None:
        """Charge the model's way in a round: to the first client, from client to client and back to
        the server. `downloads` counts the clients to which the server sends it."""
        size = size_in_bytes(weights)
        ledger.sent("model", size, to="clients", copies=downloads)
        ledger.sent("model", size, to="client", copies=transfers)
        ledger.sent("model", size, to="server")
        ledger.measured(model_transfers=transfers)
        self.charge_transfers(transfers + 1, ledger)


class StratifiedSingleRounds(HandoffRounds):
    """Epochs of one SGD step per sample, in the order of a schedule of labels. Clients hand on only
    the weights, so an epoch is simulated as one client's work on all its samples. After each epoch
    the server sends the model to everybody, before the first one to the first client."""

    procedure: StratifiedSingle

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        chunk, retained = self.procedure.chunk, self.procedure.retained
        options = self.procedure.schedule_options()
        with ledger.timed("selecting"):
            data, rng = client_data(self.task), schedule_rng(self.task, round)
            epoch = schedule_single_samples(data, rng, chunk=chunk, retained=retained, **options)
        work = epoch_work(epoch, state.weights, round, self.trainer.lr(round))
        weights, loss = self.train_work(work, ledger)
        downloads = self.task.settings.clients + (round == 1)
        self.charge(weights, epoch.transfers, ledger, downloads)
        ledger.sent("labels", LABEL_BYTES, to="clients", copies=len(epoch.samples))
        ledger.cohort = np.unique(epoch.clients)
        ledger.measured(train_loss=loss, tasks=len(epoch.tasks))
        return replace(state, weights=weights)


class StratifiedBatchRounds(CentralizedRounds):
    """Epochs of batches in the order of a schedule of labels. The server steps by the sum of
    clients' gradients, which is the gradient of the batch as if it were in one place."""

    costs: ClassVar[tuple[str, ...]] = ("bytes_down", "bytes_up", "client_steps")

    def __init__(self, procedure: StratifiedBatch, task: Task):
        self.procedure, self.data = procedure, client_data(task)
        super().__init__(procedure, task)

    def epoch_size(self) -> int:
        return int(label_frequencies(self.data.counts, bool(self.procedure.uniform)).sum())

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        after = super().play(state, round, ledger)
        self.charge_transfers(self.batches, ledger)
        return after

    def work(self, state: RunState, round: int, ledger: Ledger) -> LocalWork:
        batch, options = self.task.settings.batch, self.procedure.schedule_options()
        with ledger.timed("selecting"):
            rng = schedule_rng(self.task, round)
            epoch = schedule_batches(self.data, rng, batch=batch, **options)
        contributions, size = (
            int(epoch.contributor_counts(batch).sum()),
            size_in_bytes(state.weights),
        )
        ledger.sent("model", size, to="clients", copies=contributions)
        ledger.sent("labels", LABEL_BYTES, to="clients", copies=len(epoch.samples))
        ledger.sent("gradient", size, to="server", copies=contributions)
        charge_exchange(state.weights, int(epoch.sharer_counts(batch).sum()), ledger)
        ledger.stepped(contributions)
        ledger.cohort = np.unique(epoch.clients)
        ledger.measured(contributions=contributions)
        return epoch_work(epoch, state.weights, round, self.trainer.lr(round))


class StratifiedHybridRounds(Rounds):
    """Epochs of batches, then epochs of single samples, each as in the procedure that has nothing
    else."""

    costs: ClassVar[tuple[str, ...]] = HandoffRounds.costs

    def __init__(self, procedure: StratifiedHybrid, task: Task):
        super().__init__(task)
        self.epochs = procedure.epochs  # of batches
        batch, single = procedure.phases(task)
        self.batches, self.single = (part.procedure.rounds_of(part) for part in (batch, single))

    def begin(self) -> RunState:
        return self.batches.begin()

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        part = self.batches if round <= self.epochs else self.single
        part.cursor = self.cursor
        if round == self.epochs + 1:
            ledger.sent("model", size_in_bytes(state.weights), to="clients")  # to the first client
        return part.play(state, round, ledger)


class SequentialRounds(HandoffRounds):
    """Train all clients in random order, each from the weights of the one before."""

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        rng = generator(self.task.settings.seed, "sequence", round=round)
        order = [int(client) for client in rng.permutation(self.task.settings.clients)]
        weights, losses = state.weights, []
        for client in order:
            (work,) = self.trainer.full_work(weights, [client], round)
            weights, loss = self.train_work(work, ledger)
            losses.append(loss)
        self.charge(weights, len(order) - 1, ledger)
        ledger.cohort = np.array(order)
        ledger.measured(train_loss=float(np.nanmean(losses)))
        return replace(state, weights=weights)


def client_data(task: Task) -> ClientData:
    """The samples of each label that each client holds."""
    labels = task.train_samples.labels.cpu().numpy()
    return ClientData(task.shards.indices, labels, task.shards.label_counts.T)


def schedule_rng(task: Task, round: int) -> np.random.Generator:
    """The generator of an epoch's label schedule and its clients."""
    return generator(task.settings.seed, "label schedule", round=round)


def epoch_work(epoch: Epoch, weights: Weights, round: int, lr: float) -> LocalWork:
    """Local work that takes an epoch's samples in the order of the label schedule."""
    return LocalWork(
        client=0, round=round, weights=weights, samples=epoch.samples, lr=lr, in_order=True
    )
