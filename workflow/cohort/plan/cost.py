"""What a cell will cost, before it runs: its time and its memory.

The constants are rough. Those of time are from a few cells of the demo and of AML's LeNet on one core of an AMD EPYC; `cohort cost` prints
how far finished cells were from the estimate. Those of memory are such that 250 cells on a CPU (five data sets, five networks of 5,000 to
1,800,000 weights) took between 55 and 93 % of the estimate.
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
from cohort.selection import SELECTORS
from cohort.selection.abilities import Probing
from cohort.training.procedures import parse_procedure
from cohort.training.procedures.procedure import Load
from cohort.training.servers import SERVERS

START_SECONDS = 2.0  # of a cell before its first round: imports and loading
STEP_SECONDS = 3e-4  # one local step of a network of no size
OPERATIONS_PER_SECOND = 1e11

START_MB = 500  # the interpreter with torch
COPIES = 8  # of the network for each client that is trained or probed: models, their stack, what a server rule makes of them
HELD = 4  # copies of each further network of a global model of several: at work, in the state before and after a round, at the beginning
LARGEST = 10  # how much more than the mean client the largest one holds, of which everything lies unpacked while it trains
UNPACKED = 3  # times the inputs of a client, at most, while they are standardized


def client_steps(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> int:
    """Local steps of all clients in all rounds, probes included, taking every client to be of mean size."""
    amount, epochs = local_work(settings["J"])
    per_epoch = math.ceil(_client_size(settings, facts) / settings["batch"])
    per_client = amount * per_epoch if epochs else amount
    probed, batches = _probes(settings)
    if probed:  # where J counts epochs a probe is the first of them
        per_client -= per_epoch if epochs else batches
    return int(_load(settings).rounds * (settings["cohort"] * per_client + probed * batches))


@functools.cache
def evaluations(every: int | str, rounds: int) -> int:
    """How many rounds are evaluated."""
    return sum(is_evaluated(every, round) for round in range(1, rounds)) + 1


def round_seconds(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> float:
    """Estimated time of all rounds of a cell on one core: local steps and evaluations. A training step costs three forward passes."""
    multiply_adds = MODELS[settings["model"]]().multiply_adds(
        tuple(facts["shape"]), facts["classes"]
    )
    forward = (
        2
        * multiply_adds
        * min(settings["batch"], _client_size(settings, facts))
        / OPERATIONS_PER_SECOND
    )
    load = _load(settings)
    passes = load.passes * settings["cohort"] * (STEP_SECONDS / 3 + forward)
    tests = (
        evaluations(settings["evaluate_every"], settings["rounds"])
        * (facts["test"] + settings["validation"])
        * settings["samples"]
    )
    test = 2 * multiply_adds / OPERATIONS_PER_SECOND * load.networks
    return client_steps(settings, facts) * (STEP_SECONDS + 3 * forward) + passes + tests * test


def memory_mb(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> float:
    """Estimated peak memory of a cell's process on a CPU: the data set, the largest client, its batch, the models of a round."""
    model, shape, kind = (
        MODELS[settings["model"]](),
        tuple(facts["shape"]),
        facts.get("kind", "images"),
    )
    number = 8 if settings["precision"] == "float64" else 4
    size = _client_size(settings, facts)
    stored = (facts["train"] + facts["test"]) * (
        math.prod(shape) * (2 if kind == "table" else 1) + 16
    )  # a label and an index
    largest = min(LARGEST, settings["clients"]) * size
    inputs = largest * math.prod(shape) * UNPACKED * (8 if kind == "text" else number)
    outputs = (
        model.outputs(shape)
        * max(model.kept * min(settings["batch"], largest), evaluated_at_once(shape))
        * number
    )
    held = HELD * (_load(settings).networks - 1) + build(SERVERS, settings["server"]).models_held(
        settings["clients"]
    )
    models = (
        (COPIES * (settings["cohort"] + _probes(settings)[0]) + held)
        * model.weights(shape, facts["classes"])
        * number
    )
    return START_MB + (stored + inputs + outputs + models) / 1e6


def _client_size(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> float:
    """How many samples a client holds in the mean."""
    return float(
        (facts["train"] - settings["validation"]) * settings["samples"] / settings["clients"]
    )


def _load(settings: Mapping[str, Any]) -> Load:
    """How much work the rounds are."""
    return parse_procedure(settings["procedure"]).load(settings["rounds"])


def _probes(settings: Mapping[str, Any]) -> tuple[int, int]:
    """How many clients are probed in a round, with how many batches each."""
    selector = build(SELECTORS, settings["selector"])
    if not isinstance(selector, Probing):
        return 0, 0
    return selector.pool_size(settings["clients"], settings["cohort"]), selector.batches
