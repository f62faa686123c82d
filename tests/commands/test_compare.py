"""`cohort compare` of two trees and of two revisions, against differences and t-tests worked out by hand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cohort.plan import Plan
from cohort.results.differences import differences
from tests.commands.conftest import finish, record, replan

OutputOf = Callable[..., str]
T_2 = 4.302653  # the 97.5 % quantile of Student's t with 2 degrees of freedom, from a table


@pytest.fixture
def trees(plan: Plan) -> Plan:
    """Two trees: FedAvg's three cells differ by +1, +2 and +3 points, two of loss's not at all, and its last is in A alone."""
    *fedavg, first, second, third = plan.cells.values()
    for planned, before, after in zip(fedavg, (0.5, 0.6, 0.7), (0.51, 0.62, 0.73), strict=True):
        finish(planned, before, "a")
        finish(planned, after, "b", weights="1", trainer="native")
    for root in ("a", "b"):
        finish(first, 0.4, root)
        finish(second, 0.4, root)
    finish(third, 0.4, "a")
    return plan


def test_cells_that_differ_by_how_much_and_whether_significantly(trees: Plan, output_of: OutputOf):
    """The differences 1, 2, 3 have mean 2 and deviation 1: t = 2 / (1 / sqrt 3) = 3.46 of 4.30."""
    lines = output_of("compare", "a", "b").splitlines()
    half = T_2 / 3**0.5
    assert lines == [
        "A: a, 6 records, serial on a CPU, torch 2.0",
        "B: b, 5 records, native, serial on a CPU, torch 2.0",
        "5 cells are in both, 2 of them bit by bit the same",
        f"1 only in A: {list(trees.cells)[-1]}",
        "",
        "Test accuracy (%) after the last round, A -> B",
        "digits/small-mlp/iid/J2/fedavg",
        f"  60.00 -> 62.00  +2.00 ({2 - half:+.2f} to {2 + half:+.2f}, 3 seeds)  not significant",
    ]
    printed = json.loads(output_of("compare", "a/results", "b", "--json"))
    (difference,) = printed["differences"]
    assert (difference["mean"], difference["paired"]) == (pytest.approx(0.02), True)
    assert difference["p_value"] == pytest.approx(0.0742, abs=1e-4)  # of t = 3.464 with 2 degrees
    assert (printed["in_both"], printed["identical"], len(printed["only_a"])) == (5, 2, 1)


def test_equal_differences_are_significant_and_holm_counts_all(plan: Plan):
    """t of 1, 2, 3 is 3.46, that of 1, 1.1, 1.2 is 19.05: p = 0.0742 and 0.00274. Alone 0.00274 passes 0.05 and with another test 0.025; of 1, 1, 1 there is no doubt."""

    def side(values: dict[str, list[float]]) -> dict:
        return {
            (json.dumps(replaced), seed): record(replaced, value, weights=weights)
            for (strategy, weights), group in zip(
                ((name, name[-1]) for name in values), values.values(), strict=True
            )
            for seed, value in enumerate(group)
            for replaced in [settings | {"strategy": strategy[:-1]}]
        }

    settings = next(iter(plan.cells.values())).plain_settings()
    first = side({"x0": [0, 0, 0], "y0": [0, 0, 0], "z0": [0, 0], "w0": [0, 0, 0]})
    second = side({"x1": [1, 2, 3], "y1": [1, 1.1, 1.2], "z1": [5, 5], "w1": [1, 1, 1]})
    results = {
        difference.name.split("/")[-1]: difference
        for difference in differences(first, second, "test_accuracy")
    }
    assert {name: change.verdict for name, change in results.items()} == {
        "x": "not significant",
        "y": "significant",
        "z": "not enough runs",
        "w": "significant",
    }
    assert results["y"].p_value == pytest.approx(0.00274, abs=1e-5)
    assert [results[name].level for name in "wyx"] == pytest.approx([0.05 / 3, 0.05 / 2, 0.05])


def test_without_common_seeds_the_means_are_compared(plan: Plan, output_of: OutputOf):
    """Welch's test of 1, 2, 3 and 11, 12, 13 in percent: t = 10 / sqrt(2/3) = 12.25 with 4 degrees of freedom, p = 0.000255."""
    cells = [cell for cell in plan.cells.values() if cell.settings.strategy == "fedavg"]
    for cell, accuracy in zip(cells, (0.01, 0.02, 0.03), strict=True):
        finish(cell, accuracy, "a")
        other_seed = cell.plain_settings() | {"seed": cell.settings.seed + 10}
        finish(cell, accuracy + 0.1, "b", settings=other_seed)
    assert output_of("compare", "a", "b").splitlines()[-1] == (
        "  2.00 -> 12.00  +10.00 (3 and 3 other seeds)  significant"
    )
    (difference,) = json.loads(output_of("compare", "a", "b", "--json"))["differences"]
    assert difference["p_value"] == pytest.approx(0.000255, abs=1e-6) and not difference["paired"]


def test_the_records_of_two_revisions(plan: Plan, output_of: OutputOf):
    """A setting that is younger than a record, at its default, and a bumped version make no other cell."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x"]
    commits = []
    subprocess.run([*git, "init", "-q"], check=True)
    for number in (1, 2):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", str(number)], check=True)
        head = ["git", "rev-parse", "--short=12", "HEAD"]
        commits.append(subprocess.run(head, capture_output=True, text=True).stdout.strip())
    cell = next(iter(plan.cells.values()))
    earlier = replace(
        cell,
        path=str(Path(cell.path).with_name("seed0-k000000000000.h5")),
        digest="k000000000000",
    )
    settings = cell.plain_settings()
    del settings["participation"]
    finish(earlier, 0.5, settings=settings, commit=commits[0] + "-dirty")
    finish(cell, 0.6, commit=commits[1], weights="1")
    assert output_of("compare", "HEAD~1", "HEAD").splitlines()[2:] == [
        "1 cell is in both, 0 of them bit by bit the same",
        "",
        "Test accuracy (%) after the last round, A -> B",
        "digits/small-mlp/iid/J2/fedavg",
        "  50.00 -> 60.00  +10.00 (1 seed)  not enough runs",
    ]
    assert "neither a folder nor a git revision" in output_of("compare", "HEAD", "nope", fails=True)
    assert "config has no records" in output_of("compare", "config", "HEAD", fails=True)
    wrong = output_of("compare", "HEAD", "HEAD~1", "--metric", "accuracy", fails=True)
    assert "no metric 'accuracy'; did you mean 'test_accuracy'?" in wrong


def test_cells_of_one_folder_are_told_apart(plan: Plan, output_of: OutputOf):
    for lr, accuracy in ((0.05, 0.5), (0.1, 0.6)):
        planned = next(iter(replan(lr=lr).cells.values()))
        finish(planned, accuracy, "a")
        finish(planned, accuracy + 0.1, "b", weights="1")
    names = [
        line for line in output_of("compare", "a", "b").splitlines() if line.startswith("digits")
    ]
    folder = "digits/small-mlp/iid/J2/fedavg"
    assert names == [f"{folder} lr=0.05", f"{folder} lr=0.1"]


def test_a_run_with_nan_is_the_same_as_itself(plan: Plan, output_of: OutputOf):
    cell = next(iter(plan.cells.values()))
    for root in ("a", "b"):
        finish(cell, float("nan"), root)
    assert "1 cell is in both, 1 of them bit by bit the same" in output_of("compare", "a", "b")
