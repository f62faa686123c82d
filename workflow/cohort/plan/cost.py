"""What a cell will cost, before it runs.

The three constants are rough, from a few cells of the demo and of AML's LeNet on one core of an AMD EPYC; `cohort cost` prints how far
finished cells were from the estimate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

from cohort.cell import is_evaluated, local_work
from cohort.components import build
from cohort.models import MODELS
from cohort.selection import SELECTORS

START_SECONDS = 2.0  # of a cell before its first round: imports and loading
STEP_SECONDS = 3e-4  # one local step of a network of no size
OPERATIONS_PER_SECOND = 1e11


def client_steps(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> int:
    """Local steps of all clients in all rounds, probes included, taking every client to be of mean size."""
    amount, epochs = local_work(settings["J"])
    size = (facts["train"] - settings["validation"]) * settings["samples"] / settings["clients"]
    per_epoch = math.ceil(size / settings["batch"])
    per_client = amount * per_epoch if epochs else amount
    selector = build(SELECTORS, settings["selector"])
    probed = selector.pool_size(settings["clients"], settings["cohort"]) * selector.probing()
    if probed:  # where J counts epochs a probe is the first of them
        per_client -= per_epoch if epochs else selector.probing()
    return int(settings["rounds"] * (settings["cohort"] * per_client + probed))


@functools.cache
def evaluations(every: int | str, rounds: int) -> int:
    """How many rounds are evaluated."""
    return sum(is_evaluated(every, round) for round in range(1, rounds)) + 1


def round_seconds(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> float:
    """Estimated time of all rounds of a cell on one core: local steps and evaluations. A training step costs three forward passes."""
    multiply_adds = MODELS[settings["model"]]().multiply_adds(tuple(facts["shape"]), facts["classes"])
    size = (facts["train"] - settings["validation"]) * settings["samples"] / settings["clients"]
    step = STEP_SECONDS + 6 * multiply_adds * min(settings["batch"], size) / OPERATIONS_PER_SECOND
    tests = evaluations(settings["evaluate_every"], settings["rounds"]) * (facts["test"] + settings["validation"]) * settings["samples"]
    test = 2 * multiply_adds / OPERATIONS_PER_SECOND
    return client_steps(settings, facts) * step + tests * test
