"""A small computation for each component: its results on fixed inputs, as a list of numbers and hashes."""

from __future__ import annotations

import contextlib
import hashlib
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import yaml
from sklearn.datasets import load_digits
from torch import Tensor, nn

from cohort.core import user_files
from cohort.core.components import Component, schema_of
from cohort.core.randomness import torch_seed
from cohort.data.augmentations import AUGMENTATIONS, Augmentation
from cohort.data.download import download
from cohort.data.parsers import PARSERS
from cohort.data.samples import Samples
from cohort.data.shards import Shards
from cohort.data.split import Blocks, Split
from cohort.models import MODELS, Model
from cohort.needs import NEEDS
from cohort.partition import SCHEMES, Pool, Scheme
from cohort.partition.schemes import Iid, Overlap
from cohort.selection import SELECTORS, Selector
from cohort.selection import selector as abilities
from cohort.selection.selector import State, View
from cohort.training.availability import AVAILABILITIES, Availability, Trace
from cohort.training.devices import DEVICES, Devices
from cohort.training.objectives import OBJECTIVES, Objective
from cohort.training.participation import PARTICIPATIONS, Participation
from cohort.training.procedures import PROCEDURES, Procedure
from cohort.training.procedures.gathering import scatter_rows
from cohort.training.schedules import SCHEDULES, Schedule
from cohort.training.servers import SERVERS, Merged, ServerRule
from cohort.training.task import Task
from cohort.training.updates import Updates, Weights
from tests.conftest import ROOT
from tests.data import publishers
from tests.training.small_task import small_task

Number = int | float | str
DATASETS = yaml.safe_load((ROOT / "config/datasets.yaml").read_text(encoding="utf-8"))
SHAPES = [(1, 8, 8), (3, 32, 32)]


def example(cls: type[Component]) -> Any:
    """The component with its defaults, and a small value where it has none."""
    if cls is Overlap:
        return Overlap(base=Iid(), ratios=(0.2, 0.5))
    if cls is Trace:
        return Trace(table="golden", checksum=hashlib.sha256(TABLE.encode()).hexdigest()[:12])
    schema = schema_of(cls)
    return cls(**{name: _small_value(schema["properties"][name]) for name in schema["required"]})


def _small_value(schema: Mapping[str, Any]) -> Any:
    least = schema.get("minimum", schema.get("exclusiveMinimum", 0) * 1.5)
    return {"integer": 2, "number": max(0.5, least)}[schema["type"]]


def of_model(model: Model) -> list[Number]:
    """The initial weights of seed 0 and the outputs for fixed inputs of the first supported shape.

    Weights are drawn in float64: in float32 the last bit may differ between processors.
    """
    text, images = "text" in model.kinds, "images" in model.kinds
    shape = next(shape for shape in SHAPES if _takes(model, shape)) if images else (12,)
    with torch.random.fork_rng(devices=[]), _float64():
        torch.manual_seed(torch_seed(0, "initial weights"))
        network = model.build(shape, 10).eval()
    inputs = torch.linspace(-1, 1, 3 * math.prod(shape), dtype=torch.float64).sin().view(3, *shape)
    inputs = (inputs * 100).long() % 10 if text else inputs
    return [*_sums(dict(network.named_parameters())), *network(inputs).flatten().tolist()]


@contextlib.contextmanager
def _float64() -> Iterator[None]:
    default_dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(default_dtype)


def _takes(model: Model, shape: tuple[int, ...]) -> bool:
    try:
        model.check(shape)
    except ValueError:
        return False
    return True


def of_augmentation(augmentation: Augmentation) -> list[Number]:
    """Eight augmented images: the sum of each channel, and the sum weighted by position."""
    rng = np.random.default_rng(10)
    images, numbers = rng.random((8, 3, 6, 6)), rng.random((8, augmentation.numbers))
    changed = augmentation.apply(*map(torch.from_numpy, (images, numbers))).flatten(2)
    tensors = changed, changed * torch.arange(36)
    return [*(number for part in tensors for number in part.sum(dim=2).flatten().tolist())]


def of_partition(scheme: Scheme) -> list[Number]:
    """700 samples of five classes and four groups for ten clients: sizes, a hash of all parts."""
    held = np.repeat(np.arange(5), [200, 150, 150, 100, 100])
    labels = np.random.default_rng(1).permutation(held)
    groups = np.random.default_rng(11).integers(0, 4, 700)
    rng = np.random.default_rng(2)
    own, borrowed, _ = scheme.borrow(scheme.deal(Pool(labels, groups), 10, rng), rng)
    parts = [np.concatenate(pair) for pair in zip(own, borrowed, strict=True)]
    return [*(len(part) for part in parts), _hash(*parts)]


def of_selector(selector: Selector) -> list[Number]:
    """Twelve cohorts of four of twenty clients, with invented label counts and reports; thirty if
    the selector gathers reports in some rounds only. What is gathered before choosing, each
    client's probe included, is invented for the pool alone."""
    rounds = 30 if isinstance(selector, abilities.ConditionalNeeds) else 12
    counts = np.random.default_rng(3).integers(0, 30, (20, 5))
    shown = counts if "label_counts" in selector.needs else None
    view = View(clients=20, cohort=4, rounds=rounds, sizes=counts.sum(axis=1), label_counts=shown)
    if "overlap" in selector.needs:
        view = replace(view, reports={"overlap": (np.arange(20) % 7 == 3).astype(float)})
    if "expected_duration" in selector.needs:
        durations = {
            "expected_duration": 1 + np.arange(20.0) % 6,
            "transfer_time": np.full(20, 0.2),
        }
        view = replace(view, reports=durations | {"samples_per_round": np.minimum(view.sizes, 30)})
    state, cohorts = selector.begin(view, np.random.default_rng(0)), []
    for round in range(rounds):
        pool = np.arange(20)
        if isinstance(selector, abilities.Screening):
            pool = selector.draw_pool(pool, view, np.random.default_rng([12, round]))
        asks = not isinstance(selector, abilities.ConditionalNeeds) or selector.asks(state, view)
        before = _invented_before(selector, pool, round) if asks else {}
        full_view = replace(view, reports={**view.reports, **before})
        cohort = selector.select(state, pool, full_view, np.random.default_rng([4, round]))
        if isinstance(selector, abilities.UpdateWeighing):
            cohorts += [cohort, selector.weights(state, pool, cohort, full_view)]
            cohort = np.unique(cohort)
        after = (need for need in selector.needs if NEEDS[need].gathered == "after")
        measured = {need: _invented(need, round)[: len(cohort)] for need in after}
        is_kept = np.full(len(cohort), True)
        if isinstance(selector, abilities.Filtering):
            is_kept = selector.keep(measured, view.sizes[cohort])
        cohorts.append(cohort[is_kept])
        if isinstance(selector, abilities.Allocating):
            cohorts.append(selector.quotas(cohort, full_view).flatten())
        state = selector.observe(state, cohort, measured, full_view)
    return np.concatenate(cohorts).tolist()


def _invented_before(selector: Selector, pool: np.ndarray, round: int) -> dict[str, np.ndarray]:
    """A number for each client of the pool, NaN for the others, by what was asked of it."""
    names = sorted(need for need in selector.needs if NEEDS[need].gathered == "before")
    if isinstance(selector, abilities.Probing):
        names.append("probe_norm")
    values = np.random.default_rng([13, round]).lognormal(size=len(pool))
    return {name: scatter_rows(values, pool, 20) for name in names}


def _invented(need: str, round: int) -> np.ndarray:
    rng = np.random.default_rng([5, round])
    if need == "soft_labels":
        return rng.dirichlet(np.full(5, 0.3), 4)
    if need == "reserved_predictions":
        return rng.dirichlet(np.full(5, 0.3), (4, 6))
    if need == "reserved_correct":
        return rng.integers(0, 2, (4, 6)).astype(float)
    if need in ("update", "bias_update"):
        return rng.normal(size=(4, 5))
    return rng.random(4)


def of_objective(objective: Objective) -> list[Number]:
    """The loss of one batch and its gradient with respect to the outputs, which also stand for the
    parameters of a proximal term."""
    rng = np.random.default_rng(6)
    outputs = torch.from_numpy(rng.normal(size=(6, 4))).requires_grad_()
    head = nn.Linear(3, 4).double().requires_grad_(False)
    head.bias.copy_(torch.tensor([0.1, -0.2, 0.3, -0.4]))
    statistics = objective.label_statistics(torch.tensor([2.0, 1.0, 3.0, 0.0], dtype=torch.float64))
    targets = torch.from_numpy(rng.integers(0, 4, 6))
    loss = objective.losses(outputs, targets, statistics, head.bias).mean()
    if objective.is_proximal:
        start = torch.from_numpy(rng.normal(size=(6, 4)))
        loss = loss + objective.proximal_term([outputs], [start])
    loss.backward()
    return [loss.item(), *outputs.grad.flatten().tolist()]


def of_server(server: ServerRule) -> list[Number]:
    """Three rounds of invented updates of three unequal clients."""
    rng = np.random.default_rng(7)
    shapes = {"weight": (2, 3), "bias": (2,)}
    weights = {name: torch.from_numpy(rng.normal(size=shape)) for name, shape in shapes.items()}
    memory, numbers = server.begin(weights, dict), []
    settings = {"clients": (0, 3, 1), "total": 4, "lr": 0.1, "momentum": 0.5}
    for _ in range(3):
        local = {
            name: tensor + torch.from_numpy(rng.normal(size=(3, *tensor.shape)))
            for name, tensor in weights.items()
        }
        sizes, steps = torch.tensor([10.0, 30.0, 5.0]).double(), torch.tensor([4, 12, 2])
        updates = Updates(local, sizes, steps, torch.from_numpy(rng.random(3)), **settings)
        weights, memory, _ = server.apply(weights, updates, memory)
        for name in sorted(weights):
            numbers += weights[name].flatten().tolist()
    return numbers


def of_devices(devices: Devices) -> list[Number]:
    """The speeds of three clients, if there are any."""
    speeds = devices.speeds(3, np.random.default_rng(21))
    return [] if speeds is None else [*speeds.samples.tolist(), *speeds.bytes.tolist()]


TABLE = "device,start,end\n" + "".join(f"{n % 9},{n},{n + 3}\n" for n in range(30))


def of_availability(availability: Availability) -> list[Number]:
    """Which of seven clients are there in 24 rounds of an hour."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "availability", "golden.csv")
        file.parent.mkdir()
        file.write_text(TABLE)
        with patch.object(user_files, "folder", lambda: Path(folder)):
            rounds = [availability.present(7, 22, hour + 1, hour) for hour in range(24)]
    return np.concatenate(rounds).astype(int).tolist()


def of_participation(participation: Participation) -> list[Number]:
    """Who of ten answers in five rounds, and how much of ten epochs each of 20 clients manages."""
    numbers: list[Number] = []
    for round in range(5):
        rng = np.random.default_rng([14, round])
        numbers += participation.responds(np.arange(10), rng).astype(int).tolist()
        numbers += participation.efforts(20, 10, np.random.default_rng(15)).tolist()
    if participation.goes_by_time:
        seconds = np.random.default_rng(23).random(10)
        numbers += participation.in_time(seconds, 4).astype(int).tolist()
        numbers += [participation.invited(4, 10), participation.patience]
    return numbers


@dataclass(frozen=True, kw_only=True)
class Shuffled(Selector):
    """Chooses the first of the shuffled clients, so that a procedure's numbers depend on the random
    generator that it passes, but on no real selector."""

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        return rng.permutation(candidates)[: view.cohort]


@dataclass(frozen=True, kw_only=True)
class SquaredError(Objective):
    """Squared distance to the one-hot label."""

    def losses(self, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return ((outputs - nn.functional.one_hot(targets, outputs.shape[1])) ** 2).mean(dim=1)


@dataclass(frozen=True, kw_only=True)
class PlainMean(ServerRule):
    """A server rule that averages updates without weighting clients by their sizes."""

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        means = {name: rows.mean(dim=0) for name, rows in updates.weights.items()}
        return Merged(means, memory, {})


def of_schedule(schedule: Schedule) -> list[Number]:
    """Learning rate and momentum in 18 steps of six epochs; the validation loss rises at last."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
    built, numbers = schedule.build(optimizer, 6, 3), []
    for epoch in range(6):
        for _ in range(3):
            numbers += [optimizer.param_groups[0][key] for key in ("lr", "momentum")]
            optimizer.step()
            if schedule.by_batch:
                built.step()
        if not schedule.by_batch:
            built.step(*([abs(epoch - 2)] if schedule.watches_loss else []))
    return numbers


LATER = {"test_classes_named", "update_norm"}  # what is measured since, and changes nothing


def of_procedure(procedure: Procedure) -> list[Number]:
    """Three rounds of a linear model on 120 digits, with batch normalization where a procedure is
    made for that: everything recorded except times, and the final weights."""
    task = _digits_task()
    if procedure.name == "fedtan":
        normalization = nn.BatchNorm1d(64).double()
        task = replace(task, model=nn.Sequential(nn.Flatten(), normalization, task.model[1]))
    if procedure.name.startswith("stratified"):
        task = replace(task, settings=replace(task.settings, J="J1e"))
    *_, state = procedure.rounds_of(task).run(procedure.begin(task))
    numbers: list[Number] = np.concatenate(state.history.cohorts).tolist()
    for series in (state.history.metrics, state.history.cost):
        for name in sorted(set(series) - LATER):
            if not name.startswith("seconds"):
                numbers += [value for _, value in series[name]]
    return [*numbers, *_sums(state.weights)]


def _digits_task() -> Task:
    """Five clients with 120 digits, of whom three are in each cohort; a linear model."""
    digits = load_digits()
    images = torch.from_numpy(digits.images[:200]).unsqueeze(1)
    labels = torch.from_numpy(digits.target[:200])
    mean, std = torch.tensor([0, 1], dtype=torch.float64).split(1)
    train = Samples(images[:120], labels[:120], 16.0, mean, std)
    test = Samples(images[120:], labels[120:], 16.0, mean, std)
    parts = np.split(np.random.default_rng(8).permutation(120), [10, 25, 50, 80])
    counts = [np.bincount(train.labels.numpy()[part], minlength=10) for part in parts]
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10)).double()
    for number, parameter in enumerate(model.parameters()):
        drawn = np.random.default_rng([9, number]).normal(size=tuple(parameter.shape))
        parameter.data = torch.from_numpy(drawn / 8)
    strategy = {"selector": Shuffled(), "objective": SquaredError(), "server": PlainMean()}
    settings = {"cohort": 3, "rounds": 3, "J": "J2e", "batch": 8, "momentum": 0.5}
    data = {"train": train, "test": test, "classes": 10, "sizes": tuple(map(len, parts))}
    task = small_task(model=model, **strategy, **data, **settings)
    places = {"test": torch.arange(10, 80), "reserved": torch.arange(10)}
    return replace(task, shards=Shards(parts, np.stack(counts)), **places)


def of_dataset(name: str) -> list[Number]:
    """Training and test split of bundled files, or of generated ones in the publisher's format:
    samples per class, pixel sum, and a hash of every byte."""
    numbers: list[Number] = []
    with tempfile.TemporaryDirectory() as folder:
        if name == "arrays":
            _write_arrays(Path(folder))
        elif name in {*publishers.CLASSES, *publishers.PICTURE_SETS, *publishers.ROW_SETS}:
            publishers.write(name, Path(folder))
        else:
            _take_bundled(name, Path(folder))
        for split in component(f"dataset:{name}")().parse(Path(folder))[:2]:
            values, whole = all_values(split), split.labels.astype(np.int64)
            numbers += [*np.bincount(whole).tolist(), int(values.sum()), _hash(values, whole)]
            numbers += [_hash(split.groups.astype(np.int64))] if split.groups is not None else []
    return numbers


def _write_arrays(folder: Path) -> None:
    """Seven and five rows of three columns, as `cohort data add` stores a table."""
    rng = np.random.default_rng(16)
    sizes = {"train": 7, "test": 5}
    arrays = {f"x_{part}": rng.integers(-99, 99, (size, 3)) for part, size in sizes.items()}
    arrays |= {f"y_{part}": np.arange(size) % 3 for part, size in sizes.items()}
    np.savez(folder / "arrays.npz", **arrays)


def all_values(split: Split) -> np.ndarray:
    """Also of a split that is read block by block."""
    values = split.values
    return np.concatenate(list(values.read())) if isinstance(values, Blocks) else values


def _take_bundled(dataset: str, folder: Path) -> None:
    for name, file in DATASETS[dataset]["files"].items():
        download(file, folder / name)


def _sums(weights: Weights) -> list[Number]:
    """The total number of elements, and for each tensor the sums of its values and their sizes."""
    results: list[Number] = [sum(tensor.numel() for tensor in weights.values())]
    for name in sorted(weights):
        results += [weights[name].sum().item(), weights[name].abs().sum().item()]
    return results


def _hash(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes() + b"\0")
    return digest.hexdigest()


# By the names that science versions have in a plan. Every catalog of the package that can change
# numbers is here, so that a new component fails a test until its golden run is recorded.
CATALOGS: dict[str, tuple[dict[str, Any], Callable[[Any], list[Number]]]] = {
    "model": (MODELS, of_model),
    "augmentation": (AUGMENTATIONS, of_augmentation),
    "partition": (SCHEMES, of_partition),
    "selector": (SELECTORS, of_selector),
    "objective": (OBJECTIVES, of_objective),
    "server": (SERVERS, of_server),
    "procedure": (PROCEDURES, of_procedure),
    "availability": (AVAILABILITIES, of_availability),
    "participation": (PARTICIPATIONS, of_participation),
    "devices": (DEVICES, of_devices),
    "schedule": (SCHEDULES, of_schedule),
    "dataset": (PARSERS, of_dataset),
}
UNREPEATABLE = {"procedure:masked-labels"}  # keys and ciphertexts have no seed, nothing is trained
SHARED = {name: entry["parser"] for name, entry in DATASETS.items() if "parser" in entry}
"""The data sets that name a parser, each of which has a golden run instead of the parser."""
LEFT_OUT = UNREPEATABLE | {f"dataset:{name}" for name in SHARED.values()}
KEYS = [f"{kind}:{name}" for kind, (components, _) in CATALOGS.items() for name in components]
KEYS = [key for key in KEYS if key not in LEFT_OUT] + [f"dataset:{name}" for name in SHARED]


def component(key: str) -> type[Component]:
    """The class that a key like `selector:entropy` names."""
    kind, _, name = key.partition(":")
    cls: type[Component] = CATALOGS[kind][0][SHARED.get(name, name) if kind == "dataset" else name]
    return cls


def numbers_of(key: str) -> list[Number]:
    """The numbers of a component as it stands."""
    torch.set_num_threads(1)  # as a job does
    kind, _, name = key.partition(":")
    return CATALOGS[kind][1](name if kind == "dataset" else example(component(key)))
