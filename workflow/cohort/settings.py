"""What a cell is: its settings, the rounds that it evaluates, and the plan file of each output.

Planning writes these files (`plan/resolution.py`); `training/cell.py` reads a cell from its own."""

import contextlib
import functools
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.core.files import write_text
from cohort.core.paths import RUN_OPTIONS, plan_file
from cohort.core.sealed_json import RECREATE, read_sealed, to_sealed_json

COUNT = "[1-9][0-9]*"
UNTIL = f"{COUNT} until {COUNT}"
ROUNDS_PATTERN = rf"^(({UNTIL}, )+{COUNT}|({UNTIL}, )*{COUNT}, last {COUNT})$"
NAMED_PLAN = rf"[a-z][a-z0-9_]* ({ROUNDS_PATTERN[1:-1]}|{COUNT})"
EVALUATION_PLANS = (
    *("evaluate_every", "evaluate_holdout", "evaluate_next", "evaluate_local", "evaluate_own"),
    "evaluators",
)
"""The settings that say in which rounds something is evaluated."""


def _rounds(help: str) -> Any:
    return parameter(0, minimum=0, pattern=ROUNDS_PATTERN, help=f"rounds in which {help}; 0: never")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All settings of a cell. A setting at its default is left out of the digest, so that new
    settings do not change old digests."""

    dataset: str = parameter(help="a data set of config/datasets.yaml")
    model: str = parameter(help="a model of workflow/cohort/models.py")
    partition: str = parameter(help="how samples are dealt out, e.g. iid, classes-2, dir-0.1")
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
    lr: float = parameter(exclusiveMinimum=0, maximum=1000, help="learning rate of clients' SGD")
    momentum: float = parameter(
        0.0, minimum=0, exclusiveMaximum=1, help="momentum of the clients' SGD, fresh each round"
    )
    weight_decay: float = parameter(0.0, minimum=0, help="weight decay of the clients' SGD")
    optimizer: Literal["sgd", "adam"] = parameter("sgd", help="clients' optimizer, new each round")
    clip: float = parameter(0.0, minimum=0, help="largest norm of a step's gradient, 0: no limit")
    schedule: str = parameter(
        "constant", help="learning rate of centralized runs, e.g. onecycle, plateau-patience3"
    )
    lr_decay: float = parameter(
        1.0, exclusiveMinimum=0, maximum=1, help="factor of the learning rate after each round"
    )
    procedure: str = parameter("federated", help="how a run goes, e.g. centralized, concat-5")
    validation: int = parameter(
        0,
        minimum=0,
        help="training samples set aside before dealing, to evaluate the global model on; at 0 it "
        "is evaluated on the validation samples that the data set comes with, if any",
    )
    holdout: float = parameter(
        0.0, minimum=0, maximum=0.9, help="share that each client sets aside for the same purpose"
    )
    reserve: int = parameter(
        0, minimum=0, help="test samples reserved for selectors, each class in proportion"
    )
    augmentation: str = parameter(
        "none", help="random changes of training images, of workflow/cohort/data/augmentations.py"
    )
    evaluate_every: int | str = parameter(
        1,
        minimum=1,
        pattern=ROUNDS_PATTERN,
        help="a number of rounds, '1 until 10, 10 until 400, 50', or '10, last 10'; the last round "
        "is always evaluated",
    )
    evaluate_holdout: int | str = _rounds("the global model is evaluated on held-out samples")
    evaluate_next: int | str = _rounds(
        "the global model is evaluated on held-out samples of a cohort that the selector draws anew"
    )
    evaluate_local: int | str = _rounds("the cohort's local models are evaluated on the test set")
    evaluate_own: int | str = _rounds("the cohort's local models are evaluated on own samples")
    evaluators: str = parameter(
        "",
        pattern=rf"^({NAMED_PLAN}(; {NAMED_PLAN})*)?$",
        help="further evaluators with their rounds, e.g. 'drift 10; sharpness 50, last 10'",
    )
    samples: float = parameter(
        1.0, exclusiveMinimum=0, maximum=1, help="share of the training and test samples to use"
    )
    participation: str = parameter(
        "full", help="which clients answer with how much work, e.g. dropout-0.3, stragglers-0.5"
    )
    availability: str = parameter(
        "always", help="which clients can be chosen in a round, e.g. markov-4-4, diurnal-0.5"
    )
    client_devices: str = parameter(
        "untimed", help="how fast clients compute and send, to simulate time, e.g. lognormal-1"
    )
    order: Literal["shuffled", "dealt"] = parameter(
        "shuffled",
        help="order of a client's samples in an epoch; dealt: class by class in `classes-K`",
    )
    precision: Literal["float32", "tf32", "bfloat16", "float64"] = parameter(
        "float32",
        help="type of weights and arithmetic; tf32 (GPU only) and bfloat16 multiply with less "
        "precision and add in float32",
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


def shard_identity(settings: Mapping[str, Any], data: str) -> dict[str, Any]:
    """The identity of shards, from which their digest is made: settings and their data's digest."""
    left_out = {key for key in ADDED_SHARD_KEYS if settings.get(key) == DEFAULTS[key]}
    return {key: settings[key] for key in settings if key not in left_out} | {"data": data}


def local_work(J: str) -> tuple[int, bool]:
    """Parse a setting J into the amount of local work and whether it counts epochs: `J4`, four
    steps, is (4, False); `J5e`, five epochs, is (5, True)."""
    match = re.fullmatch(r"J(\d+)(e?)", J)
    assert match is not None, J
    return int(match[1]), bool(match[2])


def evaluation_batch_size(shape: Sequence[int]) -> int:
    """How many samples of this shape to evaluate at once: 250 of CIFAR's, fewer of larger ones.
    More need memory and are no faster."""
    return max(1, min(250, 250 * 3 * 32 * 32 // math.prod(shape)))


def is_evaluated(every: int | str, round: int) -> bool:
    """Whether a plan of evaluations has a round. `50` means every 50th round; `1 until 10, 10 until
    400, 50` means every round up to 10, every 10th up to 400, and every 50th after that."""
    for part in str(every).split(", "):
        step, _, end = part.partition(" until ")
        if not end or round <= int(end):
            return round % int(step) == 0
    raise AssertionError(f"the last part of '{every}' has no end")


@functools.cache
def evaluated_rounds(every: int | str, rounds: int) -> tuple[int, ...]:
    """The rounds that a plan evaluates, always with the last of so many; none if it is 0."""
    if not every:
        return ()
    return (*(round for round in range(1, rounds) if is_evaluated(every, round)), rounds)


def plans_by_name(evaluators: str) -> dict[str, str]:
    """Split `drift 10; sharpness 50, last 10` into the evaluators' plans, by name."""
    parts = [part.partition(" ") for part in evaluators.split("; ") if part]
    plans = {name: plan for name, _, plan in parts}
    if len(plans) < len(parts):
        raise UserError(f"evaluators is '{evaluators}': each can have one plan only")
    return plans


def resolve_last(every: int | str, rounds: int) -> int | str:
    """Replace `last N` in a plan of evaluations by the round where it begins: `10, last 10` becomes
    `10 until 490, 1` for 500 rounds, every tenth round and each of the last ten. Plans of several
    evaluators keep the evaluators' names."""
    if str(every)[:1].isalpha():
        plans = plans_by_name(str(every)).items()
        return "; ".join(f"{name} {resolve_last(plan, rounds)}" for name, plan in plans)
    before, _, last = str(every).partition(", last ")
    if not last:
        return every
    begin, parts, covered = rounds - int(last), [], 0
    for part in before.split(", "):
        step, _, end = part.partition(" until ")
        until = min(int(end or begin), begin)
        if until > covered:
            parts.append(f"{step} until {until}")
            covered = until
    return ", ".join([*parts, "1"]) if parts else 1


DIGEST = r"k[0-9a-f]{12}"


@dataclass(frozen=True)
class PlannedFile:
    """The plan of one file that the pipeline makes: prepared data, shards or a record."""

    path: str
    digest: str
    settings: dict[str, Any]
    science: dict[str, int]
    inputs: dict[str, str]


def digest_of(settings: Mapping[str, Any], science: Mapping[str, int]) -> str:
    """The digest of a planned file: `k` and 12 hex digits of a hash of the settings that differ
    from their defaults and of the science versions above 1."""
    bumped = {name: version for name, version in science.items() if version != 1}
    content = {"settings": settings, "science": bumped}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return "k" + hashlib.sha256(text.encode()).hexdigest()[:12]


def write_plan(planned: PlannedFile) -> None:
    """Write the plan file of a planned file, unless it already has the same content."""
    text = to_sealed_json(vars(planned), indent=1)
    file = plan_file(planned.digest)
    if not file.exists() or file.read_bytes() != text.encode():
        write_text(file, text, sync=False)


def read_plan(file: str | Path) -> PlannedFile:
    """Read a plan file; UserError if it is damaged or another file's plan."""
    content = read_sealed(file, "a plan file")
    try:
        planned = PlannedFile(**content)
    except TypeError as error:
        raise UserError(f"{file} cannot be read as a plan file ({error}); {RECREATE}") from None
    if planned.digest != Path(file).stem:
        raise UserError(f"{file} is the plan of {planned.digest}; {RECREATE}")
    return planned


def check_digest(
    planned: PlannedFile, identity: Callable[[PlannedFile], Mapping[str, Any]]
) -> None:
    """Raise UserError unless the planned file's digest is that of its identity, which `identity`
    derives from its settings, and of its science versions."""
    is_right = False
    with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):  # of another kind
        is_right = planned.digest == digest_of(identity(planned), planned.science)
    if not is_right:
        why = f"its settings are not those of {planned.digest}"
        raise UserError(f"{plan_file(planned.digest)}: {why}; {RECREATE}")


def options_of(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of each stage, by stage: everything in the config that cannot change a result."""
    keys = ("device", "trainer", "jobs_per_gpu", "checkpoint_seconds")
    return {
        "train": {key: config[key] for key in keys if key in config},
        "download": {"mirror": config.get("data_mirror", "")},
        "request": {key: config[key] for key in ("max_runtime",) if key in config},
    }


def run_options(stage: str) -> dict[str, Any]:
    """Read the options that the driver wrote for a stage; empty if it wrote no file."""
    if not RUN_OPTIONS.exists():
        return {}
    options: dict[str, dict[str, Any]] = read_sealed(RUN_OPTIONS, "the options of jobs")
    return options.get(stage, {})
