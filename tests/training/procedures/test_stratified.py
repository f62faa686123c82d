"""Stratify's two modes and sequential learning, against the paper's protocol played literally."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cohort.core.randomness import generator
from cohort.records.history import History
from cohort.training import rounds as training_rounds
from cohort.training.job.train import TRAINERS
from cohort.training.procedures import label_schedule
from cohort.training.procedures.label_schedule import label_frequencies, schedule_batches
from cohort.training.procedures.one_model import client_data, schedule_rng
from cohort.training.task import Task
from cohort.training.updates import size_in_bytes
from tests.training.small_task import local_batches, run, seeded, small_model, small_task

EPOCHS = 3


def recorded(values: Mapping[str, list[tuple[int, float]]], name: str) -> list[float]:
    """The values that a history holds under this name, round by round."""
    return [value for _, value in values[name]]


def single(**settings: Any) -> Task:
    defaults = {"procedure": "stratified-single-chunk3", "J": "J1e", "batch": 1, "rounds": EPOCHS}
    return small_task(**(defaults | settings))


def batch(**settings: Any) -> Task:
    defaults = {"procedure": "stratified-batch", "J": "J1e", "batch": 5, "rounds": EPOCHS}
    return small_task(**(defaults | settings))


def normalized_network() -> nn.Module:
    convolution = partial(nn.Conv2d, 1, 3, 3), partial(nn.BatchNorm2d, 3), nn.ReLU
    return seeded(4, *convolution, nn.Flatten, partial(nn.Linear, 108, 3))


def assert_close(actual: dict[str, Tensor], model: nn.Module, tolerance: float = 1e-12) -> None:
    for name, expected in model.state_dict().items():
        torch.testing.assert_close(actual[name], expected, rtol=tolerance, atol=tolerance)


def scheduled_singly(task: Task, epoch: int) -> label_schedule.Epoch:
    data, rng = client_data(task), schedule_rng(task, epoch)
    return label_schedule.schedule_single_samples(data, rng, chunk=3, retained=0.3)


def take_steps(model: nn.Module, task: Task, batches: Iterable[Any], lr: float) -> None:
    """Steps of plain SGD on one batch of samples after another."""
    for batch in batches:
        model.zero_grad()
        inputs, targets = task.train_samples.values[batch], task.train_samples.labels[batch]
        cross_entropy(model(inputs), targets).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= lr * parameter.grad


@pytest.mark.parametrize("trainer", ["serial", "native"])
def test_single_samples_are_steps_of_sgd_in_the_order_of_the_schedule(trainer: str):
    """Each client that is asked takes a step on one sample and hands the model on."""
    task, model = replace(single(), trainer=TRAINERS[trainer]), small_model()
    state = run(task)
    transfers = []
    for epoch in range(1, EPOCHS + 1):
        scheduled = scheduled_singly(task, epoch)
        transfers.append(scheduled.transfers)
        take_steps(model, task, scheduled.samples[:, None], lr=0.1)
    assert_close(state.weights, model)
    size = size_in_bytes(state.weights)
    assert recorded(state.history.metrics, "model_transfers") == transfers
    assert recorded(state.history.cost, "bytes_between") == [size * count for count in transfers]
    assert recorded(state.history.cost, "bytes_up") == [size] * EPOCHS


def test_batches_are_steps_on_sums_of_clients_gradients():
    """Each client sends the summed gradient of its samples; the server divides by the batch and
    takes a step with momentum and weight decay."""
    task, model = batch(momentum=0.9, weight_decay=0.01), small_model()
    state = run(task)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    contributions = []
    for epoch in range(1, EPOCHS + 1):
        scheduled = schedule_batches(client_data(task), schedule_rng(task, epoch), batch=5)
        contributions.append(0)
        for start in range(0, len(scheduled.samples), 5):
            samples = scheduled.samples[start : start + 5]
            clients = scheduled.clients[start : start + 5]
            optimizer.zero_grad()
            for client in np.unique(clients):
                own = samples[clients == client]
                outputs = model(task.train_samples.values[own])
                cross_entropy(outputs, task.train_samples.labels[own], reduction="sum").backward()
                contributions[-1] += 1
            for parameter in model.parameters():
                parameter.grad /= len(samples)
            optimizer.step()
    assert_close(state.weights, model)
    assert recorded(state.history.metrics, "contributions") == contributions
    assert recorded(state.history.cost, "client_steps") == contributions


@pytest.mark.parametrize("batch_size", [5, None], ids=["batches of five", "a last batch of one"])
def test_bytes_of_sums_for_batch_normalization(batch_size: int | None):
    """Each client of a batch exchanges two sums of eight bytes for each of three channels, forward
    and backward. A batch of one sample has no statistics, so nothing is sent for it."""
    task = batch(model=normalized_network(), rounds=1)
    data = client_data(task)
    size = batch_size or int(label_frequencies(data.counts).sum()) - 1
    history = run(replace(task, settings=replace(task.settings, batch=size))).history
    epoch = schedule_batches(data, schedule_rng(task, 1), batch=size)
    parts = np.split(epoch.clients, range(size, len(epoch.clients), size))
    assert (len(parts[-1]) == 1) == (batch_size is None)
    sharers = sum(len(np.unique(clients)) for clients in parts if len(clients) > 1)
    for kind in ("batch_statistics", "gradients_of_statistics"):
        assert history.traffic[kind].tolist() == [sharers * 3 * 2 * 8] * 2 + [0]


@pytest.mark.parametrize("trainer", ["serial", "native"])
def test_hybrid_begins_with_batches_and_goes_on_with_single_samples(trainer: str):
    """The first two epochs are a whole run of batches, which ends its cycle of learning rates, with
    momentum; two epochs of plain steps on single samples follow, on the schedules of epochs 3 and
    4."""
    settings = {"momentum": 0.9, "weight_decay": 0.01, "schedule": "onecycle", "clip": 1.0}
    begun = run(batch(rounds=2, **settings))
    hybrid = batch(procedure="stratified-hybrid-2-chunk3", rounds=4, **settings)
    results, model = run(replace(hybrid, trainer=TRAINERS[trainer])), small_model()
    model.load_state_dict(begun.weights)
    epochs = [scheduled_singly(hybrid, epoch) for epoch in (3, 4)]
    for epoch in epochs:
        take_steps(model, hybrid, epoch.samples[:, None], lr=0.01)
    assert_close(results.weights, model)
    for metric in ("contributions", "learning_rate"):
        assert results.history.metrics[metric] == begun.history.metrics[metric]
    tasks = [(3, len(epochs[0].tasks)), (4, len(epochs[1].tasks))]
    assert results.history.metrics["tasks"] == tasks
    assert recorded(results.history.cost, "bytes_between")[:2] == [0, 0]


def test_sequential_clients_go_on_from_each_other():
    """Each round in another order, every client by an epoch of its own."""
    task = small_task(procedure="sequential", J="J1e", batch=4, rounds=EPOCHS)
    model, orders = small_model(), []
    for round in range(1, EPOCHS + 1):
        order = generator(0, "sequence", round=round).permutation(4)
        orders.append(order.tolist())
        for client in order:
            own = task.shards.indices[client]
            places = local_batches(task, int(client), round)
            take_steps(model, task, (own[batch] for batch in places), lr=0.1)
    state = run(task)
    assert_close(state.weights, model)
    assert [cohort.tolist() for cohort in state.history.cohorts] == orders
    assert len(set(map(tuple, orders))) > 1


@pytest.mark.parametrize(
    ("procedure", "downloads"),
    [("sequential", [1, 1, 1]), ("stratified-single", [5, 4, 4]), ("stratified-hybrid-1", [5, 4])],
)
def test_the_server_sends_the_model_to_those_who_lack_it(procedure: str, downloads: list[int]):
    """To the first client, who begins; after an epoch of Stratify's to all four."""
    size = 5 if procedure == "stratified-hybrid-1" else 1
    task = batch(procedure=procedure, batch=size, rounds=3, model=small_model())
    history = run(task).history
    model = sum(tensor.nbytes for tensor in small_model().state_dict().values())
    sent = [value // model for value in recorded(history.cost, "bytes_down")]
    assert sent[-len(downloads) :] == downloads


def in_a_row(procedure: str, history: History, round: int) -> float:
    """How many transfers follow one another: one to all clients at once; one to each client; to the
    first client of each handing on; or one for each batch of five."""
    if procedure in ("federated", "fedtan"):
        return 1
    if procedure == "sequential":
        return 4
    if round > 1 or procedure == "stratified-single":
        return dict(history.metrics["model_transfers"])[round] + 1
    return 4  # of 8 + 8 + 3 samples


STRATIFIED = "stratified-single", "stratified-batch", "stratified-hybrid-1"


@pytest.mark.parametrize("procedure", ["federated", "fedtan", "sequential", *STRATIFIED])
def test_time_of_a_rounds_transfers(procedure: str, monkeypatch: pytest.MonkeyPatch):
    """That of one, which takes a quarter of a second by this clock, times those in a row."""
    ticks = itertools.count(step=0.25)
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr(training_rounds, "time", clock)
    batch_size = 1 if procedure == "stratified-single" else 5
    rounds = 1 if procedure == "stratified-batch" else 2
    task = batch(procedure=procedure, batch=batch_size, rounds=rounds, model=normalized_network())
    history = run(task).history
    assert recorded(history.cost, "seconds_transfers") == [
        0.25 * in_a_row(procedure, history, round) for round in range(1, rounds + 1)
    ]
    phases = 2 if procedure == "stratified-hybrid-1" else 1
    assert next(ticks) == 0.25 * 2 * 3 * phases  # not measured in every round
