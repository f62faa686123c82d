"""How many multiplications native code takes for a network, for estimates of time."""

from __future__ import annotations

from typing import NamedTuple

import torch

from cohort.models import Model
from cohort.training.native.spectra import Slots, pays
from cohort.training.native.stages import Shape, Stage, Unsupported, stages_of


class NativeCounts(NamedTuple):
    """Multiply-adds for one sample: of a forward pass, and of a step of training."""

    forward: int
    training: int


def native_counts(model: Model, shape: Shape, classes: int) -> NativeCounts | None:
    """Count a model's multiply-adds in native code; None if there is none for it."""
    with torch.device("meta"):
        network = model.build(shape, classes)
    try:
        stages = stages_of(network, shape)
    except Unsupported:
        return None
    forward = [_products(number, stage) for number, stage in enumerate(stages)]
    # the first stage needs no gradient of its inputs
    return NativeCounts(sum(forward), 3 * sum(forward) - forward[0])


def _products(number: int, stage: Stage) -> int:
    """The multiply-adds of a stage's forward pass."""
    height, width = stage.sides
    pixels = height * width * stage.taps
    if number and pays(stage):
        pixels = Slots.of(stage).count
    return pixels * stage.inner * stage.outer
