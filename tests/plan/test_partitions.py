"""What planning says of partitions before any data is read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.core.errors import UserError
from cohort.plan import Plan

PlanOf = Callable[..., Plan]
WHERE = "config/studies/study.yaml: experiments.main: partition '{}' of digits is impossible: {}"
WITH_FOUR = {
    "roles-5": "a client cannot hold 5 roles where there are only 4",
    "domains-5": "a client cannot hold 5 domains where there are only 4",
    "onedomain-4": "there is no domain 4: the 4 domains are numbered from 0 to 3",
    "dirdomains-0.5-minimum200": "1437 samples cannot give 10 clients 200 each",
    "roles-1-overlap0.2x2": "'roles-1' already lets clients share samples; only a partition that deals each sample once can have an overlap",
}


@pytest.mark.parametrize("name", WITH_FOUR)
def test_what_cannot_be_with_four_groups_is_one_sentence(name: str, plan_of: PlanOf, project: Path):
    file = project / "config/datasets.yaml"
    before, digits, after = file.read_text().partition("digits:")
    after = after.replace("  classes: 10\n", "  classes: 10\n  groups: 4\n", 1)
    file.write_text(before + digits + after)
    with pytest.raises(UserError) as caught:
        plan_of({"axes": {"partition": [name]}})
    assert str(caught.value) == WHERE.format(name, WITH_FOUR[name])
