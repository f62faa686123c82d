"""Models and augmentations that cannot take a data set's samples are refused in planning."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cohort.core.errors import UserError
from cohort.plan import Plan

WHERE = "config/studies/study.yaml: experiments.main: "
COLOR = "needs images with three color channels"
VGG = "needs images of 32x32 to 63x63 pixels, of which its 5 poolings leave one"
REFUSED = [
    ("model", "lenet5", "needs images of at least 16x16 pixels"),
    ("model", "vgg11", VGG),
    ("model", "vgg11-bn", VGG),
    ("model", "efficientnet-b0", COLOR),
    ("model", "efficientnet-b3", COLOR),
    ("augmentation", "jitter-flip-gray", COLOR),
]


@pytest.mark.parametrize(("setting", "value", "needed"), REFUSED)
def test_refused_in_one_sentence(
    setting: str, value: str, needed: str, plan_of: Callable[..., Plan]
):
    with pytest.raises(UserError) as refusal:
        plan_of({"settings": {setting: value}})
    assert (
        str(refusal.value)
        == f"{WHERE}{setting} '{value}' cannot take digits: {needed}, not samples of shape (1, 8, 8)"
    )


def test_a_misspelt_augmentation(plan_of: Callable[..., Plan]):
    with pytest.raises(
        UserError,
        match=r"augmentation\[1\] is 'crop-flp', which is not known; did you mean 'crop-flip'\?",
    ):
        plan_of({"axes": {"augmentation": ["none", "crop-flp"]}})


def test_an_augmentation_is_an_axis_like_any_other_and_its_science_counts(
    plan_of: Callable[..., Plan],
):
    plan = plan_of({"axes": {"augmentation": ["none", "crop-flip", "reflect-crop-flip", "flip"]}})
    assert len(plan.cells) == 4 and len(plan.shards) == 1
    for cell in plan.cells.values():
        assert cell.science[f"augmentation:{cell.plain_settings()['augmentation']}"] == 1


def test_a_selector_whose_memory_fits_nowhere_is_refused(plan_of: Callable[..., Plan]):
    """PECO keeps predictions of every client: 40 bytes for each of 40,000 x 5,000 x 10 at work."""
    large = {"clients": 40_000, "reserve": 5000, "dataset": "mnist", "model": "lenet5"}
    assert plan_of({"axes": {"strategy": ["peco"]}}).cells
    assert plan_of({"axes": {"strategy": ["fedavg"]}, "settings": large}).cells
    with pytest.raises(UserError) as refusal:
        plan_of({"axes": {"strategy": ["peco"]}, "settings": large})
    assert str(refusal.value) == (
        f"{WHERE}strategy 'peco' would need 80 GB of memory for 40000 clients, 5000 reserved "
        "samples and 10 classes, more than the 16 GB that a selector may take; reduce reserve"
    )
