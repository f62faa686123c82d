"""`only`: held against the studies that are asked for, by their own labels and values."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.pipeline.stages import targets
from cohort.plan import Plan, load
from tests.plan.conftest import FIXED, SETTINGS

PlanOf = Callable[[str], Plan]


@pytest.fixture
def plan_of(project: Path) -> PlanOf:
    """Two listed studies and one that only a target names, with strategies of their own."""
    studies = {"first": ["fedavg", "loss"], "second": ["fedavg", "fedentopt"]}
    for name, strategies in {**studies, "unlisted": ["skewed"]}.items():
        axes = FIXED | {"strategy": strategies, "seed": [0, 1]}
        study = {"title": name, "settings": SETTINGS, "experiments": {"main": {"axes": axes}}}
        figure = {"experiment": "main", "kind": "curves", "metric": "test_accuracy"}
        study["figures"] = {"fig1": figure | {"hue": "strategy"}}
        Path(f"config/studies/{name}.yaml").write_text(yaml.safe_dump(study))
    return lambda only: load({"studies": ["first", "second"], "only": only})


def cells(plan: Plan, target: str) -> list[tuple[str, int]]:
    """The strategy and seed of each record that a target asks for, which are all its files."""
    files = dict(targets(plan))[target](None)
    by_path = {cell.path: cell.settings for cell in plan.cells.values()}
    return [(by_path[path].strategy, by_path[path].seed) for path in files]


def test_a_named_study_is_held_against_its_own_cells(plan_of: PlanOf):
    plan = plan_of("strategy=skewed,seed=1")
    assert cells(plan, "unlisted") == [("skewed", 1)]
    assert cells(plan, "unlisted_fig1") == [("skewed", 1)]


def test_listed_studies_are_taken_together(plan_of: PlanOf):
    assert cells(plan_of("strategy=loss,seed=0"), "all") == [("loss", 0)]
    plan = plan_of("strategy=loss|fedentopt,seed=0")
    assert cells(plan, "all") == [("loss", 0), ("fedentopt", 0)]
    assert {study for study, _ in plan.rows(plan.listed)} == {"first", "second"}
    assert {study for study, _ in plan_of("strategy=loss").rows(plan.listed)} == {"first"}


MISTAKES = [
    ("strategy=skewd", "unlisted", " matches no cell of unlisted; did you mean 'skewed'?"),
    ("strategy=los", "first", " matches no cell of first; did you mean 'loss'?"),
    ("strategy=fedentopt", "first_fig1", " matches no cell of first (allowed: "),
    ("strategy=skewed", "all", " matches no cell of first or second (allowed: "),
    ("strategi=skewed", "unlisted", ": unlisted has no label 'strategi'; did you mean 'strategy'?"),
    ("seed=2", "all", " matches no cell of first or second (allowed: 0, 1)"),
]


@pytest.mark.parametrize(("only", "target", "sentence"), MISTAKES)
def test_mistakes_in_one_sentence(plan_of: PlanOf, only: str, target: str, sentence: str):
    with pytest.raises(SystemExit, match=re.escape(f"error: only {only}{sentence}")):
        cells(plan_of(only), target)


def test_values_that_no_cell_has_together(project: Path):
    axes = [FIXED | {"strategy": ["loss"]}, FIXED | {"strategy": ["fedavg"], "seed": [1]}]
    blocks = {name: {"axes": own} for name, own in zip(("one", "two"), axes, strict=True)}
    study = {"title": "A study", "settings": SETTINGS, "experiments": blocks}
    Path("config/studies/study.yaml").write_text(yaml.safe_dump(study))
    plan = load({"studies": "study", "only": "strategy=loss,seed=1"})
    with pytest.raises(UserError, match=r"^only: no cell of study has all of strategy, seed"):
        plan.digests("study")
