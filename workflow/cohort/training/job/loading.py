"""Load what a cell trains on: data, shards and model."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import torch

from cohort.data.samples import load
from cohort.data.sampling import draw_share, draw_stratified, scaled_count
from cohort.data.shards import read as read_shards
from cohort.data.store import has_validation, read_labels
from cohort.training.cell import Cell
from cohort.training.job.precision import WEIGHTS
from cohort.training.task import Task, new_model


def load_task(cell: Cell, device: torch.device) -> Task:
    """Load the data, shards and model of a cell."""
    settings, data = cell.settings, cell.inputs["data"]
    dtype = WEIGHTS[settings.precision]
    train_samples, test_samples = (load(data, split, device, dtype) for split in ("train", "test"))
    labels = test_samples.labels.cpu().numpy()
    used = draw_share(labels, settings.samples, "test share")
    set_aside = draw_stratified(
        labels[used], scaled_count(settings.reserve, settings.samples), "reserve"
    )
    classes = read_labels(data)[2]
    shape = tuple(train_samples.values.shape[1:])
    model = new_model(settings, shape, classes, "initial weights")
    # convolutions on a CPU are faster in this layout
    layout = {"memory_format": torch.channels_last}
    model = model.to(device=device, dtype=dtype, **layout)  # type: ignore[call-overload]
    dealt = read_shards(cell.inputs["shards"])
    validation_samples, validation = train_samples, dealt.validation
    if not settings.validation and has_validation(data):
        validation_samples = load(data, "validation", device, dtype)
        labels = validation_samples.labels.cpu().numpy()
        validation = draw_share(labels, settings.samples, "validation share")
    return Task(
        **{field.name: getattr(cell, field.name) for field in fields(cell)},
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
