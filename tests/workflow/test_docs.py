"""What the documentation tells a reader to do works as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import yaml

from cohort.records.record import read
from tests.conftest import ROOT
from tests.workflow.conftest import Project


def blocks(language: str) -> list[str]:
    """The code blocks of the page on adding a strategy."""
    text = (ROOT / "docs/adding-a-strategy.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_adding_a_strategy_as_documented(fresh: Project):
    turns, power_of_choice, test = blocks("python")
    (fresh.root / "workflow/cohort/selection/turns.py").write_text(turns)
    (fresh.root / "workflow/cohort/selection/power_of_choice.py").write_text(power_of_choice)
    strategies = fresh.root / "config/strategies.yaml"
    strategies.write_text(
        strategies.read_text()
        + "\nturns:\n  title: Turns\n  selector: {name: turns, stride: 2}\n\n"
        + "power:\n  title: Power-of-choice\n  selector: {name: power-of-choice}\n\n"
        + blocks("yaml")[0]
    )
    study = fresh.study()
    study["experiments"]["one"]["axes"] |= {
        "partition": ["iid"],
        "strategy": ["turns", "mine", "power"],
    }
    study["figures"]["fig1"]["metric"] = "loss_advantage"
    fresh.write(study)
    fresh.snakemake("tiny_fig1")
    assert (fresh.root / "results/full/figures/tiny/fig1.png").exists()
    power = next(path for path in fresh.records() if "/power/" in str(path))
    history = read(power).history
    assert min(value for _, value in history.metrics["loss_advantage"]) >= 0
    assert history.traffic["candidate_loss"].tolist() == [4 * 4 * 6, 0, 0]  # rounds, pool, bytes
    assert min(value for _, value in history.cost["selection_samples"]) > 0

    (fresh.root / "tests").mkdir()
    file = fresh.root / "tests/test_power_of_choice.py"
    file.write_text(test)
    environment = os.environ | {"PYTHONPATH": str(fresh.root / "workflow")}
    subprocess.run([sys.executable, "-m", "pytest", "-q", file], env=environment, check=True)

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
