"""Centralized training against a plain PyTorch loop, and schedules."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam, lr_scheduler

from cohort.core.randomness import generator
from cohort.training.schedules import SCHEDULES, parse_schedule
from cohort.training.task import Task
from tests.training.small_task import run, small_task

SIZE, BATCH, EPOCHS = 37, 5, 12
BATCHES = 8  # in an epoch: 37 samples in batches of 5
LR = 0.1

# By name: PyTorch's scheduler for an optimizer; the one-cycle steps after every batch.
TORCH: dict[str, Callable[[Any], Any]] = {
    "constant": lambda optimizer: lr_scheduler.ConstantLR(optimizer, factor=1.0),
    "cosine": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS),
    "restarts-3": lambda optimizer: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2),
    "restarts-2-factor1": lambda own: lr_scheduler.CosineAnnealingWarmRestarts(own, 2, 1),
    "onecycle": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, LR, EPOCHS * BATCHES),
    "step-4": lambda optimizer: lr_scheduler.StepLR(optimizer, 4),
    "step-5-factor0.5": lambda optimizer: lr_scheduler.StepLR(optimizer, 5, gamma=0.5),
    "steps-3-9": lambda optimizer: lr_scheduler.MultiStepLR(optimizer, [3, 9]),
    "exponential-0.9": lambda optimizer: lr_scheduler.ExponentialLR(optimizer, 0.9),
    "plateau-patience1": lambda own: lr_scheduler.ReduceLROnPlateau(own, factor=0.5, patience=1),
}


def task_of(schedule: str = "constant", **settings: Any) -> Task:
    """One client with 37 samples, five of which are validation samples too."""
    defaults = {"J": "J1e", "batch": BATCH, "lr": LR, "momentum": 0.9, "weight_decay": 1e-3}
    defaults |= {"rounds": EPOCHS, "procedure": "centralized", "schedule": schedule}
    return small_task(sizes=(SIZE,), validation=(0, 1, 2, 3, 4), **(defaults | settings))


def plain_loop(task: Task, schedule_name: str) -> tuple[dict[str, torch.Tensor], list[float]]:
    """Train in plain PyTorch: return the final weights and the learning rate of every step."""
    model, settings, loss = copy.deepcopy(task.model), task.settings, cross_entropy
    if settings.optimizer == "adam":
        optimizer = Adam(model.parameters(), lr=settings.lr, weight_decay=1e-3)
    else:
        optimizer = SGD(model.parameters(), lr=LR, momentum=0.9, weight_decay=1e-3)
    schedule, rates, samples = TORCH[schedule_name](optimizer), [], task.train_samples
    images, labels = samples.inputs(torch.arange(SIZE)), samples.labels
    held = task.shards.indices[0]
    for epoch in range(1, EPOCHS + 1):
        order = held[generator(0, "batches", round=epoch).permutation(SIZE)]
        for begin in range(0, SIZE, BATCH):
            batch = order[begin : begin + BATCH]
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            loss(model.train()(images[batch]), labels[batch]).backward()
            optimizer.step()
            if schedule_name == "onecycle":
                schedule.step()
        if schedule_name.startswith("plateau"):
            with torch.no_grad():
                scores = model(samples.inputs(task.validation))
            schedule.step(float(loss(scores, labels[task.validation])))
        elif schedule_name != "onecycle":
            schedule.step()
    return model.state_dict(), rates


@pytest.mark.parametrize(
    ("schedule", "optimizer"), [*((name, "sgd") for name in TORCH), ("constant", "adam")]
)
def test_96_steps_match_a_plain_loop_bit_for_bit(schedule: str, optimizer: str):
    changes = {"optimizer": "adam", "momentum": 0.0, "lr": 0.01} if optimizer == "adam" else {}
    task = task_of(schedule, **changes)
    expected, rates = plain_loop(task, schedule)
    state = run(task)
    assert all(torch.equal(state.weights[name], expected[name]) for name in expected)
    assert [rate for _, rate in state.history.metrics["learning_rate"]] == rates[::BATCHES]
    assert (len(set(rates)) == 1) == (schedule == "constant")


def test_every_schedule_is_tested():
    assert {name.split("-")[0] for name in TORCH} == set(SCHEDULES)


@pytest.mark.parametrize(
    ("name", "share", "expected"),
    [
        ("step-166", 0.2, "step-33"),
        ("restarts-50", 0.2, "restarts-10"),
        ("steps-250-375", 0.2, "steps-50-75"),
        ("exponential-0.99", 0.5, "exponential-0.9801"),
        ("plateau", 0.2, "plateau-patience2"),
        ("plateau-patience3", 0.05, "plateau-patience1"),
        ("plateau-patience0", 1.0, "plateau-patience0"),
        ("onecycle", 0.2, "onecycle"),
        ("cosine", 0.2, "cosine"),
        ("constant", 0.2, "constant"),
    ],
)
def test_a_shorter_run_has_a_scaled_schedule(name: str, share: float, expected: str):
    assert str(parse_schedule(name).scaled(share)) == expected
