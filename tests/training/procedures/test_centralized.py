"""Centralized training against a plain PyTorch loop, schedules, and resuming from checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam, lr_scheduler

from cohort.core.errors import UserError
from cohort.core.randomness import generator
from cohort.training.job import checkpoint
from cohort.training.objectives import FedProx
from cohort.training.procedures.centralized import Centralized
from cohort.training.schedules import SCHEDULES, parse_schedule
from cohort.training.servers import Momentum
from cohort.training.state import RunState
from cohort.training.task import Task
from tests.training.small_task import small_cell, small_task

SIZE, BATCH, EPOCHS = 37, 5, 12
BATCHES = 8  # in an epoch: 37 samples in batches of 5
LR = 0.1

# By name: PyTorch's scheduler for an optimizer, and whether it steps after every batch.
TORCH: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "constant": (lambda optimizer: lr_scheduler.ConstantLR(optimizer, factor=1.0), False),
    "cosine": (lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS), False),
    "restarts-3": (
        lambda optimizer: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2),
        False,
    ),
    "restarts-2-factor1": (
        lambda optimizer: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 1),
        False,
    ),
    "onecycle": (
        lambda optimizer: lr_scheduler.OneCycleLR(
            optimizer, LR, epochs=EPOCHS, steps_per_epoch=BATCHES
        ),
        True,
    ),
    "step-4": (lambda optimizer: lr_scheduler.StepLR(optimizer, 4), False),
    "step-5-factor0.5": (lambda optimizer: lr_scheduler.StepLR(optimizer, 5, gamma=0.5), False),
    "steps-3-9": (lambda optimizer: lr_scheduler.MultiStepLR(optimizer, [3, 9]), False),
    "exponential-0.9": (lambda optimizer: lr_scheduler.ExponentialLR(optimizer, 0.9), False),
    "plateau-patience1": (
        lambda optimizer: lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1),
        False,
    ),
}


def task_of(schedule: str = "constant", **settings: Any) -> Task:
    """One client with 37 samples, five of which are validation samples too."""
    changed = {
        "J": "J1e",
        "batch": BATCH,
        "lr": LR,
        "momentum": 0.9,
        "weight_decay": 1e-3,
        "rounds": EPOCHS,
    } | settings
    return small_task(
        sizes=(SIZE,),
        validation=(0, 1, 2, 3, 4),
        schedule=schedule,
        procedure="centralized",
        **changed,
    )


def run(task: Task, until: int | None = None) -> RunState:
    for state in Centralized().rounds(task, Centralized().begin(task)):
        if state.round == until:
            break
    return state


def plain_loop(
    task: Task, make: Callable[[Any], Any], by_batch: bool
) -> tuple[dict[str, torch.Tensor], list[float]]:
    """Train in plain PyTorch: return the final weights and the learning rate of every step."""
    model = copy.deepcopy(task.model)
    optimizer = SGD(model.parameters(), lr=LR, momentum=0.9, weight_decay=1e-3)
    schedule, rates = make(optimizer), []
    images, labels = task.train_samples.inputs(torch.arange(SIZE)), task.train_samples.labels
    images, labels = images[task.shards.indices[0]], labels[task.shards.indices[0]]
    for epoch in range(1, EPOCHS + 1):
        model.train()
        order = generator(0, "batches", round=epoch).permutation(SIZE)
        for begin in range(0, SIZE, BATCH):
            batch = order[begin : begin + BATCH]
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
            if by_batch:
                schedule.step()
        if isinstance(schedule, lr_scheduler.ReduceLROnPlateau):
            with torch.no_grad():
                inputs = task.train_samples.inputs(task.validation)
                schedule.step(
                    float(cross_entropy(model(inputs), task.train_samples.labels[task.validation]))
                )
        elif not by_batch:
            schedule.step()
    return model.state_dict(), rates


@pytest.mark.parametrize("schedule", TORCH)
def test_96_steps_match_a_plain_loop_bit_for_bit(schedule: str):
    task = task_of(schedule)
    make, by_batch = TORCH[schedule]
    expected, rates = plain_loop(task, make, by_batch)
    assert len(rates) == EPOCHS * BATCHES
    state = run(task)
    assert all(torch.equal(state.weights[name], expected[name]) for name in expected)
    assert [rate for _, rate in state.history.metrics["learning_rate"]] == rates[::BATCHES]
    assert (len(set(rates)) == 1) == (schedule == "constant")


def test_every_schedule_is_tested():
    assert {name.split("-")[0] for name in TORCH} == set(SCHEDULES)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("schedule", ["onecycle", "plateau-patience1", "restarts-3", "step-4"])
def test_a_resumed_run_is_bit_identical(schedule: str, optimizer: str, tmp_path: Path):
    settings = {
        "optimizer": optimizer,
        "momentum": 0.0 if optimizer == "adam" else 0.9,
        "lr": 0.01 if optimizer == "adam" else LR,
    }
    whole = run(task_of(schedule, **settings))
    stopped = run(task_of(schedule, **settings), until=5)
    checkpoint.save(tmp_path / "c", stopped, "k0")
    begun, cpu = Centralized().begin(task_of(schedule, **settings)), torch.device("cpu")
    loaded = checkpoint.load(tmp_path / "c", "k0", begun, cpu)
    assert loaded is not None and loaded[0].round == 5 and not loaded[1]
    *_, state = Centralized().rounds(task_of(schedule, **settings), loaded[0])
    assert all(torch.equal(state.weights[name], whole.weights[name]) for name in whole.weights)
    assert state.history.metrics == whole.history.metrics
    assert len(state.history.metrics["test_loss"]) == EPOCHS


def test_adam_matches_pytorch():
    task = task_of(optimizer="adam", momentum=0.0, lr=0.01, rounds=2)
    model = copy.deepcopy(task.model)
    optimizer = Adam(model.parameters(), lr=0.01, weight_decay=1e-3)
    images, labels = (
        part[task.shards.indices[0]]
        for part in (task.train_samples.inputs(torch.arange(SIZE)), task.train_samples.labels)
    )
    for epoch in (1, 2):
        order = generator(0, "batches", round=epoch).permutation(SIZE)
        for begin in range(0, SIZE, BATCH):
            optimizer.zero_grad()
            cross_entropy(
                model(images[order[begin : begin + BATCH]]), labels[order[begin : begin + BATCH]]
            ).backward()
            optimizer.step()
    state = run(task)
    assert all(
        torch.equal(state.weights[name], tensor) for name, tensor in model.state_dict().items()
    )


def test_gradients_are_clipped_to_the_norm():
    """A full-batch step of plain SGD is as long as the learning rate times the clipping norm."""
    moved = {}
    for clip in (0.0, 1e-3, 1e9):
        task = task_of(batch=100, rounds=1, momentum=0.0, weight_decay=0.0, clip=clip)
        start, state = task.initial_weights(), run(task)
        moved[clip] = float(
            np.sqrt(sum(float(((state.weights[name] - start[name]) ** 2).sum()) for name in start))
        )
    assert moved[1e-3] == pytest.approx(LR * 1e-3, rel=1e-3)
    assert moved[0.0] == moved[1e9] > 2e-4


@pytest.mark.parametrize(
    ("name", "share", "expected"),
    [
        ("step-166", 0.2, "step-33"),
        ("restarts-50", 0.2, "restarts-10"),
        ("steps-250-375", 0.2, "steps-50-75"),
        ("exponential-0.99", 0.5, "exponential-0.9801"),
        ("plateau", 0.2, "plateau-patience2"),
        ("plateau-patience3", 0.05, "plateau-patience1"),
        ("onecycle", 0.2, "onecycle"),
        ("cosine", 0.2, "cosine"),
        ("constant", 0.2, "constant"),
    ],
)
def test_a_shorter_run_has_a_scaled_schedule(name: str, share: float, expected: str):
    assert str(parse_schedule(name).scaled(share)) == expected


@pytest.mark.parametrize(
    "name",
    ["step", "step-0", "steps-3", "exponential-x", "plateau-3", "onecycles", "step-30-gamma2"],
)
def test_invalid_names_are_refused_in_one_sentence(name: str):
    with pytest.raises(
        UserError, match=rf"^schedule '{name}' is (not known|not of the form )[^\n]*$"
    ):
        parse_schedule(name)


SUITABLE = {"clients": 1, "cohort": 1, "schedule": "cosine", "validation": 5}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"clients": 2}, "clients and cohort must be 1"),
        ({"cohort": 2}, "clients and cohort must be 1"),
        ({"schedule": "plateau", "validation": 0}, "validation must be at least 1"),
        ({"participation": "dropout-0.3"}, "no use for the participation 'dropout-0.3'"),
        ({"objective": FedProx()}, "no use for the objective 'fedprox'"),
        ({"server": Momentum()}, "no use for the server 'momentum'"),
        ({"lr_decay": 0.5}, "no use for lr_decay 0.5"),
    ],
)
def test_unsuitable_settings_are_refused(settings: dict[str, Any], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        Centralized().check(small_cell(**(SUITABLE | settings)))
    Centralized().check(small_cell(**(SUITABLE | {"schedule": "plateau"})))
