"""Estimates of a cell's time and memory before it runs.

The constants are rough. Those of time lie between what cells of different kinds take on one core of
an Intel Xeon and of an AMD EPYC, both with AVX-512; `cohort cost` prints how far finished cells
were from their estimates. With those of memory, 250 cells on a CPU (five data sets, five networks
of 5,000 to 1,800,000 weights) took between 55 and 93 % of their estimates.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from cohort.cell.evaluations import evaluated_at_once, is_evaluated
from cohort.cell.settings import local_work
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.dataset_info import DatasetInfo
from cohort.data.sampling import scaled_count
from cohort.models import MODELS
from cohort.models.counting import Counts
from cohort.native.multiplications import LANES, NativeCounts, native_counts
from cohort.needs import needs_of
from cohort.selection.abilities import Probing
from cohort.training.cell import Cell
from cohort.training.evaluators import EVALUATORS
from cohort.training.evaluators.evaluator import SampleCounts
from cohort.training.procedures.procedure import Overhead, Workload

START_SECONDS = 2.0  # imports and loading, before the first round
ROUND_SECONDS = 1.5e-3  # a round without its local steps
CLIENT_SECONDS = 4e-4  # what each client of a cohort adds to that
COPY_SECONDS = 5e-9  # and each weight of its model
OPERATIONS_PER_SECOND = 9e10  # of convolutions and matrix products
SINGLE_OPERATIONS_PER_SECOND = 6.5e10  # of native code for batches of one sample
WEIGHT_SECONDS = 2.5e-9  # of the optimizer for each weight that the caches do not hold, in a step
CACHED_WEIGHTS = 250_000
NATIVE_STEP_SECONDS = 1e-5
SINGLE_STEP_SECONDS = 1.5e-5
STEP_SECONDS = 7e-4  # of PyTorch, whatever the network
LAYER_SECONDS = 1.9e-4  # and for each layer
TRAINED_SECONDS = 4.5e-9  # of PyTorch for each number that a layer puts out, in a step
TESTED_SECONDS = 1.3e-9  # the same in evaluation
SLOWER_TESTS = 4  # of networks by PyTorch that native code could evaluate
AUGMENTATION_SECONDS = 2e-10  # for each random number of an image, and each of its own numbers
SLOWDOWN = 8  # of augmentation by PyTorch

START_MB = 500  # the interpreter with torch
CLIENT_COPIES = 8  # of the network per client in training or probing: models, stack, server rule
NETWORK_COPIES = 4  # of each further network of a model of several: current, before, after, initial
LARGEST_CLIENT = 10  # its size in multiples of the mean client's, all in memory while it trains
INPUT_COPIES = 3  # of a client's inputs, at most, while they are standardized


def client_steps(cell: Cell, info: DatasetInfo) -> int:
    """Count the local steps of all rounds, probes included, if every client has the mean size."""
    return sum(_client_steps(part, info) for part in _parts(cell))


def _client_steps(cell: Cell, info: DatasetInfo) -> int:
    amount, epochs = local_work(cell.settings.J)
    per_epoch = math.ceil(_client_size(cell, info) / cell.settings.batch)
    per_client = amount * per_epoch if epochs else amount
    probed, batches = _probes(cell)
    if probed:  # the probe is the first of J epochs, or the first batches of J steps
        per_client -= per_epoch if epochs else batches
    return int(_load(cell).rounds * (cell.settings.cohort * per_client + probed * batches))


@functools.cache
def evaluations(every: int | str, rounds: int) -> int:
    """Count the rounds that are evaluated."""
    return sum(is_evaluated(every, round) for round in range(1, rounds)) + 1


class Rates(NamedTuple):
    """Estimated seconds of one core: for a local step, whatever its batch, for a sample in a step,
    and for a sample that is evaluated."""

    step: float
    trained: float
    tested: float


def round_seconds(cell: Cell, info: DatasetInfo) -> float:
    """Estimate the time of all rounds on one core: local steps, evaluations and what comes with a
    round."""
    return sum(_round_seconds(part, info) for part in _parts(cell))


def _round_seconds(cell: Cell, info: DatasetInfo) -> float:
    load, rates = _load(cell), _rates(cell, info)
    size = _client_size(cell, info)
    batch = size / math.ceil(size / cell.settings.batch)  # the mean of an epoch
    steps = _client_steps(cell, info) * (rates.step + batch * rates.trained)
    passes = load.passes * cell.settings.cohort * batch * rates.tested
    tested = _evaluated(cell, info) * rates.tested * load.networks
    copied = CLIENT_SECONDS + _counts(cell, info).weights * COPY_SECONDS
    per_round = ROUND_SECONDS + cell.settings.cohort * copied
    overhead = _overhead(cell, info).seconds
    return steps + passes + tested + overhead + cell.settings.rounds * per_round


def operations(cell: Cell, info: DatasetInfo) -> float:
    """Count the floating-point operations of convolutions and matrix products in all rounds: two
    for a multiplication and its addition, three times as many in training as in evaluation."""
    return sum(_operations(part, info) for part in _parts(cell))


def _operations(cell: Cell, info: DatasetInfo) -> float:
    load, size = _load(cell), _client_size(cell, info)
    batch = size / math.ceil(size / cell.settings.batch)
    trained = 3 * _client_steps(cell, info) * batch
    passed = load.passes * cell.settings.cohort * batch
    tested = load.networks * _evaluated(cell, info)
    return 2 * _counts(cell, info).multiply_adds * (trained + passed + tested)


def serial_steps(cell: Cell, info: DatasetInfo) -> float:
    """Count the local steps that follow one another on a GPU: clients of a cohort that the batched
    trainer takes step together."""
    steps = 0.0
    for part in _parts(cell):
        together = "batched" in part.procedure.takes()
        steps += _client_steps(part, info) / (part.settings.cohort if together else 1)
    return steps


def layers(cell: Cell, info: DatasetInfo) -> int:
    """Count the layers of a cell's network."""
    return _counts(cell, info).layers


def _evaluated(cell: Cell, info: DatasetInfo) -> float:
    """Estimate how many samples are evaluated in all rounds: to measure the run, and for what the
    selector needs to know."""
    cohort, size = cell.settings.cohort, _client_size(cell, info)
    reserve = scaled_count(cell.settings.reserve, cell.settings.samples)
    test = info["test"] * cell.settings.samples - reserve
    validation = (cell.settings.validation or info.get("validation", 0)) * cell.settings.samples
    held_out = info["train"] * cell.settings.samples * cell.settings.holdout
    counts = SampleCounts(test, validation, held_out, size, cohort, cell.settings.clients)
    evaluators = (kind() for kind in EVALUATORS.values())
    plans = ((evaluator.plan(cell), evaluator.samples(counts)) for evaluator in evaluators)
    samples_evaluated = sum(
        evaluations(plan, cell.settings.rounds) * samples for plan, samples in plans if plan
    )
    needs = needs_of(cell.selector)
    evaluating = {(need.gathered, need.reserved) for need in needs if need.evaluates}
    for when, reserved in evaluating:
        clients = {"once": 0, "before": cell.settings.clients, "after": cohort}[when]
        samples_evaluated += cell.settings.rounds * clients * (reserve if reserved else size)
    return float(samples_evaluated)


def _rates(cell: Cell, info: DatasetInfo) -> Rates:
    counts, native = _counts(cell, info), _native_counts(cell, info)
    augmentation = AUGMENTATIONS[cell.settings.augmentation].numbers * math.prod(info["shape"])
    augmented = augmentation * AUGMENTATION_SECONDS
    optimizer = max(0, counts.weights - CACHED_WEIGHTS) * WEIGHT_SECONDS
    products = 2 * counts.multiply_adds / OPERATIONS_PER_SECOND
    rates = Rates(
        STEP_SECONDS + counts.layers * LAYER_SECONDS + optimizer,
        3 * products + counts.outputs * TRAINED_SECONDS + SLOWDOWN * augmented,
        products + counts.outputs * TESTED_SECONDS,
    )
    if native is None:
        return rates
    several = _load(cell).networks > 1  # which PyTorch evaluates
    tested = 2 * native.forward / OPERATIONS_PER_SECOND * (SLOWER_TESTS if several else 1)
    rates = rates._replace(tested=tested)
    if not _trains_natively(cell):
        return rates
    single = _native_counts(cell, info, single=True) if cell.settings.batch == 1 else None
    if single:
        trained = 2 * single.training / SINGLE_OPERATIONS_PER_SECOND
        return rates._replace(step=SINGLE_STEP_SECONDS, trained=trained + augmented)
    padding = math.ceil(cell.settings.batch / LANES) * LANES / cell.settings.batch
    trained = 2 * native.training * padding / OPERATIONS_PER_SECOND
    step = NATIVE_STEP_SECONDS + 2 * native.step / OPERATIONS_PER_SECOND + optimizer
    return rates._replace(step=step, trained=trained + augmented)


def _native_counts(cell: Cell, info: DatasetInfo, single: bool = False) -> NativeCounts | None:
    """The multiplications of native code for the model, for batches of a `single` sample or larger
    ones; None where there is none."""
    if cell.settings.precision == "bfloat16":
        return None
    shape = tuple(info["shape"])
    return native_counts(MODELS[cell.settings.model](), shape, info["classes"], single)


def _trains_natively(cell: Cell) -> bool:
    trainers = cell.procedure.takes()
    return cell.settings.optimizer == "sgd" and "native" in trainers


def memory_mb(cell: Cell, info: DatasetInfo) -> float:
    """Estimate the peak memory of a cell's process on a CPU: the data set, the largest client's
    inputs, the activations of a batch, and the models of a round."""
    shape, kind = tuple(info["shape"]), info.get("kind", "images")
    number = 8 if cell.settings.precision == "float64" else 4
    label_and_index = 16
    sample = math.prod(shape) * (2 if kind == "table" else 1) + label_and_index
    data = (info["train"] + info["test"] + info.get("validation", 0)) * sample
    largest = min(LARGEST_CLIENT, cell.settings.clients) * _client_size(cell, info)
    inputs = largest * math.prod(shape) * INPUT_COPIES * (8 if kind == "text" else number)
    counts = _counts(cell, info)
    factor = MODELS[cell.settings.model].activation_factor
    at_once = cell.settings.cohort if _load(cell).together else 1
    trained = factor * at_once * min(cell.settings.batch, largest)
    activations = counts.outputs * max(trained, evaluated_at_once(shape)) * number
    models = _model_copies(cell) * counts.weights * number
    overhead = _overhead(cell, info).megabytes
    return START_MB + overhead + (data + inputs + activations + models) / 1e6


def _model_copies(cell: Cell) -> int:
    """The number of copies of the network in memory during a round."""
    clients = cell.settings.cohort + _probes(cell)[0]
    further = NETWORK_COPIES * (_load(cell).networks - 1)
    held = cell.server.models_held(cell.settings.clients)
    return CLIENT_COPIES * clients + further + held


def _counts(cell: Cell, info: DatasetInfo) -> Counts:
    return MODELS[cell.settings.model]().counts(tuple(info["shape"]), info["classes"])


def _client_size(cell: Cell, info: DatasetInfo) -> float:
    """The number of samples that the mean client trains on."""
    used = (info["train"] - cell.settings.validation) * cell.settings.samples
    return float(used * (1 - cell.settings.holdout) / cell.settings.clients)


def _parts(cell: Cell) -> list[Cell]:
    """The parts of a run that have any rounds."""
    parts = cell.procedure.parts(cell)
    return [part for part in parts if part.settings.rounds]


def _load(cell: Cell) -> Workload:
    return cell.procedure.workload(cell.settings.rounds)


def _overhead(cell: Cell, info: DatasetInfo) -> Overhead:
    return cell.procedure.overhead(cell.settings.clients, info["classes"])


def _probes(cell: Cell) -> tuple[int, int]:
    """The number of clients that are probed in a round, and of batches that each of them trains
    on."""
    selector = cell.selector
    if not isinstance(selector, Probing):
        return 0, 0
    return selector.pool_size(cell.settings.clients, cell.settings.cohort), selector.batches
