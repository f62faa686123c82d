"""How many multiplications native code takes for a network, for estimates of time."""

from __future__ import annotations

import functools
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

from cohort.core.cache import cached
from cohort.core.files import code_hash
from cohort.core.lazy import lazy
from cohort.models import Model

if TYPE_CHECKING:
    import torch

    from cohort.training.native import spectra, stages
else:
    torch = lazy("torch")
    spectra, stages = (lazy(f"cohort.training.native.{name}") for name in ("spectra", "stages"))


class NativeCounts(NamedTuple):
    """Multiply-adds for one sample: of a forward pass, and of a step of training."""

    forward: int
    training: int


@functools.cache
def native_counts(model: Model, shape: tuple[int, ...], classes: int) -> NativeCounts | None:
    """Count a model's multiply-adds in native code; None if there is none for it. What an earlier
    process found is in the user's cache folder."""
    code = [code_hash("models", "training/native"), version("torch"), version("torchvision")]
    key = [model.name, model.science, shape, classes, *code]
    found = cached("native-counts", key, lambda: _count(model, shape, classes))
    return NativeCounts(*found) if found else None


def _count(model: Model, shape: tuple[int, ...], classes: int) -> NativeCounts | None:
    with torch.device("meta"):
        network = model.build(shape, classes)
    try:
        found = stages.stages_of(network, shape)
    except stages.Unsupported:
        return None
    forward = [_products(number, stage) for number, stage in enumerate(found)]
    # the first stage needs no gradient of its inputs
    return NativeCounts(sum(forward), 3 * sum(forward) - forward[0])


def _products(number: int, stage: stages.Stage) -> int:
    """The multiply-adds of a stage's forward pass."""
    height, width = stage.sides
    pixels = height * width * stage.taps
    if number and spectra.pays(stage):
        pixels = spectra.Slots.of(stage).count
    return pixels * stage.inner * stage.outer
