"""Reject settings that cannot be trained together, before any job starts.

Each check takes a cell's settings (with its strategy's parts) and the info of its data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cohort.cell.evaluations import plans_by_name
from cohort.core.components import build
from cohort.core.errors import UserError, suggest
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.dataset_info import DEFAULTS, DatasetInfo
from cohort.data.sampling import scaled_count
from cohort.models import MODELS
from cohort.needs import needs_of
from cohort.partition import parse_name
from cohort.partition.scheme import Scheme
from cohort.plan.located import refused
from cohort.selection import SELECTORS
from cohort.training.evaluators import EVALUATORS
from cohort.training.participation import parse_participation
from cohort.training.procedures import parse_procedure

MOST_MEMORY = 16e9  # bytes that a selector may take beside training

Settings = Mapping[str, Any]


def check_partition(settings: Settings, info: DatasetInfo) -> Scheme:
    """The partition's scheme. Refuse one that cannot deal this data set to so many clients."""
    dataset, samples, validation = (settings[key] for key in ("dataset", "samples", "validation"))
    left = scaled_count(info["train"], samples) - scaled_count(validation, samples)
    if left < 1:
        raise UserError(
            f"validation is {validation}, but {dataset} has only {info['train']} "
            "training samples to share"
        )
    with refused(f"partition '{settings['partition']}' of {dataset} is impossible: "):
        scheme = parse_name(settings["partition"])
        scheme.scaled(samples).check(info["classes"], settings["clients"], left, info.get("groups"))
    return scheme


def check_shape(settings: Settings, info: DatasetInfo) -> None:
    """Reject a model or augmentation that does not take samples of this kind and shape."""
    kind = info.get("kind", DEFAULTS["kind"])
    model, augmentation = MODELS[settings["model"]](), AUGMENTATIONS[settings["augmentation"]]()
    for part, component in (("model", model), ("augmentation", augmentation)):
        with refused(f"{part} '{component.name}' cannot take {settings['dataset']}: "):
            if kind not in component.kinds:
                raise ValueError(f"takes {' or '.join(component.kinds)}, not {kind}")
            component.check(tuple(info["shape"]))


def check_cohort(settings: Settings, info: DatasetInfo) -> None:
    """Reject too large a cohort or reserve, or a selector that cannot select this cohort."""
    strategy, clients, cohort, reserve, samples = (
        settings[key] for key in ("strategy", "clients", "cohort", "reserve", "samples")
    )
    selector = build(SELECTORS, settings["selector"])
    test = scaled_count(info["test"], samples)
    if cohort > clients:
        raise UserError(f"cohort is {cohort}, but there are only {clients} clients")
    if scaled_count(reserve, samples) >= test:
        raise UserError(
            f"reserve is {reserve}, but {settings['dataset']} has only {test} test samples, "
            "of which some must be left"
        )
    if any(need.reserved for need in needs_of(selector)) and reserve == 0:
        raise UserError(
            f"strategy '{strategy}' evaluates reserved samples, so reserve must be at least 1"
        )
    with refused(f"strategy '{strategy}' is impossible: "):
        selector.check(clients, cohort)
    reserved, classes = scaled_count(reserve, samples), info["classes"]
    if (needed := selector.memory(reserved, classes, clients)) > MOST_MEMORY:
        raise UserError(
            f"strategy '{strategy}' would need {needed / 1e9:.0f} GB of memory for {clients} "
            f"clients, {reserved} reserved samples and {classes} classes, more than the "
            f"{MOST_MEMORY / 1e9:.0f} GB that a selector may take; reduce reserve"
        )


def check_procedure(settings: Settings, info: DatasetInfo) -> None:
    """Reject settings that the procedure, the participation or the optimizer does not take."""
    if settings["optimizer"] == "adam" and settings["momentum"]:
        raise UserError(f"momentum is {settings['momentum']:g}, but Adam takes none; leave it out")
    with refused(f"procedure '{settings['procedure']}' "):
        parse_participation(settings["participation"])
        procedure = parse_procedure(settings["procedure"])
        procedure.check(settings)


def check_evaluators(settings: Settings, info: DatasetInfo) -> None:
    """Reject evaluators that are not known, and plans for those that cannot evaluate such a run."""
    free = [name for name, kind in EVALUATORS.items() if kind.setting == "evaluators"]
    for name in plans_by_name(settings["evaluators"]):
        if name not in free:
            raise UserError(f"evaluators: '{name}' is not known{suggest(name, free)}")
    for evaluator in (kind() for kind in EVALUATORS.values()):
        if evaluator.plan(settings):
            with refused(""):
                evaluator.check(settings)
