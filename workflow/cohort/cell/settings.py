"""The settings of a cell: everything that can change its numbers, with types and neutral values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from cohort.core.components import parameter

ROUNDS_PATTERN = (
    r"^(([1-9][0-9]* until [1-9][0-9]*, )+[1-9][0-9]*"
    r"|([1-9][0-9]* until [1-9][0-9]*, )*[1-9][0-9]*, last [1-9][0-9]*)$"
)
EVALUATION_PLANS = ("evaluate_every", "evaluate_holdout", "evaluate_local")
"""The settings that say in which rounds something is evaluated."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can change a cell's numbers. A field with a default is left out of the identity while it has that value."""

    dataset: str = parameter(help="a data set of config/datasets.yaml")
    model: str = parameter(help="a model of workflow/cohort/models")
    partition: str = parameter(
        help="how samples are dealt to clients, e.g. iid, classes-2, dir-0.1"
    )
    J: str = parameter(
        pattern="^J[1-9][0-9]*e?$", help="local work per round: J4 is four steps, J5e five epochs"
    )
    strategy: str = parameter(help="a strategy of config/strategies.yaml")
    seed: int = parameter(minimum=0, help="names every random draw of the run")
    clients: int = parameter(minimum=1, help="how many clients there are")
    cohort: int = parameter(minimum=1, help="how many clients train in a round")
    rounds: int = parameter(minimum=1, help="how many rounds")
    batch: int = parameter(minimum=1, help="samples in a local batch")
    lr: float = parameter(exclusiveMinimum=0, help="learning rate of the clients' SGD")
    momentum: float = parameter(
        0.0, minimum=0, exclusiveMaximum=1, help="momentum of the clients' SGD, fresh each round"
    )
    weight_decay: float = parameter(0.0, minimum=0, help="weight decay of the clients' SGD")
    optimizer: Literal["sgd", "adam"] = parameter(
        "sgd", help="what takes the clients' steps, fresh each round"
    )
    clip: float = parameter(
        0.0, minimum=0, help="norm to which the gradient of a step is shortened, 0 if it is not"
    )
    schedule: str = parameter(
        "constant",
        help="how a centralized run's learning rate changes, e.g. onecycle, step-30, plateau-patience3",
    )
    lr_decay: float = parameter(
        1.0,
        exclusiveMinimum=0,
        maximum=1,
        help="the learning rate is multiplied by this after each round",
    )
    procedure: str = parameter(
        "federated", help="how a run goes, e.g. federated, centralized, concat-5"
    )
    validation: int = parameter(
        0,
        minimum=0,
        help="training samples set aside before dealing, on which the global model is evaluated too",
    )
    holdout: float = parameter(
        0.0,
        minimum=0,
        exclusiveMaximum=1,
        help="share of its samples that each client sets aside likewise",
    )
    reserve: int = parameter(
        0,
        minimum=0,
        help="test images set aside for selectors that look at them, as many of each class",
    )
    augmentation: str = parameter(
        "none",
        help="how training images are changed at random, an entry of workflow/cohort/data/augmentations",
    )
    evaluate_every: int | str = parameter(
        1,
        minimum=1,
        pattern=ROUNDS_PATTERN,
        help="a number of rounds, '1 until 10, 10 until 400, 50', or '10, last 10'; the last round is always evaluated",
    )
    evaluate_holdout: int | str = parameter(
        0,
        minimum=0,
        pattern=ROUNDS_PATTERN,
        help="rounds in which the global model is evaluated on clients' held-out samples; 0: never",
    )
    evaluate_local: int | str = parameter(
        0,
        minimum=0,
        pattern=ROUNDS_PATTERN,
        help="rounds in which the cohort's local models are evaluated on the test set; 0: never",
    )
    samples: float = parameter(
        1.0,
        exclusiveMinimum=0,
        maximum=1,
        help="share of the data set that is used, training and test alike",
    )
    participation: str = parameter(
        "full",
        help="who answers with how much work, e.g. dropout-0.3, bernoulli-0.3, stragglers-0.5",
    )
    precision: Literal["float32", "tf32", "bfloat16", "float64"] = parameter(
        "float32",
        help="of weights and arithmetic; tf32 (on a GPU) and bfloat16 multiply less precisely and add in float32",
    )


SHARD_KEYS = ("dataset", "samples", "partition", "clients", "seed", "validation", "holdout")
"""The settings that shards depend on."""


def local_work(J: str) -> tuple[int, bool]:
    """`J4` is (4, False), four steps; `J5e` is (5, True), five epochs."""
    match = re.fullmatch(r"J(\d+)(e?)", J)
    assert match is not None, J
    return int(match[1]), bool(match[2])
