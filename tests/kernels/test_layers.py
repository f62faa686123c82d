"""Networks whose layers call the kernels, in a stack of clients."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from triton import language as tl
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from cohort.data.samples import Samples
from cohort.kernels import convolution, layers
from cohort.models import MODELS, residual
from cohort.training.task import Task
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.trainers.stacked import StackedTrainer
from tests.kernels.test_convolution import DEVICE
from tests.training.small_task import small_task, train
from tests.training.trainers.test_same_steps import normalized

SIZES = (3, 1, 5, 0, 4)
SHAPE = (3, 16, 16)
SETTINGS: dict[str, Any] = {"batch": 4, "lr": 0.1, "J": "J1", "momentum": 0.9, "weight_decay": 0.1}


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter multiplies float32 numbers, and doesn't split them."""
    monkeypatch.setattr(convolution, "float32_precision", lambda shape: "ieee")


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("lenet5", "depthwise")]


def network(name: str) -> nn.Module:
    torch.manual_seed(1)
    if name in MODELS:
        return MODELS[name]().build(SHAPE, 3)
    if name == "normalized":
        return normalized().float()
    if name == "depthwise":
        return nn.Sequential(
            *(nn.Conv2d(3, 8, 3, 3, bias=False), nn.BatchNorm2d(8), nn.SiLU(inplace=True)),
            *(nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.SiLU()),
            *(nn.Conv2d(8, 8, 3, groups=8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)),
        )
    inner = nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 6, 1, stride=2, bias=False)
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(residual(*inner, stride=2, new_channels=2), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3)),
    )


def task_with(model: nn.Module, **settings: Any) -> Task:
    """Clients of unequal size, the fourth without samples, on this machine's device."""
    torch.manual_seed(2)
    count, kind = sum(SIZES), next(model.parameters()).dtype
    mean, std = torch.tensor([0.1, 1.5], dtype=kind, device=DEVICE)
    values, labels = torch.randn(count, *SHAPE), torch.arange(count) % 3
    samples = Samples(values.to(DEVICE), labels.to(DEVICE), 1.0, mean, std)
    parts = {"model": model.to(DEVICE), "train": samples, "test": samples, "sizes": SIZES}
    return small_task(**parts, classes=3, **SETTINGS | settings)


def trainer_with_kernels(task: Task) -> StackedTrainer:
    trainer = StackedTrainer(task)
    trainer.network = layers.with_kernels(task.model)
    return trainer


@pytest.mark.parametrize("name", ["small-mlp", "residual", "normalized", *SLOW])
def test_a_step_is_that_of_the_serial_trainer_in_float64(name: str):
    task, exact = task_with(network(name)), task_with(network(name).double())
    weights = exact.initial_weights()
    expected = train(SerialTrainer(exact), weights, range(len(SIZES)))
    updates = train(trainer_with_kernels(task), task.initial_weights(), range(len(SIZES)))
    for key, tensor in expected.weights.items():
        moved = (tensor - weights[key]).double().norm()
        assert (updates.weights[key] - tensor).double().norm() <= 1e-5 * moved, key
    close = {"rtol": 2e-6, "atol": 0, "equal_nan": True}
    torch.testing.assert_close(updates.losses.double(), expected.losses, **close)


@pytest.mark.slow
def test_a_client_does_not_depend_on_the_others():
    """To the bit, alone and in a stack of five."""
    task = task_with(network("residual"), J="J2e")
    weights, names = task.initial_weights(), dict(task.model.named_parameters())
    all_updates = train(trainer_with_kernels(task), weights, range(len(SIZES)))
    alone = train(trainer_with_kernels(task), weights, [2])
    for name in names:
        assert torch.equal(alone.weights[name][0], all_updates.weights[name][2])


def test_layers_are_fused_and_others_stay():
    fused = [type(layer).__name__ for layer in layers.with_kernels(network("residual"))]
    unfused = ["Residual", "ReLU", "AdaptiveAvgPool2d", "Flatten", "Linear"]
    assert fused == ["Conv2d", "Identity", "Identity", *unfused]
    other = nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.ReLU(), nn.Conv2d(4, 4, 3, dilation=2))
    assert all("forward" not in vars(layer) for layer in layers.with_kernels(other))


@pytest.mark.slow
def test_bfloat16_rounds_as_much_as_it_should(monkeypatch: pytest.MonkeyPatch):
    """A gradient of 8 binary digits differs by between 1e-4 and a tenth."""
    create_dot = InterpreterBuilder.create_dot

    def as_float32(operand: TensorHandle) -> TensorHandle:
        return TensorHandle((operand.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    def create_right_dot(self: InterpreterBuilder, *args: Any) -> TensorHandle:
        if args[0].data.dtype == np.uint16:  # which the interpreter multiplies as integers
            args = *map(as_float32, args[:2]), *args[2:]
        return create_dot(self, *args)

    monkeypatch.setattr(InterpreterBuilder, "create_dot", create_right_dot)
    model, inputs = network("normalized").to(DEVICE), torch.randn(4, *SHAPE, device=DEVICE)
    args = model, layers.with_kernels(model, "bfloat16"), inputs, "bfloat16"
    assert layers.check(*args) == ""
    monkeypatch.setitem(layers.ERRORS, "bfloat16", 1e-4)
    assert layers.check(*args).startswith("the gradient of 0.weight is off by")


def test_kernels_that_are_wrong_or_fail_are_not_used(monkeypatch: pytest.MonkeyPatch):
    model, inputs = network("small-mlp").to(DEVICE), torch.randn(2, *SHAPE, device=DEVICE)
    assert layers.check(model, layers.with_kernels(model), inputs) == ""
    right = convolution.input_gradient
    monkeypatch.setattr(convolution, "input_gradient", lambda *args: 1.1 * right(*args))
    error = layers.check(model, layers.with_kernels(model), inputs)
    assert error.startswith("the gradient of 1.weight is off by 1.0e-01")

    def fail(*args: object) -> None:
        raise RuntimeError("no such instruction\non this card")

    monkeypatch.setattr(convolution, "convolve", fail)
    error = layers.check(model, layers.with_kernels(model), inputs)
    assert error == "RuntimeError: no such instruction"
