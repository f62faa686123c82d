"""Models and augmentations that cannot take a data set's samples are refused before anything is made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cohort.errors import UserError
from cohort.plan import Plan

WHERE = "config/studies/study.yaml: experiments.main: "
REFUSED = {
    "model": ("lenet5", "model 'lenet5' cannot take digits: needs images of at least 16x16 pixels, not samples of shape (1, 8, 8)"),
    "augmentation": (
        "jitter-flip-gray",
        "augmentation 'jitter-flip-gray' cannot take digits: needs images with three color channels, not samples of shape (1, 8, 8)",
    ),
}


@pytest.mark.parametrize("setting", REFUSED)
def test_refused_in_one_sentence(setting: str, plan_of: Callable[..., Plan]):
    value, sentence = REFUSED[setting]
    with pytest.raises(UserError) as refusal:
        plan_of({"settings": {setting: value}})
    assert str(refusal.value) == WHERE + sentence


def test_a_misspelt_augmentation(plan_of: Callable[..., Plan]):
    with pytest.raises(UserError, match=r"augmentation\[1\] is 'crop-flp', which is not known; did you mean 'crop-flip'\?"):
        plan_of({"axes": {"augmentation": ["none", "crop-flp"]}})


def test_an_augmentation_is_an_axis_like_any_other_and_its_science_counts(plan_of: Callable[..., Plan]):
    plan = plan_of({"axes": {"augmentation": ["none", "crop-flip", "reflect-crop-flip", "flip"]}})
    assert len(plan.cells) == 4 and len(plan.shards) == 1
    for cell in plan.cells.values():
        assert cell.science[f"augmentation:{cell.settings['augmentation']}"] == 1
