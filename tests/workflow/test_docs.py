"""What the documentation tells a reader to do works as written."""

from __future__ import annotations

import re

import yaml

from tests.conftest import ROOT
from tests.workflow.conftest import Project


def test_adding_a_strategy_as_documented(fresh: Project):
    text = (ROOT / "docs/adding-a-strategy.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (fresh.root / "workflow/cohort/selection/turns.py").write_text(code)
    strategies = fresh.root / "config/strategies.yaml"
    entries = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    strategies.write_text(
        strategies.read_text()
        + "\nturns:\n  title: Turns\n  selector: {name: turns, stride: 2}\n\n"
        + entries[0]
    )
    study = fresh.study()
    study["experiments"]["one"]["axes"]["strategy"] = ["turns", "mine"]
    fresh.write(study)
    fresh.snakemake("--config", "only=partition=iid,strategy=turns|mine")
    assert len(fresh.records()) == 2
    fresh.replace("config/strategies.yaml", "stride: 2", "stride: 0")
    assert "turns.selector.stride is 0, but must be at least 1" in fresh.snakemake(fails=True)


def test_the_study_in_the_config_readme(fresh: Project):
    text = (ROOT / "config/README.md").read_text()
    (study,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    fresh.write(yaml.safe_load(study))
    assert fresh.planned()["train"] == (2 * 2 - 1) * 2 * 3 + 2 * 3


def test_slurm_profile_plans(fresh: Project):
    (fresh.root / "slurm").symlink_to("profiles/slurm")
    assert fresh.planned("--profile", "slurm")["train"] == 6
