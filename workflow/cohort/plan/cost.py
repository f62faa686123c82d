"""Estimates of a cell's time and memory before it runs.

The constants are rough: times are those of one core of an Intel Xeon or AMD EPYC with AVX-512, and
records correct them (see `paces`). With the constants of memory, 250 cells on a CPU (five data
sets, five networks of 5,000 to 1,800,000 weights) took between 55 and 93 % of their estimates.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from cohort.cell.evaluations import evaluation_batch_size
from cohort.cell.settings import local_work
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.dataset_info import DatasetInfo
from cohort.data.sampling import scaled_count
from cohort.models import MODELS, counting
from cohort.models.counting import Counts
from cohort.native.multiplications import LANES, native_counts
from cohort.needs import needs_of
from cohort.selection.selector import Probing
from cohort.training.cell import Cell
from cohort.training.evaluators import EVALUATORS, SampleCounts

START_SECONDS = 2.0  # imports and loading, before the first round
ROUND_SECONDS = 1.5e-3  # a round without its local steps
CLIENT_SECONDS = 4e-4  # what each client of a cohort adds to that
PRODUCT_SECONDS = 2 / 8.5e10  # of a multiplication and its addition in convolutions and products
NATIVE_STEP_SECONDS = 1e-5  # a local step of native code, however small
SINGLE_STEP_SECONDS = 4e-5  # and of a single sample
LAYER_SECONDS = 3e-4  # of each layer in a step of PyTorch
OUTPUT_SECONDS = 4.5e-9  # of PyTorch for each number that a layer puts out, in training
AUGMENTATION_SECONDS = 2e-10  # for each random number of an image, and each of its own numbers
TORCH_SLOWDOWN = 4  # of PyTorch where native code could augment, or evaluate several networks

START_MB = 500  # the interpreter with torch
CLIENT_COPIES = 8  # of the network per client in training or probing: models, stack, server rule
NETWORK_COPIES = 4  # of each further network of a model of several: current, before, after, initial
LARGEST_CLIENT = 10  # its size in multiples of the mean client's, all in memory while it trains
INPUT_COPIES = 3  # of a client's inputs, at most, while they are standardized


def client_steps(cell: Cell, info: DatasetInfo) -> int:
    """Count the local steps of all rounds, probes included, if every client has the mean size."""
    amount, epochs = local_work(cell.settings.J)
    per_epoch = math.ceil(_client_size(cell, info) / cell.settings.batch)
    per_client = amount * per_epoch if epochs else amount
    probed, batches = _probes(cell)
    if probed:  # the probe is the first of J epochs, or the first batches of J steps
        per_client -= per_epoch if epochs else batches
    rounds = cell.procedure.workload(cell.settings.rounds).rounds
    return int(rounds * (cell.settings.cohort * per_client + probed * batches))


def round_seconds(cell: Cell, info: DatasetInfo) -> float:
    """Estimate the seconds of all rounds on a core: local steps, evaluations and overheads."""
    return sum(_round_seconds(part, info) for part in phases(cell))


def _round_seconds(cell: Cell, info: DatasetInfo) -> float:
    settings, load = cell.settings, cell.procedure.workload(cell.settings.rounds)
    step, trained, tested = _seconds_by_work(cell, info)
    batch = _mean_batch(cell, info)
    steps = client_steps(cell, info) * (step + batch * trained)
    passes = load.passes * settings.cohort * batch * tested
    evaluated = _evaluated_samples(cell, info) * tested * load.networks
    overhead = cell.procedure.overhead(settings.clients, info["classes"]).seconds
    around = settings.rounds * (ROUND_SECONDS + settings.cohort * CLIENT_SECONDS)
    return steps + passes + evaluated + overhead + around


def paces(finished: Iterable[tuple[str, float, float]]) -> dict[str, float]:
    """Divide the time that cells took by their estimates, by model, device or another key.

    `finished` has the key, the seconds and the estimate of each cell.
    """
    taken: defaultdict[str, float] = defaultdict(float)
    estimated: defaultdict[str, float] = defaultdict(float)
    for key, seconds, estimate in finished:
        taken[key] += seconds
        estimated[key] += estimate
    return {key: taken[key] / estimated[key] for key in taken}


def operations(cell: Cell, info: DatasetInfo) -> float:
    """Count the floating-point operations of convolutions and matrix products in all rounds: two
    for a multiplication and its addition, three times as many in training as in evaluation."""
    return sum(_operations(part, info) for part in phases(cell))


def _operations(cell: Cell, info: DatasetInfo) -> float:
    load, batch = cell.procedure.workload(cell.settings.rounds), _mean_batch(cell, info)
    trained = 3 * client_steps(cell, info) * batch
    passed = load.passes * cell.settings.cohort * batch
    tested = load.networks * _evaluated_samples(cell, info)
    return 2 * counts_of(cell, info).multiply_adds * (trained + passed + tested)


def _evaluated_samples(cell: Cell, info: DatasetInfo) -> float:
    """Estimate how many samples are evaluated in all rounds: to measure the run, and for what the
    selector needs to know."""
    cohort, size = cell.settings.cohort, _client_size(cell, info)
    reserve = scaled_count(cell.settings.reserve, cell.settings.samples)
    test = info["test"] * cell.settings.samples - reserve
    validation = (cell.settings.validation or info.get("validation", 0)) * cell.settings.samples
    held_out = info["train"] * cell.settings.samples * cell.settings.holdout
    counts = SampleCounts(test, validation, held_out, size, cohort, cell.settings.clients)
    evaluators = (kind() for kind in EVALUATORS.values())
    samples_evaluated = sum(
        len(evaluator.rounds(cell)) * evaluator.samples(counts) for evaluator in evaluators
    )
    needs = needs_of(cell.selector)
    evaluating = {(need.gathered, need.reserved) for need in needs if need.evaluates}
    for when, reserved in evaluating:
        clients = {"once": 0, "before": cell.settings.clients, "after": cohort}[when]
        samples_evaluated += cell.settings.rounds * clients * (reserve if reserved else size)
    return float(samples_evaluated)


def _seconds_by_work(cell: Cell, info: DatasetInfo) -> tuple[float, float, float]:
    """Estimate the seconds of one core for a local step, whatever its batch, for a sample in a
    step, and for a sample that is evaluated."""
    settings, counts, shape = cell.settings, counts_of(cell, info), tuple(info["shape"])
    numbers = AUGMENTATIONS[settings.augmentation].numbers * math.prod(shape)
    augmented = numbers * AUGMENTATION_SECONDS
    products, outputs = counts.multiply_adds * PRODUCT_SECONDS, counts.outputs * OUTPUT_SECONDS
    step = counts.layers * LAYER_SECONDS
    trained, tested = 3 * products + outputs + TORCH_SLOWDOWN * augmented, products + outputs / 3
    native = native_counts(MODELS[settings.model](), shape, info["classes"])
    if native is None or settings.precision == "bfloat16":
        return step, trained, tested
    several = cell.procedure.workload(settings.rounds).networks > 1  # which PyTorch evaluates
    tested = native.forward * PRODUCT_SECONDS * (TORCH_SLOWDOWN if several else 1)
    if settings.optimizer != "sgd" or "native" not in cell.procedure.usable_trainers():
        return step, trained, tested
    trained = native.training * PRODUCT_SECONDS
    if settings.batch == 1:
        return SINGLE_STEP_SECONDS, trained + augmented, tested
    padding = math.ceil(settings.batch / LANES) * LANES / settings.batch
    step = NATIVE_STEP_SECONDS + native.step * PRODUCT_SECONDS
    return step, trained * padding + augmented, tested


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
    counts = counts_of(cell, info)
    factor = MODELS[cell.settings.model].activation_factor
    load = cell.procedure.workload(cell.settings.rounds)
    at_once = cell.settings.cohort if load.together else 1
    trained = factor * at_once * min(cell.settings.batch, largest)
    activations = counts.outputs * max(trained, evaluation_batch_size(shape)) * number
    models = _model_copies(cell) * counts.weights * number
    overhead = cell.procedure.overhead(cell.settings.clients, info["classes"]).megabytes
    reserved = scaled_count(cell.settings.reserve, cell.settings.samples)
    selector = cell.selector.memory(reserved, info["classes"], cell.settings.clients)
    return START_MB + overhead + (data + inputs + activations + models + selector) / 1e6


def _model_copies(cell: Cell) -> int:
    """The number of copies of the network in memory during a round."""
    settings = cell.settings
    clients = settings.cohort + _probes(cell)[0]
    further = NETWORK_COPIES * (cell.procedure.workload(settings.rounds).networks - 1)
    held = sum(part.models_held(settings.clients) for part in (cell.server, cell.selector))
    return CLIENT_COPIES * clients + further + held


def counts_of(cell: Cell, info: DatasetInfo) -> Counts:
    """Count the weights, operations and outputs of a cell's network."""
    return counting.counts_of(MODELS[cell.settings.model](), tuple(info["shape"]), info["classes"])


def _client_size(cell: Cell, info: DatasetInfo) -> float:
    """The number of samples that the mean client trains on."""
    settings = cell.settings
    used = (info["train"] - settings.validation) * settings.samples
    return float(used * (1 - settings.holdout) / settings.clients)


def _mean_batch(cell: Cell, info: DatasetInfo) -> float:
    """The mean size of a batch in an epoch of the mean client."""
    size = _client_size(cell, info)
    return size / math.ceil(size / cell.settings.batch)


def phases(cell: Cell) -> list[Cell]:
    """The phases of a run that have any rounds."""
    return [part for part in cell.procedure.phases(cell) if part.settings.rounds]


def _probes(cell: Cell) -> tuple[int, int]:
    """The number of clients that are probed in a round, and of batches that each of them trains
    on."""
    selector, settings = cell.selector, cell.settings
    if not isinstance(selector, Probing):
        return 0, 0
    return selector.pool_size(settings.clients, settings.cohort), selector.batches
