"""Rounds in which one model is trained and nothing is averaged: centralized training, sequential
federated learning and Stratify's procedures; and the rounds of masked labels, which train none."""

import time
import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np

from cohort.core import UserError, randomness
from cohort.privacy.masked_labels import Client, Server, new_key
from cohort.training.ledger import Ledger
from cohort.training.procedures import fedtan, label_schedule, procedure
from cohort.training.rounds import Rounds
from cohort.training.task import RunState, Task
from cohort.training.trainers import serial
from cohort.training.updates import LocalWork, Weights, local_steps, size_in_bytes

LABEL_BYTES = 4  # of a placeholder


class CentralizedRounds(Rounds):
    """Rounds that are epochs of one client with all data, under one optimizer and one schedule."""

    costs: ClassVar[tuple[str, ...]] = ("client_steps",)

    def __init__(self, task: Task):
        super().__init__(task)
        settings = task.settings
        self.trainer = serial.SerialTrainer(task)
        self.batches = local_steps(self.epoch_size(), settings)[1]  # in an epoch
        self.optimizer = serial.torch_optimizer(settings, task.model.parameters(), settings.lr)
        self.schedule = task.schedule.build(self.optimizer, settings.rounds, self.batches)
        self.scheduled = 0  # how often the schedule has stepped

    def epoch_size(self) -> int:
        """The number of samples in an epoch."""
        return len(self.task.shards.indices[0])

    def work(self, state: RunState, round: int, ledger: Ledger) -> LocalWork:
        """Enter an epoch's cohort and costs into the ledger; return its samples as local work."""
        (work,) = self.trainer.full_work(state.weights, [0], round)
        ledger.cohort = np.array([0])
        ledger.add("client_steps", local_steps(len(work.samples), self.task.settings)[0])
        return work

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        model = self.task.model
        model.load_state_dict(state.weights)
        serial.load_optimizer_state(self.optimizer, model, state.server)
        self._advance_schedule(state)
        ledger.record(learning_rate=self.optimizer.param_groups[0]["lr"])
        work = self.work(state, round, ledger)
        with ledger.timed("training"):
            losses = self.trainer.run(work, self.optimizer, (), self._after_step)
        ledger.record(train_loss=float(losses.mean()))
        weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        return replace(state, weights=weights, server=serial.optimizer_state(self.optimizer, model))

    def _after_step(self, *_: object) -> None:
        if self.task.schedule.by_batch:
            self.schedule.step()
            self.scheduled += 1

    def _advance_schedule(self, state: RunState) -> None:
        """Bring the schedule to where the state stands. It has no state of its own to save: it is
        called as often as before again, with the validation losses of the history."""
        schedule, losses = self.task.schedule, state.history.metrics.get("validation_loss", [])
        target = state.round * (self.batches if schedule.by_batch else 1)
        with warnings.catch_warnings():
            # torch warns of a schedule that steps before the optimizer, as it does in a new process
            warnings.simplefilter("ignore", UserWarning)
            for step in range(self.scheduled, target):
                self.schedule.step(*([losses[step][1]] if schedule.watches_loss else []))
        self.scheduled = target


class HandoffRounds(Rounds):
    """Base of the procedures in which clients hand the model on to each other."""

    costs: ClassVar[tuple[str, ...]] = ("bytes_down", "bytes_up", "bytes_between", "client_steps")

    def __init__(self, task: Task):
        super().__init__(task)
        self.trainer = task.trainer(task)

    def train_work(self, work: LocalWork, ledger: Ledger) -> tuple[Weights, float]:
        """Train by this work; return the weights after it and its mean loss."""
        with ledger.timed("training"):
            updates = self.trainer.train([work], work.weights, self.cursor)
        ledger.add("client_steps", int(updates.steps.sum()))
        return updates.client_weights(0), float(updates.losses[0])

    def charge(self, weights: Weights, transfers: int, ledger: Ledger, downloads: int = 1) -> None:
        """Charge the transfers of the model in a round: to the first client, from client to client
        and back to the server. `downloads` counts the clients to which the server sends it."""
        size = size_in_bytes(weights)
        ledger.add_traffic("model", size, to="clients", copies=downloads)
        ledger.add_traffic("model", size, to="client", copies=transfers)
        ledger.add_traffic("model", size, to="server")
        ledger.record(model_transfers=transfers)
        ledger.add("seconds_transfers", (transfers + 1) * self.transfer_seconds)


class SequentialRounds(HandoffRounds):
    """Train all clients in random order, each from the weights of the one before."""

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        rng = randomness.generator(self.task.settings.seed, "sequence", round=round)
        order = rng.permutation(self.task.settings.clients)
        weights, losses = state.weights, []
        for client in order.tolist():
            (work,) = self.trainer.full_work(weights, [client], round)
            weights, loss = self.train_work(work, ledger)
            losses.append(loss)
        self.charge(weights, len(order) - 1, ledger)
        ledger.cohort = order
        ledger.record(train_loss=float(np.nanmean(losses)))
        return replace(state, weights=weights)


class StratifiedSingleRounds(HandoffRounds):
    """Epochs of one SGD step per sample, in the order of a schedule of labels. Clients hand on only
    the weights, so an epoch is simulated as one client's work on all its samples. After each epoch
    the server sends the model to everybody, before the first one to the first client."""

    def __init__(self, procedure: procedure.StratifiedSingle, task: Task):
        super().__init__(task)
        self.procedure = procedure

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        chunks = self.procedure.chunk, self.procedure.retained, bool(self.procedure.weighted)
        with ledger.timed("selecting"):
            data, rng = client_data(self.task), schedule_rng(self.task, round)
            epoch = label_schedule.schedule_single_samples(data, rng, *chunks)
        work = epoch_work(epoch, state.weights, round, self.trainer.lr(round))
        weights, loss = self.train_work(work, ledger)
        self.charge(weights, epoch.transfers, ledger, self.task.settings.clients + (round == 1))
        ledger.add_traffic("labels", LABEL_BYTES, to="clients", copies=len(epoch.samples))
        ledger.cohort = np.unique(epoch.clients)
        ledger.record(train_loss=loss, tasks=len(epoch.tasks))
        return replace(state, weights=weights)


class StratifiedBatchRounds(CentralizedRounds):
    """Epochs of batches in the order of a schedule of labels. The server steps by the sum of
    clients' gradients, which is the gradient of the batch as if it were in one place."""

    costs: ClassVar[tuple[str, ...]] = ("bytes_down", "bytes_up", "client_steps")

    def __init__(self, procedure: procedure.StratifiedBatch, task: Task):
        self.weighted, self.data = bool(procedure.weighted), client_data(task)
        super().__init__(task)

    def epoch_size(self) -> int:
        return int(label_schedule.label_frequencies(self.data.counts).sum())

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        after = super().play(state, round, ledger)
        ledger.add("seconds_transfers", self.batches * self.transfer_seconds)
        return after

    def work(self, state: RunState, round: int, ledger: Ledger) -> LocalWork:
        batch, rng = self.task.settings.batch, schedule_rng(self.task, round)
        with ledger.timed("selecting"):
            epoch = label_schedule.schedule_batches(self.data, rng, batch, self.weighted)
        contributions, size = epoch.contributions(batch), size_in_bytes(state.weights)
        ledger.add_traffic("model", size, to="clients", copies=contributions)
        ledger.add_traffic("labels", LABEL_BYTES, to="clients", copies=len(epoch.samples))
        ledger.add_traffic("gradient", size, to="server", copies=contributions)
        # a last batch of one sample has no variance, so nothing is shared for it
        alone = len(epoch.samples) % batch == 1
        fedtan.charge_exchange(state.weights, contributions - alone if batch > 1 else 0, ledger)
        ledger.add("client_steps", contributions)
        ledger.cohort = np.unique(epoch.clients)
        ledger.record(contributions=contributions)
        return epoch_work(epoch, state.weights, round, self.trainer.lr(round))


class StratifiedHybridRounds(Rounds):
    """Epochs of batches, then epochs of single samples, each as in its own procedure."""

    costs: ClassVar[tuple[str, ...]] = HandoffRounds.costs

    def __init__(self, procedure: procedure.StratifiedHybrid, task: Task):
        super().__init__(task)
        self.epochs = procedure.epochs  # of batches
        batch, single = procedure.phases(task)
        self.batches, self.single = (part.procedure.rounds_of(part) for part in (batch, single))

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        part = self.batches if round <= self.epochs else self.single
        part.cursor = self.cursor
        if round == self.epochs + 1:  # the first client needs the model
            ledger.add_traffic("model", size_in_bytes(state.weights), to="clients")
        return part.play(state, round, ledger)


def client_data(task: Task) -> label_schedule.ClientData:
    """The samples of each label that each client holds."""
    labels, shards = task.train_samples.labels.cpu().numpy(), task.shards
    return label_schedule.ClientData(shards.indices, labels, shards.label_counts.T)


def schedule_rng(task: Task, round: int) -> np.random.Generator:
    """The generator of an epoch's label schedule and its clients."""
    return randomness.generator(task.settings.seed, "label schedule", round=round)


def epoch_work(epoch: label_schedule.Epoch, weights: Weights, round: int, lr: float) -> LocalWork:
    """Local work that takes an epoch's samples in the order of the label schedule."""
    samples = epoch.samples
    return LocalWork(client=0, round=round, weights=weights, samples=samples, lr=lr, in_order=True)


class MaskedLabelsRounds(Rounds):
    """One run of the encrypted protocol with the label counts of all clients; no weight changes."""

    costs: ClassVar[tuple[str, ...]] = ("bytes_down", "bytes_up", "bytes_between")

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        counts = self.task.shards.label_counts
        ledger.cohort = np.arange(len(counts))
        key = new_key()
        clients = [Client(key, row) for row in counts.tolist()]
        server = Server(clients, self.task.classes, ledger.add_traffic)
        steps = {"encrypting": server.encrypt, "unique_list": server.list_labels}
        steps |= {"mapping": server.map_labels, "counts": server.count}
        for name, step in steps.items():
            share = len(counts) if name in ("encrypting", "mapping") else 1  # of a client
            started = time.perf_counter()
            step()
            ledger.record(**{f"seconds_{name}": (time.perf_counter() - started) / share})
        ledger.record(comparisons=server.comparisons)
        labels = [label for client in clients for label in client.placeholders.items()]
        decrypted = {(label, server.counts[placeholder]) for label, placeholder in labels}
        exact = {(label, total) for label, total in enumerate(counts.sum(axis=0).tolist()) if total}
        if decrypted != exact or len(server.counts) != len(exact):
            why = f"the decrypted label counts differ, first {sorted(decrypted ^ exact)[:3]}"
            raise UserError(f"{why} (label, count): a defect of the protocol, please report it")
        return state

    def evaluate(self, state: RunState, ledger: Ledger) -> None:
        """Evaluate nothing: the accuracy of an untrained network says nothing."""
