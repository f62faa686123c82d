"""EfficientNets: what is worked out of them at every size, what they refuse, and that torchvision can always be had."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch
from torch import nn

from cohort.models import MODELS
from cohort.models.model import Shape
from tests.conftest import ROOT
from tests.models.test_models import puts_out

NAMES = ["efficientnet-b0", "efficientnet-b3"]


@pytest.mark.parametrize("name", NAMES)
def test_large_images_are_counted_as_they_are_worked_on(name: str):
    """224 pixels: multiplications and outputs, counted while a picture goes through."""
    shape, multiplied, kept = (3, 224, 224), [], []
    network = MODELS[name]().build(shape, 9).eval()
    for layer in [layer for layer in network.modules() if puts_out(layer)][:-3]:
        layer.register_forward_hook(lambda layer, inputs, output: kept.append(output.numel()))
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(
                lambda layer, inputs, output: multiplied.append(
                    layer.weight[0].numel() * output.numel()
                )
            )
    with torch.inference_mode():
        assert network(torch.zeros(1, *shape)).shape == (1, 9)
    assert MODELS[name]().multiply_adds(shape, 9) == sum(multiplied)
    assert MODELS[name]().outputs(shape) == sum(kept)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 32, 32), (4, 32, 32), (3, 32), (80,)])
def test_other_than_color_images_are_refused(name: str, shape: Shape):
    sentence = f"needs images with three color channels, not samples of shape {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        MODELS[name]().check(shape)


def test_first_weights_are_drawn_from_the_generator():
    built = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        built.append(MODELS["efficientnet-b0"]().build((3, 32, 32), 9).state_dict())
    once, again, other = built
    assert all(torch.equal(once[name], again[name]) for name in once)
    assert not torch.equal(once["features.0.0.weight"], other["features.0.0.weight"])


def test_torchvision_can_be_had_in_a_process_of_its_own():
    """Whether or not its compiled operators load."""
    code = "from cohort.models.vision import from_torchvision as f; print(f('models').get_model('resnet18', weights=None).fc.out_features)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "workflow",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1000\n"
