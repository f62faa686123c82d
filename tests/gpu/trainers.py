"""Checks of training on a device. Each returns a sentence with what it measured, or fails.

They are plain functions, so that pytest runs them (test_on_a_gpu.py) and so does `make gpu`, on a
machine without pytest.
"""

from __future__ import annotations

import gc
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.evaluation import fingerprint
from cohort.training.job.machine import set_up
from cohort.training.ledger import Cursor
from cohort.training.objectives import OBJECTIVES
from cohort.training.servers import Average, Scaffold
from cohort.training.task import Task
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.trainers.stacked import CudaGraphFunction, Part, Stack, StackedTrainer
from cohort.training.trainers.trainer import Trainer
from cohort.training.updates import Updates
from tests.training.small_task import plain_samples, run, small_task, train

CPU = torch.device("cpu")
SIZES = (4, 9, 2, 6, 1, 13, 8, 8, 5, 3, 16)  # with batches of 4: last batches of every size
IMAGES = (20, 30, 14)  # samples of each client of the larger networks
NETWORKS = ("lenet5", "aml-lenet", "vgg11", "resnet9", "resnet20")
OTHERS = ("resnet18", "efficientnet-b0") if find_spec("torchvision") else ()  # a step of them
EXACT, ROUNDED = 1e-9, 1e-2  # relative differences allowed in float64 and in float32


def on(part: Any, device: torch.device) -> Any:
    """A task with its network and data on a device, or a part of one."""
    if isinstance(part, Tensor | nn.Module):
        return part.to(device)
    if not isinstance(part, Task | Samples):
        return part
    own = (field.name for field in fields(part))
    return replace(part, **{name: on(getattr(part, name), device) for name in own})


def image_task(name: str, device: torch.device, precision: str) -> Task:
    """Make a task of three clients with color images for this network."""
    rng, dtype = np.random.default_rng(8), getattr(torch, precision)
    images = torch.from_numpy(rng.random((sum(IMAGES), 3, 32, 32))).to(dtype)
    labels = torch.from_numpy(rng.integers(0, 3, sum(IMAGES)))
    mean, std = torch.tensor([0, 1], dtype=dtype).split(1)
    samples = Samples(images, labels, 1.0, mean, std)
    torch.manual_seed(3)
    model = MODELS[name]().build((3, 32, 32), 3).to(dtype)
    data = {"model": model, "train": samples, "test": samples, "sizes": IMAGES}
    settings = {"J": "J2e", "batch": 8, "lr": 0.05, "momentum": 0.9, "precision": precision}
    return on(small_task(**data, **settings), device)


def difference(actual: Updates, expected: Updates) -> float:
    """The largest relative difference of a client's weight tensor; NaN counts as infinite."""
    assert actual.clients == expected.clients
    assert torch.equal(actual.steps.cpu(), expected.steps.cpu())
    ratios = []
    for name, other in expected.weights.items():
        pair = actual.weights[name], other
        rows, wanted = (tensor.cpu().double().reshape(len(other), -1) for tensor in pair)
        ratios.append((rows - wanted).norm(dim=1) / wanted.norm(dim=1))
    return float(torch.stack(ratios).nan_to_num(nan=torch.inf).max())


def at_most(bound: float, errors: dict[str, float]) -> str:
    """Say what the largest of these differences is; fail if it is larger than the bound."""
    worst = max(errors, key=lambda name: errors[name])
    assert errors[worst] < bound, f"{worst} differs by {errors[worst]:.2g}, allowed is {bound:g}"
    return f"largest relative difference {errors[worst]:.1e} ({worst}) of {len(errors)} compared"


def a_round(task: Task, kind: type[Trainer], cohort: list[int]) -> Updates:
    """One round of some clients from the initial weights of a task that has not been trained."""
    return train(kind(task), task.initial_weights(), cohort, 3)


def batched_equals_serial(device: torch.device, folder: Path) -> str:
    """Every objective on clients of unequal size in float64: both trainers, and the CPU's too."""
    set_up("float64", device)
    results, cohort = {}, [10, 2, 7, 0, 4, 5]
    settings: dict[str, Any] = {"J": "J2e", "momentum": 0.9, "weight_decay": 0.01, "clip": 0.2}
    for name, objective in OBJECTIVES.items():
        of_cpu = small_task(objective=objective(), sizes=SIZES, **settings)
        expected = a_round(of_cpu, SerialTrainer, cohort)
        for kind in (SerialTrainer, StackedTrainer):
            task = on(small_task(objective=objective(), sizes=SIZES, **settings), device)
            results[f"{name}, {kind.name}"] = difference(a_round(task, kind, cohort), expected)
    return at_most(EXACT, results)


def cells_equal_themselves_in_a_stack(device: torch.device, folder: Path) -> str:
    """Train cells of all objectives, seeds and learning rates in one stack and alone, in float64."""
    set_up("float64", device)
    parts, errors = [], {}
    for seed, objective in enumerate(OBJECTIVES.values()):
        settings: dict[str, Any] = {"sizes": SIZES, "J": "J2e", "momentum": 0.9, "clip": 0.2}
        task = small_task(objective=objective(), seed=seed, lr=0.1 / (1 + seed), **settings)
        trainer, start = StackedTrainer(on(task, device)), on(task, device).initial_weights()
        works = trainer.full_work(start, range(seed, len(SIZES)), 3)
        parts.append(Part(trainer, works, start, Cursor()))
    together = Stack(parts).train(parts)
    for part, (stacked, *_) in zip(parts, together, strict=True):
        alone = part.trainer.train_part(part)[0]
        for name, tensor in alone.items():
            ratio = (stacked[name] - tensor).norm() / tensor.norm()
            errors[f"{part.trainer.objective.name}, {name}"] = float(ratio)
    return at_most(EXACT, errors)


def augmented_batched_equals_serial(device: torch.device, folder: Path) -> str:
    """Compare the two trainers under every augmentation, in float64."""
    set_up("float64", device)
    rng, errors = np.random.default_rng(8), {}
    images = torch.from_numpy(rng.random((sum(SIZES), 3, 8, 8)))
    samples = plain_samples(images, torch.from_numpy(rng.integers(0, 3, sum(SIZES))))
    for name in AUGMENTATIONS:
        updates = []
        for kind in (SerialTrainer, StackedTrainer):
            torch.manual_seed(3)
            model = MODELS["small-cnn"]().build((3, 8, 8), 3).double()
            settings: dict[str, Any] = {"sizes": SIZES, "J": "J2e", "augmentation": name}
            task = on(small_task(model=model, train=samples, **settings), device)
            updates.append(a_round(task, kind, [10, 3, 1, 8]))
        serial, batched = updates
        errors[name] = difference(batched, serial)
    return at_most(EXACT, errors)


def convolutions_batched_equal_serial(device: torch.device, folder: Path) -> str:
    """Networks with convolutions in float64; on a CPU only LeNet-5. A repeated round gives the same bits."""
    results, rounds = {}, ((1, [0, 1, 2]), (2, [2, 1]), (1, [0, 1, 2]))
    set_up("float64", device)
    for name in NETWORKS if device.type == "cuda" else NETWORKS[:1]:
        of_kind = []
        for kind in (SerialTrainer, StackedTrainer):
            task = image_task(name, device, "float64")
            weights, trainer = task.initial_weights(), kind(task)
            of_kind.append([train(trainer, weights, cohort, round) for round, cohort in rounds])
            first, _, again = of_kind[-1]
            assert fingerprint(first.weights) == fingerprint(again.weights), f"{name}, {kind.name}"
        for round, (serial, batched) in enumerate(zip(*of_kind, strict=True), start=1):
            results[f"{name}, round {round}"] = difference(batched, serial)
    return at_most(EXACT, results)


def a_step_in_float32(device: torch.device, folder: Path) -> str:
    """Compare one float32 step of each network by the two trainers, over all weights together.
    After more steps, rounding errors decide ReLUs and maxima."""
    set_up("float32", device)
    results = {}
    for name in (*NETWORKS, *OTHERS) if device.type == "cuda" else NETWORKS[:1]:
        moved = []
        for kind in (SerialTrainer, StackedTrainer):
            task = image_task(name, device, "float32")
            start = task.initial_weights()
            trainer = kind(task)
            if device.type == "cuda" and isinstance(trainer, StackedTrainer):
                layers = (vars(layer).get("forward") for layer in trainer.network.modules())
                modules = {layer.func.__module__ for layer in layers if layer}
                assert "cohort.kernels.layers" in modules, "kernels for many clients are not used"
            updates = train(trainer, start, [0, 1, 2], 1, end=1)
            trained = task.trainable(start)
            rows = [(updates.weights[key] - trained[key]).flatten() for key in trained]
            moved.append(torch.cat(rows))
        serial, batched = moved
        results[name] = float((batched - serial).norm() / serial.norm())
    return at_most(ROUNDED, results)


def whole_runs_are_equal(device: torch.device, folder: Path) -> str:
    """Four rounds with selection, dropout of clients and evaluation, in float64."""
    set_up("float64", device)
    results = {}
    settings: dict[str, Any] = {"J": "J2e", "momentum": 0.5, "participation": "dropout-0.3"}
    for server in (Average(), Scaffold()):
        states = []
        for kind in (SerialTrainer, StackedTrainer):
            task = small_task(server=server, sizes=SIZES, cohort=5, rounds=4, **settings)
            states.append(run(replace(on(task, device), trainer=kind)))
        serial, batched = states
        for name, tensor in serial.weights.items():
            gap = (batched.weights[name] - tensor).norm() / tensor.norm()
            results[f"{server.name}, {name}"] = float(gap)
        losses = [list(dict(state.history.metrics["test_loss"]).values()) for state in states]
        assert np.allclose(*losses, rtol=1e-9, atol=0)
    return at_most(1e-9, results)


def captured_steps_equal_calls(device: torch.device, folder: Path) -> str:
    """A captured function gives what the function gives, and warming up leaves no trace."""
    total, expected = torch.zeros(3, device=device), torch.zeros(3)

    def add(values: Tensor) -> Tensor:
        total.add_(values.sum(dim=0))
        return total * 2

    captured = CudaGraphFunction(add, [total])
    for rows in (2, 5, 2, 5, 1):  # two shapes occur twice
        values = torch.full((rows, 3), float(rows))
        expected += values.sum(dim=0)
        assert torch.equal(captured(values.to(device)).cpu(), 2 * expected)
        assert torch.equal(total.cpu(), expected)
    graphs = sum(capture is not None for capture in captured.captures.values())
    return f"5 calls, {graphs} CUDA graphs"


def every_height_is_captured(device: torch.device, folder: Path) -> str:
    """The batched trainer replays a CUDA graph for each height of its stack, none fell back."""
    set_up("float32", device)
    task = image_task("lenet5", device, "float32")
    trainer = StackedTrainer(task)
    train(trainer, task.initial_weights(), [0, 1, 2], 1)
    assert trainer.stacks.stack is not None
    captures = trainer.stacks.stack.step.captures
    assert captures and None not in captures.values(), "a capture failed"
    return f"{len(captures)} CUDA graphs"


def memory_does_not_grow(device: torch.device, folder: Path) -> str:
    """GPU memory after ten more rounds is what it was after three."""
    set_up("float32", device)
    task, held = image_task("aml-lenet", device, "float32"), []
    weights, trainer = task.initial_weights(), StackedTrainer(task)
    for round in range(1, 14):
        train(trainer, weights, [0, 1, 2], round)
        gc.collect()  # this helper's cursors refer to themselves
        held.append(torch.cuda.memory_allocated(device))
    assert max(held[3:]) <= held[2], f"{held[2]} bytes after round 3, {max(held[3:])} later"
    peak = torch.cuda.max_memory_allocated(device)
    return f"{held[-1] / 2**20:.0f} MiB held, at most {peak / 2**20:.0f} MiB allocated"


def float32_is_not_tf32(device: torch.device, folder: Path) -> str:
    """Products and convolutions have a mantissa of 23 bits at `float32`, of 10 bits at `tf32`."""
    results = {}
    for precision in ("tf32", "float32"):
        set_up(precision, device)
        torch.manual_seed(1)
        left, right = torch.randn(2, 256, 256, device=device)
        images = torch.randn(8, 16, 16, 16, device=device)
        kernels = torch.randn(32, 16, 3, 3, device=device)
        pairs = {torch.matmul: (left, right), torch.conv2d: (images, kernels)}
        errors = []
        for product, tensors in pairs.items():
            exact = product(*(tensor.double() for tensor in tensors))
            errors.append(float((product(*tensors) - exact).norm() / exact.norm()))
        results[precision] = max(errors)
    assert results["float32"] < 5e-6, results
    return f"relative error {results['float32']:.1e} at float32, {results['tf32']:.1e} at tf32"
