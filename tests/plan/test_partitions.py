"""What planning says of partitions, and of figures of them, before any data is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.core.errors import UserError
from cohort.plan import Plan

PlanOf = Callable[..., Plan]
AXES = {
    "partition": ["iid", "classes-2"],
    "strategy": ["fedavg", "loss"],
    "J": ["J4", "J8"],
    "seed": [0, 1],
}
FIG1 = {"experiment": "main", "kind": "shards"}
WHERE = "config/studies/study.yaml: experiments.main: partition '{}' of digits is impossible: {}"
WITH_FOUR = {
    "roles-5": "a client cannot hold 5 roles where there are only 4",
    "domains-5": "a client cannot hold 5 domains where there are only 4",
    "onedomain-4": "there is no domain 4: the 4 domains are numbered from 0 to 3",
    "dirdomains-0.5-minimum200": "1437 samples cannot give 10 clients 200 each",
    "roles-1-overlap0.2x2": "'roles-1' already lets clients share samples; only a partition that deals each sample once can have an overlap",
}


def give_groups(project: Path) -> None:
    """Digits with four groups: planning reads no data."""
    file = project / "config/datasets.yaml"
    text = file.read_text()
    start = text.index("digits:")
    file.write_text(
        text[:start] + text[start:].replace("  classes: 10\n", "  classes: 10\n  groups: 4\n", 1)
    )


@pytest.mark.parametrize("name", WITH_FOUR)
def test_what_cannot_be_with_four_groups_is_one_sentence(name: str, plan_of: PlanOf, project: Path):
    give_groups(project)
    with pytest.raises(UserError) as caught:
        plan_of({"axes": {"partition": [name]}})
    assert str(caught.value) == WHERE.format(name, WITH_FOUR[name])


def test_a_figure_of_shards_keeps_apart_what_shards_depend_on(plan_of: PlanOf):
    plan_of({"axes": AXES}, figures={"fig1": FIG1 | {"columns": "partition"}})
    with pytest.raises(UserError, match="fig1 would average runs with partition iid and classes-2"):
        plan_of({"axes": AXES}, figures={"fig1": FIG1})
    with pytest.raises(UserError, match="fig1 would average runs with clients 10 and 20"):
        plan_of(
            {"axes": AXES | {"clients": [10, 20]}},
            figures={"fig1": FIG1 | {"columns": "partition"}},
        )
