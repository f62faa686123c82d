"""Load what a planned cell trains on: data, shards, model and components."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import torch

from cohort.cell.planned import Planned
from cohort.cell.settings import Settings
from cohort.core.components import build
from cohort.data.samples import load
from cohort.data.sampling import scaled_count, share_of, stratified
from cohort.data.shards import read as read_shards
from cohort.data.store import has_validation, read_labels
from cohort.selection import SELECTORS
from cohort.training.job.precision import WEIGHTS
from cohort.training.objectives import OBJECTIVES
from cohort.training.participation import parse_participation
from cohort.training.schedules import parse_schedule
from cohort.training.servers import SERVERS
from cohort.training.task import Task, new_model


def load_task(planned: Planned, device: torch.device) -> Task:
    """Load the data, shards, model and components of a planned cell."""
    names = {field.name for field in fields(Settings)}
    settings = Settings(**{key: value for key, value in planned.settings.items() if key in names})
    dtype = WEIGHTS[settings.precision]
    data = planned.inputs["data"]
    train_samples, test_samples = (load(data, split, device, dtype) for split in ("train", "test"))
    labels = test_samples.labels.cpu().numpy()
    used = share_of(labels, settings.samples, "test share")
    set_aside = stratified(
        labels[used], scaled_count(settings.reserve, settings.samples), "reserve"
    )
    classes = read_labels(data)[2]
    shape = tuple(train_samples.values.shape[1:])
    model = new_model(settings, shape, classes, "initial weights")
    # convolutions on a CPU are faster in this layout
    layout = {"memory_format": torch.channels_last}
    model = model.to(device=device, dtype=dtype, **layout)  # type: ignore[call-overload]
    dealt = read_shards(planned.inputs["shards"])
    validation_samples, validation = train_samples, dealt.validation
    if not settings.validation and has_validation(data):
        validation_samples = load(data, "validation", device, dtype)
        labels = validation_samples.labels.cpu().numpy()
        validation = share_of(labels, settings.samples, "validation share")
    return Task(
        settings=settings,
        selector=build(SELECTORS, planned.settings["selector"]),
        objective=build(OBJECTIVES, planned.settings["objective"]),
        server=build(SERVERS, planned.settings["server"]),
        schedule=parse_schedule(settings.schedule),
        participation=parse_participation(settings.participation),
        model=model,
        classes=classes,
        train_samples=train_samples,
        test_samples=test_samples,
        test=torch.from_numpy(np.delete(used, set_aside)).to(device),
        reserved=torch.from_numpy(used[set_aside]).to(device),
        validation_samples=validation_samples,
        validation=torch.from_numpy(validation).to(device),
        shards=dealt,
    )
