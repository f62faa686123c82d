"""EfficientNets take color images only, and torchvision can always be imported."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch

from cohort.models import MODELS
from cohort.models.networks import Shape
from tests.conftest import ROOT

NAMES = ["efficientnet-b0", "efficientnet-b3"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 32, 32), (4, 32, 32), (3, 32), (80,)])
def test_only_color_images_are_taken(name: str, shape: Shape):
    sentence = f"needs images with three color channels, not samples of shape {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        MODELS[name]().check(shape)


def test_initial_weights_come_from_the_generator():
    built = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        built.append(MODELS["efficientnet-b0"]().build((3, 32, 32), 9).state_dict())
    once, again, other = built
    assert all(torch.equal(once[name], again[name]) for name in once)
    assert not torch.equal(once["features.0.0.weight"], other["features.0.0.weight"])


def test_torchvision_imports_whether_or_not_its_operators_load():
    code = """
from cohort.models.networks import from_torchvision
print(from_torchvision("models").get_model("resnet18", weights=None).fc.out_features)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "workflow",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1000\n"
