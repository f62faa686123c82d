"""Estimates of a cell's cost and the resources of its job, by hand and against measurements."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cohort.commands.status import cost_lines, statuses, summarize_cost
from cohort.models import MODELS
from cohort.pipeline.driver import freeze_plan
from cohort.pipeline.stages import Stages
from cohort.plan import Plan
from cohort.plan.cost import RATES, memory_mb, resource_request, round_seconds
from cohort.settings import PlannedFile
from cohort.training.cell import Cell, cell_of

PlanOf = Callable[..., Plan]
CIFAR = {"train": 50_000, "test": 10_000, "shape": [3, 32, 32], "classes": 100}
DIGITS = {"train": 1_437, "test": 360, "shape": [1, 8, 8], "classes": 10}
TEXT = {"train": 4_014_850, "test": 211_308, "shape": [80], "classes": 80, "kind": "text"}
BASE = {
    **{"partition": "iid", "strategy": "fedavg", "seed": 0, "lr": 0.1},
    **{"rounds": 10, "evaluate_every": 10, "cohort": 4, "J": "J4", "batch": 16},
    **{"selector": {"name": "random"}, "objective": {"name": "cross-entropy"}},
    **{"server": {"name": "average"}},
}
DEMO = BASE | {"dataset": "digits", "model": "small-mlp", "clients": 20}
AML = BASE | {"dataset": "cifar100", "model": "aml-lenet", "clients": 100, "cohort": 10}
AML |= {"J": "J4e", "batch": 128}
TENTH = {"samples": 0.1, "cohort": 20}
LSTM = DEMO | {"model": "char-lstm", "clients": 100, "cohort": 10}


def cell_with(settings: dict[str, Any]) -> Cell:
    return cell_of(PlannedFile("", "", settings, {}, {}))


def test_every_model_has_a_rate_and_one_of_the_users_that_of_amls_lenet(
    monkeypatch: pytest.MonkeyPatch,
):
    assert RATES.keys() == set(MODELS)
    expected = round_seconds(cell_with(AML), CIFAR), memory_mb(cell_with(AML), CIFAR)
    monkeypatch.delitem(RATES, "aml-lenet")
    assert (round_seconds(cell_with(AML), CIFAR), memory_mb(cell_with(AML), CIFAR)) == expected


def seconds(train: float, test: float, steps: float) -> float:
    """4 microseconds per 32x32 pixels in training, a third in an evaluation; 40 per step."""
    return (4 * train + 4 / 3 * test) * 64 / 1024 * 1e-6 + steps * 40e-6


@pytest.mark.parametrize(
    ("changes", "train", "test", "steps"),
    [
        ({}, 160 * 1437 / 20 / 5, 360, 160),
        ({"J": "J2e"}, 10 * 4 * 2 * 1437 / 20, 360, 10 * 4 * 2 * 5),
        ({"J": "J1e", "validation": 637}, 10 * 4 * 40, 360 + 637, 10 * 4 * 3),
        ({"selector": {"name": "training-loss"}}, 160 * 1437 / 20 / 5, 360, 160),
        ({"selector": {"name": "fedcor"}}, 160 * 1437 / 20 / 5, 360 + 10 * 1437, 160),
        ({"evaluate_local": 5}, 160 * 1437 / 20 / 5, 360 + 2 * 4 * 360, 160),
        ({"selector": {"name": "probe"}}, 320 * 1437 / 20 / 5, 360, 320),  # eight are probed
    ],
)
def test_seconds_by_hand(changes: dict[str, Any], train: float, test: float, steps: float):
    """Ten rounds of four clients, each of which has 71.85 samples, five batches; then the final
    model is evaluated on all samples."""
    around = 10 * (1.5e-3 + 4 * 4e-4)
    expected = seconds(train, test + 1437 + 360, steps) + around
    assert round_seconds(cell_with(DEMO | changes), DIGITS) == pytest.approx(expected)


def test_parts_of_a_run_are_added():
    """Three epochs of batches by PyTorch, then seven of single samples by native code."""
    hybrid = DEMO | {"procedure": "stratified-hybrid-3", "J": "J1e", "cohort": 20}
    batches = hybrid | {"procedure": "stratified-batch", "rounds": 3}
    single = hybrid | {"procedure": "stratified-single", "rounds": 7, "batch": 1}
    expected = round_seconds(cell_with(batches), DIGITS) + round_seconds(cell_with(single), DIGITS)
    assert round_seconds(cell_with(hybrid), DIGITS) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("settings", "info", "peaks"),
    [
        (DEMO, DIGITS, (325, 328)),
        (AML | {"samples": 0.02}, CIFAR, (903, 1030)),
        (AML | TENTH, CIFAR, (1764, 1887)),  # momentum of the server
        (AML | TENTH | {"selector": {"name": "probe", "pool": 2.0}}, CIFAR, (2747, 2871)),
        (AML | {"samples": 0.1, "clients": 1, "cohort": 1, "J": "J1e"}, CIFAR, (826, 842)),
        (LSTM, TEXT, (1011, 1011)),
        (LSTM | {"samples": 0.02}, TEXT, (768, 824)),
    ],
)
def test_cells_took_between_a_quarter_and_all_of_the_estimated_memory(
    settings: Any, info: Any, peaks: tuple[int, int]
):
    """Peaks of finished cells on a CPU, from their records."""
    lowest, highest = peaks
    assert highest < memory_mb(cell_with(settings), info) < 4 * lowest


def test_steps_and_attempts():
    """AML's cell takes about 1.6 GB, and 1.5 times that and 350 are in the step of 4,000; three
    times its 126 seconds are 7 minutes. Three times 4,000 and 30 lie between two steps, and later
    attempts request no more: nodes have an end."""
    requests = [resource_request(cell_with(AML), CIFAR, attempt) for attempt in (1, 2, 3, 20)]
    assert requests == [(4000, 30), (8000, 60), (16000, 120), (16000, 120)]
    assert resource_request(cell_with(AML | {"rounds": 90}), CIFAR) == (4000, 60)
    long = cell_with(AML | {"rounds": 43_200, "evaluate_every": 100})  # about six days
    minutes = [resource_request(long, CIFAR, 1, most)[1] for most in (90, 4320, 99_999)]
    assert minutes == [90, 4320, 10080]


def test_driver_and_job_request_the_same(plan_of: PlanOf):
    """On one machine, whose memory cells share, each requests its estimate alone."""
    axes = {"J": ["J4", "J400000"], "strategy": ["fedavg", "fedentopt"], "seed": [0, 1]}
    plan = plan_of({"axes": axes}, config={"max_runtime": 100})
    freeze_plan(plan)
    cluster, local = (
        SimpleNamespace(resource_settings=SimpleNamespace(nodes=nodes), executor_plugin=None)
        for nodes in (100, None)
    )
    requests = set()
    for digest, cell in plan.cells.items():
        wildcards = SimpleNamespace(digest=digest)
        for attempt in (1, 2):
            driver, job = (
                (stages.megabytes(wildcards, attempt), stages.minutes(wildcards, attempt))
                for stages in (Stages(plan, cluster), Stages(None))
            )
            assert driver == job
            requests.add((cell.settings.J, attempt, *driver))
        assert Stages(plan, cluster).at_most(120) == Stages(None).at_most(120) == 100
        memory = Stages(plan, local).megabytes(wildcards, 1)
        assert memory == pytest.approx(memory_mb(cell, plan.dataset_info(cell)), abs=1)
    short, long = {("J4", 1, 2000, 30), ("J4", 2, 4000, 60)}, {(1, 2000, 100), (2, 4000, 100)}
    assert requests == short | {("J400000", *request) for request in long}


def test_cost_says_how_many_jobs_of_which_kind(plan_of: PlanOf):
    axes = {"J": ["J4", "J400000"], "seed": [0, 1, 2]}
    plan = plan_of({"axes": axes, "exclude": [{"J": ["J400000"], "seed": [1, 2]}]})
    lines = list(cost_lines(summarize_cost(plan, statuses(plan))))
    assert lines[1].split()[:3] == ["study.main", "4", "4"]
    assert lines[2].endswith("3 jobs of 2000 MB and 30 minutes on a cluster")
    assert lines[3].startswith("  1 job of 2000 MB and ")
    assert lines[-1].startswith("4 missing cells: about ")
