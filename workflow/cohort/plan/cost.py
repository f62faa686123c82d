"""What a cell will take: seconds of one CPU core, memory, and the job that requests them.

Times are a rate of each model times the samples of a cell, on one core of an Intel Xeon or AMD EPYC
with AVX-512. Cells of 13 kinds took between 55 and 114 % of them (docs/performance.md), and 250
cells on a CPU at least 55 % of their estimated memory and at most all of it.
"""

import math
from typing import NamedTuple

from cohort.data.parsers import DatasetInfo
from cohort.data.sampling import scaled_count
from cohort.needs import needs_of
from cohort.selection.selector import Probing
from cohort.settings import evaluated_rounds, evaluation_batch_size, local_work
from cohort.training.cell import Cell


class Rate(NamedTuple):
    """What a network takes on a core: `microseconds` of a training sample (an evaluated one takes a
    third) and of a `step` whatever its batch, millions of `weights`, and `megabytes` of activations
    for a training sample. A sample is an image of 32x32, or as long as `size` says."""

    microseconds: float
    step: float
    weights: float
    megabytes: float
    size: int = 32 * 32
    native: bool = True  # whether there is native code for it


TEXT, ROW = 80, 54  # characters, columns
RATES = {
    "aml-lenet": Rate(615, 460, 1.8, 1.5),
    "char-lstm": Rate(940, 900, 0.1, 1.3, TEXT, native=False),
    "char-lstm-central": Rate(6400, 900, 0.82, 5, TEXT, native=False),
    "char-lstm-two": Rate(2150, 900, 0.23, 2.5, TEXT, native=False),
    "efficientnet-b0": Rate(2600, 69_000, 4.1, 2.3, native=False),
    "efficientnet-b3": Rate(5400, 110_000, 10.8, 4.5, native=False),
    "lenet5": Rate(38, 40, 0.063, 0.12),
    "resnet18": Rate(47_500, 15_600, 11.3, 22, native=False),
    "resnet20": Rate(5800, 18_000, 0.28, 3.3, native=False),
    "resnet9": Rate(31_600, 9000, 6.7, 12.8, native=False),
    "resnet9-gn": Rate(31_600, 9000, 6.7, 12.8, native=False),
    "resnet9-plain": Rate(29_800, 6600, 6.7, 8.3, native=False),
    "small-cnn": Rate(64, 40, 0.026, 0.67),
    "small-mlp": Rate(4, 40, 0.005, 0.03),
    "stratify-cnn": Rate(1270, 40, 2.3, 2.6),
    "stratify-mlp": Rate(0.9, 40, 0.016, 0.005, ROW),
    "vgg11": Rate(4120, 6100, 9.3, 2.9),
}
UNKNOWN = RATES["aml-lenet"]  # of a model of the user's own

START_SECONDS = 2.0  # imports and loading, before the first round
ROUND_SECONDS, CLIENT_SECONDS = 1.5e-3, 4e-4  # a round without its local steps; each client of it
TORCH_SLOWDOWN, TORCH_STEP = 4, 3e-3  # of PyTorch where native code exists but cannot be used

START_MB = 500  # the interpreter with torch
SNAKEMAKE_MB = 350  # what Snakemake itself takes within a job on a cluster
CLIENT_COPIES = 8  # of the network per client in training or probing: models, stack, server rule
MODELS_HELD = {"scaffold": 1, "divfl": 2, "clustered-updates": 3}  # that a rule keeps per client
MAX_CLIENT_SIZE = 10  # in multiples of the mean client's, all in memory while it trains
INPUT_COPIES = 3  # of a client's inputs, at most, while they are standardized

TIME_FACTOR, MEMORY_FACTOR = 3, 1.5  # what a job requests, times the estimate
MAX_TIMES = 3  # an attempt's request, times the first: a job preempted often must still fit a node
MINUTES = (30, 60, 120, 240, 480, 1440, 2880, 5760, 10080)
MEGABYTES = (2000, 4000, 8000, 16000, 32000, 64000, 128000)
MAX_RUNTIME = 1440  # minutes, where the config does not say


def seconds(cell: Cell, info: DatasetInfo) -> float:
    """Estimate the seconds of a cell on a core, its start included."""
    return START_SECONDS + round_seconds(cell, info)


def round_seconds(cell: Cell, info: DatasetInfo) -> float:
    """Estimate the seconds of all rounds on a core: local steps, evaluations and overheads."""
    return sum(_phase_seconds(phase, info) for phase in cell.procedure.phases(cell))


def _phase_seconds(cell: Cell, info: DatasetInfo) -> float:
    settings, size = cell.settings, _client_size(cell, info)
    rate, length, networks = _rate(cell, info)
    step, sample = rate.step * 1e-6, rate.microseconds * 1e-6 * length
    evaluation = sample / 3 * networks * (TORCH_SLOWDOWN if rate.native and networks > 1 else 1)
    usable = cell.procedure.usable_trainers()
    if rate.native and ("native" not in usable or settings.optimizer != "sgd"):
        step, sample = max(step, TORCH_STEP), sample * TORCH_SLOWDOWN
    amount, epochs = local_work(settings.J)
    per_epoch = math.ceil(size / settings.batch)
    client_steps = amount * (per_epoch if epochs else 1)
    steps = settings.cohort * client_steps
    if isinstance(cell.selector, Probing):
        steps += _probed(cell) * min(cell.selector.batches, client_steps)
    around = ROUND_SECONDS + settings.cohort * CLIENT_SECONDS
    per_round = steps * step + steps * size / per_epoch * sample + around
    return settings.rounds * per_round + _evaluated_samples(cell, info) * evaluation


def _evaluated_samples(cell: Cell, info: DatasetInfo) -> float:
    """Estimate how many samples are evaluated to measure the run and for the selector's needs."""
    settings, size = cell.settings, _client_size(cell, info)
    reserve = scaled_count(settings.reserve, settings.samples)
    test = info["test"] * settings.samples - reserve
    validation = (settings.validation or info.get("validation", 0)) * settings.samples
    held_out = info["train"] * settings.samples * settings.holdout
    at_once = {
        "evaluate_every": test + validation,
        "evaluate_holdout": 2 * held_out,  # of all clients together and of each
        "evaluate_next": held_out * settings.cohort / settings.clients,
        "evaluate_local": settings.cohort * test,
        "evaluate_own": settings.cohort * size,
    }
    total = test + info["train"] * settings.samples  # of the final model (once a phase)
    for plan, samples in at_once.items():
        total += len(evaluated_rounds(getattr(settings, plan), settings.rounds)) * samples
    needs = needs_of(cell.selector)
    for when, reserved in {(need.gathered, need.reserved) for need in needs if need.evaluates}:
        clients = {"once": 0, "before": settings.clients, "after": settings.cohort}[when]
        total += settings.rounds * clients * (reserve if reserved else size)
    return total


def memory_mb(cell: Cell, info: DatasetInfo) -> float:
    """Estimate the peak memory of a cell's process on a CPU: the data set, the largest client's
    inputs, the activations of a batch, and the models of a round."""
    settings, shape, kind = cell.settings, tuple(info["shape"]), info.get("kind", "images")
    rate, length, networks = _rate(cell, info)
    width = 2 if settings.precision == "float64" else 1
    sample = math.prod(shape) * (2 if kind == "table" else 1) + 16  # its label and index
    data = (info["train"] + info["test"] + info.get("validation", 0)) * sample
    largest = min(MAX_CLIENT_SIZE, settings.clients) * _client_size(cell, info)
    inputs = largest * math.prod(shape) * INPUT_COPIES * (8 if kind == "text" else 4 * width)
    together = settings.cohort if cell.procedure.name == "fedtan" else 1  # a step of all clients
    samples = max(together * min(settings.batch, largest), evaluation_batch_size(shape) / 3)
    models_held = sum(MODELS_HELD.get(part.name, 0) for part in (cell.server, cell.selector))
    copies = CLIENT_COPIES * (settings.cohort + _probed(cell)) + models_held * settings.clients
    models = (copies + 4 * (networks - 1)) * rate.weights * 4 * width
    reserve = scaled_count(settings.reserve, settings.samples)
    selector = cell.selector.memory(reserve, info["classes"], settings.clients)
    activations = samples * rate.megabytes * length * width
    return START_MB + (data + inputs + selector) / 1e6 + activations + models


def _rate(cell: Cell, info: DatasetInfo) -> tuple[Rate, float, int]:
    """The rate of a cell's network, how much longer a sample is than that of the rate, and how many
    networks answer together: FedConcat's, one for each cluster of clients."""
    rate = RATES.get(cell.settings.model, UNKNOWN)
    return rate, math.prod(info["shape"][-2:]) / rate.size, getattr(cell.procedure, "clusters", 1)


def _probed(cell: Cell) -> int:
    """The number of clients that a selector probes in a round."""
    if not isinstance(cell.selector, Probing):
        return 0
    return cell.selector.pool_size(cell.settings.clients, cell.settings.cohort)


def _client_size(cell: Cell, info: DatasetInfo) -> float:
    """The number of samples that the mean client trains on."""
    settings = cell.settings
    used = (info["train"] - settings.validation) * settings.samples
    return float(used * (1 - settings.holdout) / settings.clients)


def resource_request(
    cell: Cell, info: DatasetInfo, attempt: int = 1, longest: int = MAX_RUNTIME
) -> tuple[int, int]:
    """The megabytes and minutes that a cell's job requests at this attempt, rounded up to one of a
    few levels, so that a cluster sees few kinds of jobs. A cell that takes longer than `longest`
    minutes goes on in further jobs."""
    times = min(attempt, MAX_TIMES)
    minutes = TIME_FACTOR * seconds(cell, info) / 60
    megabytes = MEMORY_FACTOR * memory_mb(cell, info) + SNAKEMAKE_MB
    return (
        _smallest_step(times * _smallest_step(megabytes, MEGABYTES), MEGABYTES),
        min(_smallest_step(times * _smallest_step(minutes, MINUTES), MINUTES), longest),
    )


def _smallest_step(amount: float, steps: tuple[int, ...]) -> int:
    """The smallest of the ascending steps that is enough, or the last."""
    return next((step for step in steps if step >= amount), steps[-1])
