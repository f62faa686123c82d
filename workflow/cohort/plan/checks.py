"""Reject settings that cannot be trained together, before any job starts.

Each check takes a cell and the info of its data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cohort.cell.evaluations import plans_by_name
from cohort.cell.settings import DEFAULTS as SETTINGS
from cohort.core.errors import UserError, suggest
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.dataset_info import DEFAULTS, DatasetInfo
from cohort.data.sampling import scaled_count
from cohort.models import MODELS
from cohort.needs import needs_of
from cohort.partition import Scheme
from cohort.plan.located import refusals_as_errors
from cohort.training.cell import Cell
from cohort.training.evaluators import EVALUATORS

MOST_MEMORY = 16e9  # bytes that a selector may take beside training


def check_partition(scheme: Scheme, settings: Mapping[str, Any], info: DatasetInfo) -> None:
    """Reject a scheme that cannot deal this data set to so many clients."""
    dataset, samples, validation = (settings[key] for key in ("dataset", "samples", "validation"))
    left = scaled_count(info["train"], samples) - scaled_count(validation, samples)
    if left < 1:
        raise UserError(
            f"validation is {validation}, but {dataset} has only {info['train']} "
            "training samples to share"
        )
    with refusals_as_errors(f"partition '{scheme}' of {dataset} is impossible: "):
        scheme.scaled(samples).check(info["classes"], settings["clients"], left, info.get("groups"))


def check_shape(cell: Cell, info: DatasetInfo) -> None:
    """Reject a model or augmentation that does not take samples of this kind and shape, and a batch
    that no client can fill."""
    settings, kind = cell.settings, info.get("kind", DEFAULTS["kind"])
    model, augmentation = MODELS[settings.model](), AUGMENTATIONS[settings.augmentation]()
    for part, component in (("model", model), ("augmentation", augmentation)):
        with refusals_as_errors(f"{part} '{component.name}' cannot take {settings.dataset}: "):
            if kind not in component.kinds:
                raise ValueError(f"takes {' or '.join(component.kinds)}, not {kind}")
            component.check(tuple(info["shape"]))
    if settings.batch > info["train"]:
        raise UserError(
            f"batch is {settings.batch}, but {settings.dataset} has only {info['train']} training "
            "samples; this many make every batch a full one"
        )


def check_cohort(cell: Cell, info: DatasetInfo) -> None:
    """Reject more clients in the cohort than there are, a reserve that leaves no test samples or is
    lacking where the strategy needs it, or a selector that cannot select this cohort or would need
    too much memory."""
    settings, selector = cell.settings, cell.selector
    clients, cohort = settings.clients, settings.cohort
    reserved = scaled_count(settings.reserve, settings.samples)
    test, classes = scaled_count(info["test"], settings.samples), info["classes"]
    if cohort > clients:
        raise UserError(f"cohort is {cohort}, but there are only {clients} clients")
    if reserved >= test:
        raise UserError(
            f"reserve is {settings.reserve}, but {settings.dataset} has only {test} test samples, "
            "of which some must be left"
        )
    if any(need.reserved for need in needs_of(selector)) and settings.reserve == 0:
        raise UserError(
            f"strategy '{settings.strategy}' evaluates reserved samples, so reserve must be at "
            "least 1"
        )
    with refusals_as_errors(f"strategy '{settings.strategy}' is impossible: "):
        selector.check(clients, cohort)
    if (memory := selector.memory(reserved, classes, clients)) > MOST_MEMORY:
        raise UserError(
            f"strategy '{settings.strategy}' would need {memory / 1e9:.0f} GB of memory for "
            f"{clients} clients, {reserved} reserved samples and {classes} classes, more than the "
            f"{MOST_MEMORY / 1e9:.0f} GB that a selector may take; reduce reserve"
        )


def check_procedure(cell: Cell, info: DatasetInfo) -> None:
    """Reject settings that the procedure, the participation or the optimizer does not take."""
    settings = cell.settings
    if settings.optimizer == "adam" and settings.momentum:
        raise UserError(f"momentum is {settings.momentum:g}, but Adam takes none; leave it out")
    if settings.client_devices != SETTINGS["client_devices"] and not cell.procedure.simulates_time:
        raise UserError(
            f"client_devices is '{settings.client_devices}', but the procedure "
            f"'{settings.procedure}' simulates no time; leave it out"
        )
    with refusals_as_errors(f"procedure '{settings.procedure}' "):
        cell.procedure.check(cell)


def check_evaluators(cell: Cell, info: DatasetInfo) -> None:
    """Reject evaluators that are unknown, or that cannot evaluate the cell's run."""
    named = [name for name, kind in EVALUATORS.items() if kind.setting == "evaluators"]
    for name in plans_by_name(cell.settings.evaluators):
        if name not in named:
            raise UserError(f"evaluators: '{name}' is not known{suggest(name, named)}")
    for evaluator in (kind() for kind in EVALUATORS.values()):
        if evaluator.plan(cell):
            with refusals_as_errors(""):
                evaluator.check(cell)
