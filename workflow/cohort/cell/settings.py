"""The settings of a cell: everything that can change its results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from cohort.core.components import parameter

COUNT = "[1-9][0-9]*"
UNTIL = f"{COUNT} until {COUNT}"
ROUNDS_PATTERN = rf"^(({UNTIL}, )+{COUNT}|({UNTIL}, )*{COUNT}, last {COUNT})$"
NAMED_PLAN = rf"[a-z][a-z0-9_]* ({ROUNDS_PATTERN[1:-1]}|{COUNT})"
EVALUATION_PLANS = (
    *("evaluate_every", "evaluate_holdout", "evaluate_next", "evaluate_local", "evaluate_own"),
    "evaluators",
)
"""The settings that say in which rounds something is evaluated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All settings of a cell. A setting at its default is left out of the digest, so that new
    settings do not change old digests."""

    dataset: str = parameter(help="a data set of config/datasets.yaml")
    model: str = parameter(help="a model of workflow/cohort/models")
    partition: str = parameter(
        help="how samples are dealt to clients, e.g. iid, classes-2, dir-0.1"
    )
    J: str = parameter(
        pattern="^J[1-9][0-9]*e?$", help="local work per round: J4 is four steps, J5e five epochs"
    )
    strategy: str = parameter(help="a strategy of config/strategies.yaml")
    seed: int = parameter(minimum=0, help="seed of every random draw of the run")
    clients: int = parameter(minimum=1, help="number of clients")
    cohort: int = parameter(minimum=1, help="number of clients that train in a round")
    rounds: int = parameter(minimum=1, maximum=1_000_000, help="number of rounds")
    batch: int = parameter(
        minimum=1, help="samples in a local batch; a client that has fewer takes all it has"
    )
    lr: float = parameter(
        exclusiveMinimum=0, maximum=1000, help="learning rate of the clients' SGD"
    )
    momentum: float = parameter(
        0.0, minimum=0, exclusiveMaximum=1, help="momentum of the clients' SGD, fresh each round"
    )
    weight_decay: float = parameter(0.0, minimum=0, help="weight decay of the clients' SGD")
    optimizer: Literal["sgd", "adam"] = parameter(
        "sgd", help="the clients' optimizer, fresh each round"
    )
    clip: float = parameter(
        0.0, minimum=0, help="largest norm of a step's gradient, 0 for no clipping"
    )
    schedule: str = parameter(
        "constant",
        help="a centralized run's learning-rate schedule, e.g. onecycle, step-30, "
        "plateau-patience3",
    )
    lr_decay: float = parameter(
        1.0,
        exclusiveMinimum=0,
        maximum=1,
        help="factor applied to the learning rate after each round",
    )
    procedure: str = parameter(
        "federated", help="how a run goes, e.g. federated, centralized, concat-5"
    )
    validation: int = parameter(
        0,
        minimum=0,
        help="training samples set aside before dealing, to evaluate the global model on; at 0 it "
        "is evaluated on the validation samples that the data set comes with, if any",
    )
    holdout: float = parameter(
        0.0,
        minimum=0,
        maximum=0.9,
        help="share of its samples that each client sets aside for the same purpose",
    )
    reserve: int = parameter(
        0,
        minimum=0,
        help="test samples reserved for selectors that need some, each class in proportion to its "
        "share of the test set",
    )
    augmentation: str = parameter(
        "none",
        help="random changes of training images, one of workflow/cohort/data/augmentations",
    )
    evaluate_every: int | str = parameter(
        1,
        minimum=1,
        pattern=ROUNDS_PATTERN,
        help="a number of rounds, '1 until 10, 10 until 400, 50', or '10, last 10'; the last round "
        "is always evaluated",
    )
    evaluate_holdout: int | str = parameter(
        0,
        minimum=0,
        pattern=ROUNDS_PATTERN,
        help="rounds in which the global model is evaluated on clients' held-out samples; 0: never",
    )
    evaluate_next: int | str = parameter(
        0,
        minimum=0,
        pattern=ROUNDS_PATTERN,
        help="rounds after which the global model is evaluated on the held-out samples of a cohort "
        "that the selector draws for that; 0: never",
    )
    evaluate_local: int | str = parameter(
        0,
        minimum=0,
        pattern=ROUNDS_PATTERN,
        help="rounds in which the cohort's local models are evaluated on the test set; 0: never",
    )
    evaluate_own: int | str = parameter(
        0,
        minimum=0,
        pattern=ROUNDS_PATTERN,
        help="rounds in which the cohort's local models are evaluated on their own clients' "
        "training samples; 0: never",
    )
    evaluators: str = parameter(
        "",
        pattern=rf"^({NAMED_PLAN}(; {NAMED_PLAN})*)?$",
        help="further evaluators with their rounds, e.g. 'drift 10; sharpness 50, last 10'",
    )
    samples: float = parameter(
        1.0,
        exclusiveMinimum=0,
        maximum=1,
        help="share of the training and test samples that is used",
    )
    participation: str = parameter(
        "full",
        help="which clients answer with how much work, e.g. dropout-0.3, bernoulli-0.3, "
        "stragglers-0.5",
    )
    client_devices: str = parameter(
        "untimed",
        help="how fast clients compute and send, for a simulation of time, e.g. lognormal-1, "
        "trace-phones",
    )
    precision: Literal["float32", "tf32", "bfloat16", "float64"] = parameter(
        "float32",
        help="of weights and arithmetic; tf32 (GPU only) and bfloat16 multiply with less precision "
        "and add in float32",
    )

    def values(self) -> dict[str, Any]:
        """Every setting, by name."""
        return {name: getattr(self, name) for name in DEFAULTS}


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Settings)}
"""Every setting with its default, `dataclasses.MISSING` where it has none."""

SHARD_KEYS = ("dataset", "samples", "partition", "clients", "seed", "validation", "holdout")
"""The settings that shards depend on."""

ADDED_SHARD_KEYS = ("validation", "holdout")
"""Those that are younger than the first digests, which their defaults must not change."""


def cell_identity(
    settings: Mapping[str, Any], strategy_parts: Mapping[str, Any], data: str
) -> dict[str, Any]:
    """The identity of a cell, from which its digest is made: its settings and its strategy's parts,
    both without defaults, and the digest of its data."""
    own = {key: value for key, value in settings.items() if value != DEFAULTS.get(key)}
    return own | dict(strategy_parts) | {"data": data}


def shard_identity(settings: Mapping[str, Any], data: str) -> dict[str, Any]:
    """The identity of shards, from which their digest is made: their settings and the digest of
    their data."""
    own = {
        key: value
        for key, value in settings.items()
        if key not in ADDED_SHARD_KEYS or value != DEFAULTS[key]
    }
    return own | {"data": data}


def local_work(J: str) -> tuple[int, bool]:
    """Parse a setting J into the amount of local work and whether it counts epochs: `J4`, four
    steps, is (4, False); `J5e`, five epochs, is (5, True)."""
    match = re.fullmatch(r"J(\d+)(e?)", J)
    assert match is not None, J
    return int(match[1]), bool(match[2])
