"""The native and the stacked trainer take the serial one's steps, whatever they are."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.models import MODELS, from_torchvision, residual
from cohort.native import network as native_network
from cohort.selection import SELECTORS
from cohort.training.evaluation import evaluate, fingerprint
from cohort.training.job.train import TRAINERS, choose_trainer
from cohort.training.objectives import CrossEntropy, FedLC, FedProx, FedRS, Objective
from cohort.training.servers import SERVERS
from cohort.training.task import Task
from cohort.training.trainers.native import NativeTrainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.trainers.stacked import StackedTrainer
from cohort.training.trainers.trainer import Trainer
from cohort.training.updates import Updates, Weights
from tests.gpu.trainers import captured_steps_equal_calls
from tests.training.small_task import CLASSES, plain_samples, run, small_task, train

GPU, CPU = torch.device("cuda"), torch.device("cpu")
SIZES = (4, 9, 2, 6, 1, 13, 8, 8, 5, 3, 16)
"""With batches of 4: epochs of one to four steps, and last batches of every size."""
OBJECTIVES = [CrossEntropy(), FedProx(mu=0.3), FedRS(alpha=0.5), FedLC(tau=0.7)]
KINDS = [NativeTrainer, StackedTrainer]
Kind = type[Trainer]
both_kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def network(name: str = "small-cnn", shape: tuple[int, ...] = (3, 16, 16)) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return MODELS[name]().build(shape, CLASSES).double()


def photos(side: int = 16) -> Samples:
    """Random images of bytes, standardized by channel."""
    rng = np.random.default_rng(8)
    values = rng.integers(0, 256, (sum(SIZES), 3, side, side), dtype=np.uint8)
    mean, std = (torch.rand(3, 1, 1, dtype=torch.float64) + 0.2 for _ in range(2))
    labels = torch.from_numpy(rng.integers(0, CLASSES, sum(SIZES)))
    return Samples(torch.from_numpy(values), labels, 255.0, mean, std)


def photo_task(**parts: Any) -> Task:
    defaults = {"model": network(), "train": photos(), "sizes": SIZES, "J": "J2e", "batch": 4}
    return small_task(**(defaults | parts))


def assert_same(serial: Updates, other: Updates, rtol: float = 1e-10) -> None:
    assert serial.clients == other.clients
    assert torch.equal(serial.steps, other.steps) and torch.equal(serial.sizes, other.sizes)
    losses = other.losses.to(serial.losses)
    torch.testing.assert_close(losses, serial.losses, rtol=rtol, atol=0, equal_nan=True)
    for row in range(len(serial.clients)):
        for name, tensor in serial.client_weights(row).items():
            difference = (other.weights[name][row] - tensor).double().norm()
            assert difference <= rtol * tensor.double().norm(), (row, name, float(difference))


def compare(
    kind: Kind, task: Task, cohort: list[int], rtol: float = 1e-10, **changes: Any
) -> Updates:
    """Train a cohort for a round by both trainers, compare, and return the serial one's updates, in
    which every client with steps moves."""
    weights = task.initial_weights()
    serial, other = (
        train(cls(task), weights, cohort, 3, **changes) for cls in (SerialTrainer, kind)
    )
    assert (serial.distances(weights)[serial.steps > 0] > 1e-3).all()
    assert_same(serial, other, rtol)
    return serial


@both_kinds
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: objective.name)
@pytest.mark.parametrize(("J", "batch"), [("J1", 4), ("J9", 1), ("J3e", 4)])
def test_every_objective_with_clients_of_unequal_size(
    kind: Kind, objective: Objective, J: str, batch: int
):
    """Native code takes more than eight steps in several calls."""
    options = {"momentum": 0.9, "weight_decay": 0.01, "clip": 0.2}
    compare(kind, photo_task(objective=objective, J=J, batch=batch, **options), [10, 2, 7, 0, 4, 5])


@both_kinds
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("augmentation", sorted(set(AUGMENTATIONS) - {"none"}))
def test_augmentation(kind: Kind, augmentation: str, batch: int):
    compare(kind, photo_task(augmentation=augmentation, batch=batch), [10, 2, 7])


@both_kinds
def test_works_that_differ(kind: Kind):
    """Some of the samples, a few of the steps, corrections, and weights that a probe left."""
    task = small_task(sizes=SIZES, J="J2e")
    weights = task.initial_weights()

    def correction(client: int) -> Weights:
        return {name: torch.full_like(tensor, 0.01 * client) for name, tensor in weights.items()}

    results = []
    for cls in (SerialTrainer, kind):
        trainer = cls(task)
        probes = train(trainer, weights, [8], 3, end=1)
        first, second, third = (
            replace(work, correction=partial(correction, work.client))
            for work in trainer.full_work(weights, [1, 5, 8], 3)
        )
        third = replace(third, begin=1, weights=probes.client_weights(0))
        works = [replace(first, samples=first.samples[:5]), replace(second, end=3), third]
        results.append(trainer.train(works, weights))
    assert_same(*results)
    assert results[0].steps.tolist() == [4, 3, 3] and results[0].sizes.tolist() == [5, 13, 5]


@both_kinds
def test_more_clients_than_heights_and_clients_without_samples(kind: Kind):
    """With eleven clients the stack shrinks by two at a time; one client has no samples."""
    task = small_task(sizes=(*SIZES[:-1], 0), J="J2e", momentum=0.5)
    updates = compare(kind, task, list(range(11)))
    assert updates.steps[10] == 0 and updates.losses[10].isnan()


@both_kinds
def test_samples_of_other_clients_do_not_matter(kind: Kind):
    """The stack pads short batches with a client's own samples: NaN in those of a client that is
    not asked reaches nobody."""
    task = small_task(sizes=SIZES, J="J2e")
    task.train_samples.values[0] = torch.nan
    owner = next(client for client, indices in enumerate(task.shards.indices) if 0 in indices)
    others = [client for client in range(len(SIZES)) if client != owner]
    assert compare(kind, task, others).losses.isfinite().all()


@both_kinds
def test_clients_that_are_done_do_not_move(kind: Kind):
    """Client 3 takes two steps and stays in the stack for a third, where its outputs overflow."""
    task = small_task(sizes=SIZES, J="J1e")
    task.train_samples.values[task.shards.indices[3]] *= 1e70
    updates = compare(kind, task, list(range(len(SIZES))))
    assert 1e120 < updates.client_weights(3)["1.weight"].abs().max() < torch.inf


@both_kinds
@pytest.mark.parametrize(
    "name", ["lenet5", "aml-lenet", pytest.param("vgg11", marks=pytest.mark.long)]
)
def test_convolutions_in_float32(kind: Kind, name: str):
    """To 1e-5 of each weight tensor after one round; in float64 they agree to 1e-10."""
    rng = np.random.default_rng(8)
    values, labels = rng.random((40, 3, 32, 32)), rng.integers(0, CLASSES, 40)
    for dtype, rtol in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        mean, std = torch.tensor([0, 1], dtype=dtype).split(1)
        images = torch.from_numpy(values).to(dtype)
        samples = Samples(images, torch.from_numpy(labels), 1.0, mean, std)
        parts = {"model": network(name, (3, 32, 32)).to(dtype), "train": samples, "test": samples}
        options = {"J": "J1e", "batch": 8, "lr": 0.05, "momentum": 0.9}
        compare(kind, small_task(**parts, sizes=(12, 20, 8), **options), [0, 1, 2], rtol)


def normalized() -> nn.Module:
    """Batch normalization of images and of vectors, and every random layer that is batched."""
    depth = from_torchvision("ops").StochasticDepth
    inner = (
        nn.Conv2d(6, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(inplace=True),
        depth(0.4, "row"),
    )
    last = nn.Linear(6, 8), nn.BatchNorm1d(8, affine=False), nn.Dropout(0.3), nn.ReLU()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        first = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6, momentum=0.3), nn.ReLU()
        middle = nn.MaxPool2d(2), residual(*inner), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        return nn.Sequential(*first, *middle, *last, nn.Linear(8, CLASSES)).double()


@pytest.mark.parametrize("J", ["J1", "J2e"])
@pytest.mark.parametrize("batch", [1, 4, 8])
def test_batch_normalization_and_random_layers(J: str, batch: int):
    """Padded samples are not counted, a single sample is normalized by the running statistics, and
    masks are those that each client draws by itself."""
    task = photo_task(model=normalized(), J=J, batch=batch, momentum=0.9)
    serial = compare(StackedTrainer, task, [10, 2, 7, 0, 4, 5])
    assert (serial.weights["1.num_batches_tracked"] < serial.steps).any()
    changes = {"begin": 1, "end": 3, "samples": np.array([5, 1, 9, 2, 7, 30, 31, 3, 8])}
    compare(StackedTrainer, task, [3, 9], **changes)


@pytest.mark.long
@pytest.mark.parametrize("name", ["resnet9", "resnet18", "efficientnet-b0"])
def test_networks_with_batch_normalization(name: str):
    """A step, and all weights together: some have no gradient but rounding errors."""
    task = photo_task(model=network(name, (3, 32, 32)), train=photos(32), batch=8)
    weights = task.initial_weights()
    serial, other = (
        train(kind(task), weights, [10, 5, 7], 3, end=1) for kind in (SerialTrainer, StackedTrainer)
    )
    torch.testing.assert_close(other.losses, serial.losses, rtol=1e-10, atol=0)
    for row, moved in enumerate(serial.distances(weights)):
        assert other.distances(serial.client_weights(row))[row] < 1e-9 * moved


@pytest.mark.parametrize("pull", [0.1, 0.9999, 1.0, 1.5])
def test_single_samples_with_a_proximal_term_of_any_strength(pull: float):
    """lr mu is the share of the way to the anchor that a step goes. In float32, where a step that
    divides by 1 - lr mu would be wrong in the fourth digit near 1, and NaN at 1."""
    data = replace(photos(), mean=torch.full((3, 1, 1), 0.5), std=torch.full((3, 1, 1), 0.3))
    parts = {"train": data, "test": data, "model": network().float()}
    task = photo_task(objective=FedProx(mu=pull / 0.01), lr=0.01, batch=1, **parts)
    weights = task.initial_weights()
    serial, other = (
        train(kind(task), weights, [10, 2], 3) for kind in (SerialTrainer, NativeTrainer)
    )
    for name, expected in serial.weights.items():
        error = torch.linalg.vector_norm(other.weights[name] - expected)
        assert error < 1e-6 * torch.linalg.vector_norm(expected), name
    torch.testing.assert_close(other.losses.float(), serial.losses, rtol=1e-5, atol=0)


@both_kinds
def test_other_samples(kind: Kind):
    """Columns of a table, and numbers that are stored as they are."""
    rng = np.random.default_rng(1)
    table = Samples(
        torch.from_numpy(rng.normal(size=(sum(SIZES), 7))),
        torch.from_numpy(rng.integers(0, CLASSES, sum(SIZES))),
        2.0,
        torch.from_numpy(rng.normal(size=7)),
        torch.from_numpy(rng.uniform(0.5, 2, 7)),
    )
    compare(kind, photo_task(model=network("small-mlp", (7,)), train=table), [10, 2])
    plain = plain_samples(torch.rand(sum(SIZES), 3, 16, 16).double(), table.labels)
    compare(kind, photo_task(train=plain), [10, 2])


RUNS: dict[str, dict[str, Any]] = {
    **{f"server {name}": {"server": kind(), "cohort": 5} for name, kind in SERVERS.items()},
    **{f"selector {name}": {"selector": kind(), "cohort": 4} for name, kind in SELECTORS.items()},
    "clients that drop out": {"participation": "dropout-0.3", "momentum": 0.5, "cohort": 5},
    "concat": {"procedure": "concat-2", "cohort": 6, "momentum": 0.5},
}


@pytest.mark.parametrize("name", RUNS)
def test_whole_runs(name: str):
    settings = {"sizes": SIZES, "rounds": 3, "J": "J2e", **RUNS[name]}
    serial, *others = (
        run(replace(small_task(**settings), trainer=TRAINERS[trainer]))
        for trainer in small_task(**settings).procedure.usable_trainers()
    )
    for state in others:
        cohorts, expected = ([c.tolist() for c in s.history.cohorts] for s in (state, serial))
        assert cohorts == expected
        for key, tensor in serial.weights.items():
            torch.testing.assert_close(state.weights[key], tensor, rtol=1e-9, atol=1e-12)


def test_native_code_is_as_wide_as_the_largest_client():
    task = photo_task(batch=100_000)
    trainer = NativeTrainer(task)
    train(trainer, task.initial_weights(), [10, 2], 3)
    assert trainer.network._kernel.program.width < 2 * max(map(len, task.shards.indices))


def test_two_native_trainers_in_threads():
    """Each thread trains and evaluates in memory of its own."""
    tasks = [photo_task(seed=seed) for seed in range(2)]
    actual: list[set[tuple[str, float]]] = [set(), set()]

    def work(number: int) -> None:
        task = tasks[number]
        trainer, weights = NativeTrainer(task), task.initial_weights()
        for _ in range(20):
            model = train(trainer, weights, [10, 2], 3).client_weights(0)
            loss = evaluate(task.model, model, task.train_samples, torch.arange(40)).loss
            actual[number].add((fingerprint(model), loss))

    threads = [Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(results) for results in actual] == [1, 1] and actual[0] != actual[1]


@dataclass(frozen=True, kw_only=True)
class Smoothed(CrossEntropy):
    """An objective of one's own, without coefficients."""

    name: ClassVar[str] = "smoothed"

    def logits(self, outputs: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return 0.9 * outputs


@dataclass(frozen=True, kw_only=True)
class Doubled(FedRS):
    """Another one, that inherits coefficients that no longer hold."""

    name: ClassVar[str] = "doubled"

    def label_statistics(self, counts: Tensor) -> Tensor:
        return 2 * super().label_statistics(counts)


DROPOUT = nn.Sequential(nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(768, 3)).double()
CUMULATIVE = nn.Sequential(nn.BatchNorm2d(3, momentum=None), nn.Flatten(), nn.Linear(768, 3))


@pytest.mark.parametrize(
    ("kind", "parts", "reason"),
    [
        (NativeTrainer, {}, ""),
        (NativeTrainer, {"optimizer": "adam"}, "adam"),
        (NativeTrainer, {"objective": Smoothed()}, "smoothed"),
        (NativeTrainer, {"objective": Doubled(alpha=0.5)}, "doubled"),
        (NativeTrainer, {"model": DROPOUT}, "Dropout"),
        (NativeTrainer, {"model": nn.Sequential(nn.Conv2d(3, 2, 3, stride=2))}, "stride=(2, 2)"),
        (NativeTrainer, {"model": network().to(torch.bfloat16)}, "precision"),
        (NativeTrainer, {"model": nn.Sequential(nn.Conv2d(3, 3, 16), nn.Flatten())}, "linear"),
        (StackedTrainer, {}, ""),
        (StackedTrainer, {"optimizer": "adam"}, "adam"),
        (StackedTrainer, {"model": DROPOUT}, "Dropout"),
        (StackedTrainer, {"model": CUMULATIVE}, "BatchNorm2d"),
        (StackedTrainer, {"model": network("char-lstm", (20,))}, "LSTM"),
    ],
)
def test_what_they_refuse(kind: Kind, parts: dict[str, Any], reason: str):
    actual = kind.unsupported_reason(photo_task(**parts))
    assert reason in actual and bool(reason) == bool(actual)


def test_a_processor_without_fused_multiply_add_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native_network, "has_fma", lambda: False)
    assert "fused multiply-add" in NativeTrainer.unsupported_reason(photo_task())


@pytest.mark.parametrize(
    ("requested", "device", "model", "chosen", "reason"),
    [
        ("auto", GPU, "lenet5", "batched", ""),
        ("auto", GPU, "resnet9", "batched", ""),
        ("auto", CPU, "lenet5", "native", ""),
        ("auto", CPU, "resnet9", "serial", "no native code for BatchNorm2d"),
        ("batched", CPU, "lenet5", "batched", ""),
        ("native", CPU, "lenet5", "native", ""),
        ("serial", GPU, "lenet5", "serial", ""),
    ],
)
def test_which_trainer_is_chosen(
    requested: str, device: torch.device, model: str, chosen: str, reason: str
):
    samples = plain_samples(torch.zeros(21, 3, 32, 32), torch.arange(21) % 3)
    parts = {"model": network(model, (3, 32, 32)).float(), "train": samples, "test": samples}
    assert choose_trainer(requested, device, small_task(**parts)) == (TRAINERS[chosen], reason)
    for procedure in ("centralized", "concat-2", "federated-profiled1"):
        task = small_task(**parts, procedure=procedure)
        allowed = task.procedure.usable_trainers()
        trainer = TRAINERS[chosen if chosen in allowed else "serial"]
        assert choose_trainer(requested, device, task)[0] is trainer
    parts["model"].requires_grad_(False)
    assert choose_trainer(requested, device, small_task(**parts))[0].name == "serial"
    assert small_task().procedure.usable_trainers() == tuple(TRAINERS)


def test_on_a_cpu_no_step_is_captured(tmp_path: Path):
    assert captured_steps_equal_calls(CPU, tmp_path) == "5 calls, 0 CUDA graphs"
