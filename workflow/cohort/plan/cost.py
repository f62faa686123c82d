"""Estimates of a cell's time and memory before it runs.

The constants are rough. Those of time come from a few cells of the demo and of AML's LeNet on one
core of an AMD EPYC; `cohort cost` prints how far finished cells were from their estimates. With
those of memory, 250 cells on a CPU (five data sets, five networks of 5,000 to 1,800,000 weights)
took between 55 and 93 % of their estimates.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

from cohort.cell.evaluations import evaluated_at_once, is_evaluated
from cohort.cell.settings import local_work
from cohort.core.components import build
from cohort.models import MODELS
from cohort.models.counting import Counts
from cohort.selection import SELECTORS
from cohort.selection.abilities import Probing
from cohort.training.procedures import parse_procedure
from cohort.training.procedures.procedure import Load
from cohort.training.servers import SERVERS

START_SECONDS = 2.0  # imports and loading, before the first round
STEP_SECONDS = 3e-4  # overhead of one local step, whatever the network
OPERATIONS_PER_SECOND = 1e11

START_MB = 500  # the interpreter with torch
CLIENT_COPIES = 8  # of the network per client in training or probing: models, stack, server rule
NETWORK_COPIES = 4  # of each further network of a model of several: current, before, after, initial
LARGEST_CLIENT = 10  # its size in multiples of the mean client's, all in memory while it trains
INPUT_COPIES = 3  # of a client's inputs, at most, while they are standardized


def client_steps(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> int:
    """Count the local steps of all rounds, probes included, if every client has the mean size."""
    amount, epochs = local_work(settings["J"])
    per_epoch = math.ceil(_client_size(settings, facts) / settings["batch"])
    per_client = amount * per_epoch if epochs else amount
    probed, batches = _probes(settings)
    if probed:  # the probe is the first of J epochs, or the first batches of J steps
        per_client -= per_epoch if epochs else batches
    return int(_load(settings).rounds * (settings["cohort"] * per_client + probed * batches))


@functools.cache
def evaluations(every: int | str, rounds: int) -> int:
    """Count the rounds that are evaluated."""
    return sum(is_evaluated(every, round) for round in range(1, rounds)) + 1


def round_seconds(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> float:
    """Estimate the time of all rounds on one core: local steps and evaluations. A training step
    costs three forward passes."""
    load = _load(settings)
    sample = 2 * _counts(settings, facts).multiply_adds / OPERATIONS_PER_SECOND
    forward = sample * min(settings["batch"], _client_size(settings, facts))
    steps = client_steps(settings, facts) * (STEP_SECONDS + 3 * forward)
    passes = load.passes * settings["cohort"] * (STEP_SECONDS / 3 + forward)
    rounds = evaluations(settings["evaluate_every"], settings["rounds"])
    validation = settings["validation"] or facts.get("validation", 0)
    tested = rounds * (facts["test"] + validation) * settings["samples"]
    return steps + passes + tested * sample * load.networks


def memory_mb(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> float:
    """Estimate the peak memory of a cell's process on a CPU: the data set, the largest client's
    inputs, the activations of a batch, and the models of a round."""
    shape, kind = tuple(facts["shape"]), facts.get("kind", "images")
    number = 8 if settings["precision"] == "float64" else 4
    label_and_index = 16
    sample = math.prod(shape) * (2 if kind == "table" else 1) + label_and_index
    data = (facts["train"] + facts["test"] + facts.get("validation", 0)) * sample
    largest = min(LARGEST_CLIENT, settings["clients"]) * _client_size(settings, facts)
    inputs = largest * math.prod(shape) * INPUT_COPIES * (8 if kind == "text" else number)
    counts = _counts(settings, facts)
    factor = MODELS[settings["model"]].activation_factor
    trained = factor * min(settings["batch"], largest)
    activations = counts.outputs * max(trained, evaluated_at_once(shape)) * number
    models = _model_copies(settings) * counts.weights * number
    return START_MB + (data + inputs + activations + models) / 1e6


def _model_copies(settings: Mapping[str, Any]) -> int:
    """How many copies of the network are in memory during a round."""
    clients = settings["cohort"] + _probes(settings)[0]
    further = NETWORK_COPIES * (_load(settings).networks - 1)
    held = build(SERVERS, settings["server"]).models_held(settings["clients"])
    return CLIENT_COPIES * clients + further + held


def _counts(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> Counts:
    return MODELS[settings["model"]]().counts(tuple(facts["shape"]), facts["classes"])


def _client_size(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> float:
    """How many samples the mean client holds."""
    used = (facts["train"] - settings["validation"]) * settings["samples"]
    return float(used / settings["clients"])


def _load(settings: Mapping[str, Any]) -> Load:
    return parse_procedure(settings["procedure"]).load(settings["rounds"])


def _probes(settings: Mapping[str, Any]) -> tuple[int, int]:
    """How many clients are probed in a round, and the batches that each of them trains on."""
    selector = build(SELECTORS, settings["selector"])
    if not isinstance(selector, Probing):
        return 0, 0
    return selector.pool_size(settings["clients"], settings["cohort"]), selector.batches
