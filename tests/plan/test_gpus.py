"""GPU hours: assumed rates by hand, and rates measured by records made on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cohort.commands.cost import print_cost
from cohort.core.errors import UserError
from cohort.core.text import duration_text
from cohort.pipeline import cell_states
from cohort.plan import Plan
from cohort.plan.cost import counts_of, operations, paces, round_seconds
from cohort.plan.gpu_times import Gpu, find_gpu
from cohort.training.cell import Cell
from tests.plan.test_cost import DEMO, DIGITS, SMALL, cell_with

PlanOf = Callable[..., Plan]


def test_operations_by_hand():
    """10 rounds: four clients take four steps of 71.85 / 5 samples, each forward and backward (three
    passes), and 360 samples are tested once. A product is two operations."""
    trained = 10 * 4 * 4 * 71.85 / 5
    assert operations(cell_with(DEMO), DIGITS) == pytest.approx(2 * SMALL * (3 * trained + 360))


def test_operations_of_networks_that_answer_together():
    """Of 20 rounds, 16 train three clients for two steps; in four of them, three batches of theirs
    pass through three networks forward. Each of 20 tests asks three networks."""
    settings = DEMO | {"clients": 10, "cohort": 3, "J": "J2", "rounds": 20, "evaluate_every": 1}
    batch = 143.7 / 9
    samples = 3 * 16 * 3 * 2 * batch + 4 * 3 * 3 * 3 * batch + 20 * 360 * 3
    answered = operations(cell_with(settings | {"procedure": "concat-3"}), DIGITS)
    assert answered == pytest.approx(2 * SMALL * samples)


RATES = {"layer_seconds": 2e-4, "graph_layer_seconds": 3e-5, "client_layer_seconds": 7e-6}


@pytest.mark.parametrize(
    ("changes", "steps", "per_layer"),
    [
        ({}, 10 * 4, 3e-5 + 4 * 7e-6),
        ({"optimizer": "adam"}, 10 * 4 * 4, 2e-4),
        ({"procedure": "stratified-batch", "J": "J1e"}, 10 * 4 * 5, 2e-4),
    ],
)
def test_seconds_by_hand(changes: dict[str, Any], steps: int, per_layer: float):
    """The small MLP has four layers (flatten, linear, ReLU, linear). Four clients take 4 or 5 steps
    in each of ten rounds, together where the batched trainer takes them."""
    cell, gpu = cell_with(DEMO | changes), Gpu("X", 1e9, **RATES)
    expected = operations(cell, DIGITS) / 1e9 + steps * 4 * per_layer
    assert gpu.seconds(cell, DIGITS) == pytest.approx(expected)


def test_clients_of_a_network_with_batch_normalization_step_one_by_one():
    cell = cell_with(DEMO | {"model": "resnet20"})
    counts = counts_of(cell, DIGITS)
    expected = operations(cell, DIGITS) / 1e9 + 10 * 4 * 4 * counts.layers * 2e-4
    assert not counts.can_be_batched
    assert Gpu("X", 1e9, **RATES).seconds(cell, DIGITS) == pytest.approx(expected)


def test_paces_by_hand():
    """3 + 6 seconds instead of 1 + 2, and 5 instead of 10."""
    finished = [("small-mlp", 3.0, 1.0), ("lenet5", 5.0, 10.0), ("small-mlp", 6.0, 2.0)]
    assert paces(finished) == {"small-mlp": 3.0, "lenet5": 0.5}


def test_the_file_of_assumptions(project: Path):
    """A quarter of 19.5 TFLOPS."""
    gpu = find_gpu()
    assert (gpu.name, gpu.operations_per_second) == ("A100", pytest.approx(4.875e12))
    assert gpu.is_cpu("Intel(R) Xeon(R) Processor") and not gpu.is_cpu("NVIDIA H100 80GB HBM3")
    with pytest.raises(
        UserError, match=r"config/gpus.yaml has no GPU 'H10'; did you mean 'H100'\?"
    ):
        find_gpu("H10")
    Path("config/gpus.yaml").write_text("utilization: 10\nlayer_seconds: 0\ngpus: {}\n")
    with pytest.raises(UserError, match=r"config/gpus.yaml: "):
        find_gpu()


LONG = "an_experiment_whose_name_has_as_many_letters_as_are_allowed"


def test_the_page_of_costs(
    plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """One of three cells was trained on a CPU in twice its estimated time, one on an A100. The third
    is missing: its hours are those of these cells."""
    plan = plan_of({"axes": {"seed": [0, 1, 2]}})
    plan.study("study").experiments[LONG] = plan.study("study").experiments["main"]
    cells = {cell.settings.seed: cell for cell in plan.cells.values()}
    seconds = round_seconds(cells[0], plan.datasets["digits"])
    made = {
        cells[0].digest: ("done", 2 * seconds, "Intel(R) Xeon(R) Processor"),
        cells[1].digest: ("done", 7200.0, "NVIDIA A100-SXM4-40GB"),
        cells[2].digest: ("missing", 0.0, ""),
    }

    def status_of(cell: Cell, logs: object) -> cell_states.CellStatus:
        return cell_states.CellStatus(cell, *made[cell.digest])

    monkeypatch.setattr("cohort.commands.cost.status_of", status_of)
    print_cost(plan)
    lines = capsys.readouterr().out.splitlines()
    *table, _, last = lines
    assert max(map(len, table)) <= 80
    time = duration_text(2 + 2 * seconds)
    assert lines[1].split() == [
        "study.main",
        "3",
        "1",
        *time.split(),
        *["2", "h", "00", "min", "2.00"],
    ]
    assert last == "or 2 h 00 min of one A100, by rates measured there for small-mlp"


def test_cells_longer_than_a_job(plan_of: PlanOf, capsys: pytest.CaptureFixture[str]):
    """Three clients of 100 rounds take 400,000 steps each, of 10 microseconds and 2.9 more for 14
    samples: 1.2e8 steps are 26 minutes, or three jobs of ten."""
    steps = {"axes": {"J": ["J4", "J400000"]}}
    print_cost(plan_of(steps, config={"max_runtime": 10}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "  2 jobs of 2000 MB and 10 minutes; 1 cell resumes in up to 2 more jobs"
