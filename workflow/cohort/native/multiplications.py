"""Multiplications that native code takes for a network, for estimates of time."""

from __future__ import annotations

import functools
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

from cohort.core.files import cached, code_hash
from cohort.core.lazy import lazy
from cohort.models import Model

if TYPE_CHECKING:
    import torch

    from cohort.native import network_stages, spectra
else:
    torch = lazy("torch")
    spectra, network_stages = (
        lazy(f"cohort.native.{name}") for name in ("spectra", "network_stages")
    )


LANES = 16  # samples that native code works on together
SPECTRAL = 1.5  # time of a multiply-add of spectra, in multiply-adds of a direct convolution


class NativeCounts(NamedTuple):
    """Multiply-adds of native code: of a sample's forward pass (`forward`), of a sample in a step
    of training (`training`), and of a step whatever its samples (`step`)."""

    forward: float
    training: float
    step: float


@functools.cache
def native_counts(model: Model, shape: tuple[int, ...], classes: int) -> NativeCounts | None:
    """Count a model's multiply-adds in native code; None if there is no native code for the model.
    What an earlier process counted is in the user's cache folder."""
    code = [code_hash("models/**/*", "native/**/*"), version("torch"), version("torchvision")]
    key = [model.name, model.science, shape, classes, *code]
    counts = cached("native-counts", key, lambda: _count(model, shape, classes))
    return NativeCounts(*counts) if counts else None


def _count(model: Model, shape: tuple[int, ...], classes: int) -> NativeCounts | None:
    with torch.device("meta"):
        network = model.build(shape, classes)
    try:
        stages = network_stages.stages_of(network, shape)
    except network_stages.Unsupported:
        return None
    counts = [_stage_counts(*numbered) for numbered in enumerate(stages)]
    return NativeCounts(*map(sum, zip(*counts, strict=True)))


def _stage_counts(number: int, stage: network_stages.Stage) -> NativeCounts:
    """Estimate the multiply-adds of a stage's native code."""
    height, width = stage.sides
    pairs = stage.inner * stage.outer
    if number and spectra.is_spectral_faster(stage):
        slots = spectra.SpectrumSlots.of_stage(stage)
        products = slots.count * pairs
        inputs, outputs = (
            images * _transform_count(slots, *sides)
            for images, sides in ((stage.inner, stage.inputs[1:]), (stage.outer, stage.sides))
        )
        kernels = pairs * _transform_count(slots, stage.kernel, stage.kernel)
        # weights, their spectra again for the backward pass, and their gradient
        forward = products + inputs + outputs
        training = 3 * products + 3 * inputs + 2 * outputs
        return NativeCounts(SPECTRAL * forward, SPECTRAL * training, SPECTRAL * 3 * kernels)
    products = height * width * stage.taps * pairs
    # the first stage needs no gradient of its inputs
    return NativeCounts(products, (3 if number else 2) * products, 0)


def _transform_count(slots: spectra.SpectrumSlots, height: int, width: int) -> float:
    """The multiply-adds of the Fourier transform of an image or kernel, along its rows and then its
    columns. Symmetry halves both."""
    return height * slots.width * (width + slots.height) / 2
