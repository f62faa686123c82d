"""A cell is its settings: their types and neutral values, their digest, and the frozen file that a job reads.

Cells, shards and prepared data are all `Planned`: settings and science versions that make a digest, a path that holds it, and one file
`results/plan/{digest}.json` that the driver writes before any job starts. A job reads that file and nothing else of the config.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cohort.components import parameter
from cohort.errors import UserError
from cohort.files import write_text

PLAN_FOLDER = "results/plan"
RUN_OPTIONS = Path(PLAN_FOLDER, "run.json")
DIGEST = r"k[0-9a-f]{12}"
EVALUATED, EVALUATED_NUMBERS = 250, 250 * 3 * 32 * 32  # samples evaluated at once, at most, and of how many numbers all together


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can change a cell's numbers. A field with a default is left out of the identity while it has that value."""

    dataset: str = parameter(help="a data set of config/datasets.yaml")
    model: str = parameter(help="a model of workflow/cohort/models")
    partition: str = parameter(help="how samples are dealt to clients, e.g. iid, classes-2, dir-0.1")
    J: str = parameter(pattern="^J[1-9][0-9]*e?$", help="local work per round: J4 is four steps, J5e five epochs")
    strategy: str = parameter(help="a strategy of config/strategies.yaml")
    seed: int = parameter(minimum=0, help="names every random draw of the run")
    clients: int = parameter(minimum=1, help="how many clients there are")
    cohort: int = parameter(minimum=1, help="how many clients train in a round")
    rounds: int = parameter(minimum=1, help="how many rounds")
    batch: int = parameter(minimum=1, help="samples in a local batch")
    lr: float = parameter(exclusiveMinimum=0, help="learning rate of the clients' SGD")
    momentum: float = parameter(0.0, minimum=0, exclusiveMaximum=1, help="momentum of the clients' SGD, fresh each round")
    weight_decay: float = parameter(0.0, minimum=0, help="weight decay of the clients' SGD")
    optimizer: Literal["sgd", "adam"] = parameter("sgd", help="what takes the clients' steps, fresh each round")
    clip: float = parameter(0.0, minimum=0, help="norm to which the gradient of a step is shortened, 0 if it is not")
    schedule: str = parameter("constant", help="how a centralized run's learning rate changes, e.g. onecycle, step-30, plateau-patience3")
    lr_decay: float = parameter(1.0, exclusiveMinimum=0, maximum=1, help="the learning rate is multiplied by this after each round")
    procedure: str = parameter("federated", help="how a run goes, e.g. federated, centralized, concat-5")
    validation: int = parameter(0, minimum=0, help="training samples set aside before dealing, on which the global model is evaluated too")
    holdout: float = parameter(0.0, minimum=0, exclusiveMaximum=1, help="share of its samples that each client sets aside likewise")
    reserve: int = parameter(0, minimum=0, help="test images set aside for selectors that look at them, as many of each class")
    augmentation: str = parameter("none", help="how training images are changed at random, an entry of workflow/cohort/data/augmentations")
    evaluate_every: int | str = parameter(
        1,
        minimum=1,
        pattern=r"^(([1-9][0-9]* until [1-9][0-9]*, )+[1-9][0-9]*|([1-9][0-9]* until [1-9][0-9]*, )*[1-9][0-9]*, last [1-9][0-9]*)$",
        help="a number of rounds, '1 until 10, 10 until 400, 50', or '10, last 10'; the last round is always evaluated",
    )
    samples: float = parameter(1.0, exclusiveMinimum=0, maximum=1, help="share of the data set that is used, training and test alike")
    participation: str = parameter("full", help="who answers with how much work, e.g. dropout-0.3, bernoulli-0.3, stragglers-0.5")
    precision: Literal["float32", "tf32", "bfloat16", "float64"] = parameter(
        "float32", help="of weights and arithmetic; tf32 (on a GPU) and bfloat16 multiply less precisely and add in float32"
    )


SHARD_KEYS = ("dataset", "samples", "partition", "clients", "seed", "validation", "holdout")
"""The settings that shards depend on."""


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A named bundle: who is chosen, what they minimize, what becomes of their updates. Each part is `{name: ..., parameter: ...}`."""

    selector: dict[str, Any]
    objective: dict[str, Any]
    server: dict[str, Any]


@dataclass(frozen=True)
class Planned:
    """One thing that the pipeline makes: prepared data, shards or a record."""

    path: str
    digest: str
    settings: dict[str, Any]
    science: dict[str, int]
    inputs: dict[str, str]


def digest_of(settings: Mapping[str, Any], science: Mapping[str, int]) -> str:
    """`k` and 12 hex digits over the settings that differ from neutral and the science versions above 1."""
    bumped = {name: version for name, version in science.items() if version != 1}
    text = json.dumps({"settings": settings, "science": bumped}, sort_keys=True, separators=(",", ":"))
    return "k" + hashlib.sha256(text.encode()).hexdigest()[:12]


def plan_file(digest: str) -> Path:
    """Where the driver freezes a planned thing."""
    return Path(PLAN_FOLDER, f"{digest}.json")


def freeze(planned: Planned) -> None:
    """Write the plan file, unless it already says the same."""
    text = json.dumps(vars(planned), indent=1, sort_keys=True) + "\n"
    file = plan_file(planned.digest)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        write_text(file, text, sync=False)


def frozen(file: str | Path) -> Planned:
    """Read a plan file back."""
    try:
        return Planned(**json.loads(Path(file).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UserError(f"{file}: cannot be read as a plan file ({error}); start snakemake again, which writes it anew") from None


def options_of(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """How the stages are to work, by stage: what cannot change any number."""
    train = {key: config[key] for key in ("device", "trainer", "jobs_per_gpu", "checkpoint_seconds") if key in config}
    return {"train": train, "download": {"mirror": config.get("data_mirror", ""), "paths": config.get("data_paths", {})}}


def run_options(stage: str) -> dict[str, Any]:
    """How the driver wants a stage to work."""
    options: dict[str, dict[str, Any]] = json.loads(RUN_OPTIONS.read_text(encoding="utf-8")) if RUN_OPTIONS.exists() else {}
    return options.get(stage, {})


def evaluated_at_once(shape: Sequence[int]) -> int:
    """How many samples of a shape are evaluated at once: as fast as more of them, in less memory."""
    return max(1, min(EVALUATED, EVALUATED_NUMBERS // math.prod(shape)))


def is_evaluated(every: int | str, round: int) -> bool:
    """`50` is every 50th round; `1 until 10, 10 until 400, 50` is every round until 10, every 10th until 400, every 50th from then on."""
    for part in str(every).split(", "):
        step, _, end = part.partition(" until ")
        if not end or round <= int(end):
            return round % int(step) == 0
    raise AssertionError(f"the last part of '{every}' has no end")


def spelled_out(every: int | str, rounds: int) -> int | str:
    """`10, last 10` of 500 rounds is `10 until 490, 1`: every tenth round, and each of the last ten, however many there are."""
    before, _, last = str(every).partition(", last ")
    if not last:
        return every
    turn, parts, ruled = rounds - int(last), [], 0
    for part in before.split(", "):
        step, _, end = part.partition(" until ")
        until = min(int(end or turn), turn)
        if until > ruled:
            parts.append(f"{step} until {until}")
            ruled = until
    return ", ".join([*parts, "1"]) if parts else 1


def local_work(J: str) -> tuple[int, bool]:
    """`J4` is (4, False), four steps; `J5e` is (5, True), five epochs."""
    match = re.fullmatch(r"J(\d+)(e?)", J)
    assert match is not None, J
    return int(match[1]), bool(match[2])
