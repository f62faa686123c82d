"""Estimates of a cell's cost and the resources of its job, against hand calculations and
measurements."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cohort.cell.planned import PlannedFile
from cohort.commands.cost import print_cost
from cohort.pipeline.driver import freeze_plan
from cohort.pipeline.stages import Stages
from cohort.plan import Plan
from cohort.plan.cost import _evaluated_samples, client_steps, memory_mb, round_seconds
from cohort.plan.requests import jobs_needed, resource_request
from cohort.training.cell import Cell, cell_of

PlanOf = Callable[..., Plan]
CIFAR = {"train": 50_000, "test": 10_000, "shape": [3, 32, 32], "classes": 100}
DIGITS = {"train": 1_437, "test": 360, "shape": [1, 8, 8], "classes": 10}
TEXT = {"train": 4_014_850, "test": 211_308, "shape": [80], "classes": 80, "kind": "text"}
CENTRAL = {"train": 3_803_542, "test": 422_616, "shape": [80], "classes": 80, "kind": "text"}
BASE = {
    **{"partition": "iid", "strategy": "fedavg", "seed": 0, "lr": 0.1},
    **{"rounds": 10, "evaluate_every": 10},
    "selector": {"name": "random"},
    "objective": {"name": "cross-entropy"},
    "server": {"name": "average"},
}
DEMO = BASE | {
    "dataset": "digits",
    "model": "small-mlp",
    "clients": 20,
    "cohort": 4,
    "J": "J4",
    "batch": 16,
}
AML = BASE | {
    "dataset": "cifar100",
    "model": "aml-lenet",
    "clients": 100,
    "cohort": 10,
    "J": "J4e",
    "batch": 128,
}


def cell_with(settings: dict[str, Any]) -> Cell:
    return cell_of(PlannedFile("", "", settings, {}, {}))


PROBE = {"cohort": 20, "selector": {"name": "probe", "pool": 2.0}}


def test_memory_of_a_cell_by_hand():
    """Clients of 500 images: three copies of ten times as many are in memory; LeNet's layers put
    out 64 numbers for each of 32x32 places, twice 64 for 16x16 pooled ones, the same a size
    smaller, and twice 384 + 192; 10 clients have 8 copies of 1,773,796 weights."""
    stored = 60_000 * (3072 + 16)
    inputs = 10 * 500 * 3072 * 3 * 4
    outputs = (64 * (1024 + 2 * 256) + 64 * (256 + 2 * 64) + 2 * 576) * 3 * 128 * 4
    models = 8 * 10 * 1_773_796 * 4
    assert memory_mb(cell_with(AML), CIFAR) == pytest.approx(
        500 + (stored + inputs + outputs + models) / 1e6
    )
    double = memory_mb(cell_with(AML | {"precision": "float64"}), CIFAR)
    assert double == pytest.approx(500 + (stored + 2 * (inputs + outputs + models)) / 1e6)


def test_a_client_holds_no_more_than_there_is():
    """Four clients of 12,500: the largest holds all 50,000, not ten times its share; evaluation of
    250 beats a batch of 10, thrice."""
    settings = AML | {"clients": 4, "cohort": 1, "batch": 10}
    outputs = (64 * (1024 + 2 * 256) + 64 * (256 + 2 * 64) + 2 * 576) * 250 * 4
    expected = 60_000 * (3072 + 16) + 50_000 * 3072 * 3 * 4 + outputs + 8 * 1_773_796 * 4
    assert memory_mb(cell_with(settings), CIFAR) == pytest.approx(500 + expected / 1e6)


@pytest.mark.parametrize(
    ("settings", "facts", "peaks"),
    [
        (DEMO, DIGITS, (325, 328)),
        (DEMO | {"model": "small-cnn"}, DIGITS, (342, 342)),
        (AML | {"samples": 0.02}, CIFAR, (903, 1030)),
        (AML | {"samples": 0.1}, CIFAR, (1085, 1162)),
        (AML | {"samples": 0.1, "cohort": 20}, CIFAR, (1764, 1887)),  # momentum of the server
        (AML | {"samples": 0.1} | PROBE, CIFAR, (2747, 2871)),
        (
            AML | {"samples": 0.1, "clients": 1, "cohort": 1, "J": "J1e"},
            CIFAR,
            (826, 842),
        ),  # centralized
        (DEMO | {"model": "char-lstm", "clients": 100, "cohort": 10}, TEXT, (1011, 1011)),
        (
            DEMO | {"model": "char-lstm", "clients": 100, "cohort": 10, "samples": 0.02},
            TEXT,
            (768, 824),
        ),
        (
            DEMO
            | {
                "model": "char-lstm-central",
                "clients": 1,
                "cohort": 1,
                "batch": 1024,
                "samples": 0.002,
            },
            CENTRAL,
            (4182, 5281),
        ),
        (
            DEMO
            | {
                "model": "char-lstm-central",
                "clients": 1,
                "cohort": 1,
                "batch": 1024,
                "samples": 0.00025,
            },
            CENTRAL,
            (3447, 3448),
        ),
    ],
)
def test_cells_took_between_a_quarter_and_all_of_the_estimated_memory(
    settings: Any, facts: Any, peaks: tuple[int, int]
):
    """Peaks of finished cells on a CPU, from their records."""
    lowest, highest = peaks
    assert highest < memory_mb(cell_with(settings), facts) < 4 * lowest


def test_steps_and_attempts():
    """AML's cell is estimated at about 1.6 GB: 1.5 times that and 350 are in the step of 4,000.
    Time: 4 epochs of 4 batches, 10 clients, 10 rounds: 1,600 steps of 125 images, each about 2 x 24
    million operations at 8.5e10 a second; three times the 126 seconds are 7 minutes."""
    megabytes = 1.5 * memory_mb(cell_with(AML), CIFAR) + 350
    assert 2000 < megabytes < 4000
    assert resource_request(cell_with(AML), CIFAR) == (4000, 30)
    assert resource_request(cell_with(AML), CIFAR, attempt=2) == (8000, 60)
    assert resource_request(cell_with(AML), CIFAR, attempt=3) == (
        16000,
        120,
    )  # three times 4,000 and 30 lie between two steps
    assert resource_request(cell_with(AML), CIFAR, attempt=20) == (
        16000,
        120,
    )  # no more after that: nodes have an end
    assert resource_request(cell_with(AML | {"rounds": 90}), CIFAR) == (4000, 60)
    assert resource_request(cell_with(AML | {"rounds": 1_000_000}), CIFAR, attempt=3) == (
        16000,
        1440,
    )
    assert resource_request(cell_with(DEMO), DIGITS) == (2000, 30)


@pytest.mark.parametrize(
    ("longest", "minutes"), [(90, 90), (1440, 1440), (4320, 4320), (20_000, 5760)]
)
def test_no_job_requests_more_than_the_partition_allows(longest: int, minutes: int):
    """1,600 steps take 126 seconds (above): 43,200 rounds take 6 days, requested thrice. The step of
    4 days is enough for a third of a cell that takes 1.3 days."""
    rounds = {"rounds": 9_000} if longest == 20_000 else {"rounds": 43_200}
    assert resource_request(cell_with(AML | rounds), CIFAR, 1, longest)[1] == minutes
    assert resource_request(cell_with(AML | rounds), CIFAR, 4, longest)[1] <= longest
    assert resource_request(cell_with(AML), CIFAR, 1, longest)[1] == 30


def test_jobs_that_a_long_cell_needs():
    """A second for each round of 160 local steps: a day and a half are two jobs of a day."""
    second = round_seconds(cell_with(AML | {"rounds": 1000, "evaluate_every": 1000}), CIFAR) / 1000
    rounds = {"rounds": round(1.5 * 86_400 / second), "evaluate_every": 100}
    assert [
        jobs_needed(cell_with(AML | rounds), CIFAR, longest) for longest in (1440, 2880, 480)
    ] == [2, 1, 5]
    assert jobs_needed(cell_with(AML), CIFAR) == 1


def test_scaffold_holds_a_model_for_each_client():
    """AML's LeNet, for 100 clients and the server."""
    settings = AML | {"server": {"name": "scaffold"}}
    more = memory_mb(cell_with(settings), CIFAR) - memory_mb(cell_with(AML), CIFAR)
    assert more == pytest.approx(101 * 1_773_796 * 4 / 1e6)


def test_on_one_machine_a_cell_takes_the_estimate(plan_of: PlanOf):
    plan = plan_of({"axes": {"J": ["J4"]}})
    stages = Stages(plan, local=True)
    for digest, cell in plan.cells.items():
        estimate = memory_mb(cell, plan.dataset_info(cell))
        assert stages.requests.megabytes(SimpleNamespace(digest=digest), 1) == pytest.approx(
            estimate, abs=1
        )


def test_memory_of_an_efficientnet():
    """108 MB for each of 16 images of 224 pixels: the growth of a process by two steps of
    EfficientNet-B0, less than the estimate."""
    images = {"train": 5712, "test": 1311, "shape": [3, 224, 224], "classes": 4}
    settings = AML | {"model": "efficientnet-b0", "clients": 40}
    more = memory_mb(cell_with(settings | {"batch": 32}), images) - memory_mb(
        cell_with(settings | {"batch": 16}), images
    )
    assert 108 < more / 16 < 1.2 * 108


def test_driver_and_job_request_the_same(plan_of: PlanOf):
    plan = plan_of(
        {"axes": {"J": ["J4", "J400000"], "strategy": ["fedavg", "fedentopt"], "seed": [0, 1]}}
    )
    freeze_plan(plan)
    driver, job = Stages(plan), Stages(None)
    asked = set()
    for digest, cell in plan.cells.items():
        wildcards = SimpleNamespace(digest=digest)
        for attempt in (1, 2):
            numbers = (
                driver.requests.megabytes(wildcards, attempt),
                driver.requests.minutes(wildcards, attempt),
            )
            assert numbers == (
                job.requests.megabytes(wildcards, attempt),
                job.requests.minutes(wildcards, attempt),
            )
            asked.add((cell.settings.J, attempt, *numbers))
    assert asked == {
        ("J4", 1, 2000, 30),
        ("J4", 2, 4000, 60),
        ("J400000", 1, 2000, 120),
        ("J400000", 2, 4000, 240),
    }


def test_a_job_knows_the_longest_time_from_its_driver(plan_of: PlanOf):
    """Without the driver's limit the job would request 120 minutes."""
    plan = plan_of({"axes": {"J": ["J400000"]}}, config={"max_runtime": 45})
    freeze_plan(plan)
    (digest,) = plan.cells
    for stages in (Stages(plan), Stages(None)):
        assert stages.requests.minutes(SimpleNamespace(digest=digest), 1) == 45


def test_cost_says_how_many_jobs_of_which_kind(plan_of: PlanOf, capsys: pytest.CaptureFixture[str]):
    print_cost(
        plan_of(
            {
                "axes": {"J": ["J4", "J400000"], "seed": [0, 1, 2]},
                "exclude": [{"J": ["J400000"], "seed": [1, 2]}],
            }
        )
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:4] == [
        "  3 jobs of 2000 MB and 30 minutes on a cluster",
        "  1 job of 2000 MB and 120 minutes on a cluster",
    ]


def test_samples_that_are_evaluated_by_hand():
    """100 of 360 test samples are reserved. A client trains on nine tenths of 71.85 samples. Once in
    ten rounds all held-out samples are evaluated twice, every other round those of four of twenty
    clients, and every fifth round four local models on the test set; PECO evaluates them on the
    reserved samples in every round, for both of its needs, and UCB on their own. A training loss
    takes no evaluation."""
    peco = DEMO | {"reserve": 100, "holdout": 0.1, "selector": {"name": "peco"}}
    more = {"evaluate_holdout": 10, "evaluate_next": 2, "evaluate_local": 5}
    result = _evaluated_samples(cell_with(peco | more), DIGITS)
    drawn = 5 * 143.7 * 4 / 20
    assert result == pytest.approx(260 + 2 * 143.7 + drawn + 2 * 4 * 260 + 10 * 4 * 100)
    assert (
        _evaluated_samples(cell_with(DEMO | {"selector": {"name": "training-loss"}}), DIGITS) == 360
    )
    ucb = DEMO | {"holdout": 0.1, "selector": {"name": "ucb"}, "evaluate_own": 2}
    assert _evaluated_samples(cell_with(ucb), DIGITS) == pytest.approx(360 + 15 * 4 * 0.9 * 71.85)
    tenth = DEMO | {"validation": 200, "samples": 0.1}  # the samples set aside are fewer, too
    assert _evaluated_samples(cell_with(tenth), DIGITS) == pytest.approx(36 + 20)
    assert _evaluated_samples(cell_with(peco | {"samples": 0.1}), DIGITS) == pytest.approx(
        26 + 10 * 4 * 10
    )


SMALL = 64 * 64 + 64 * 10
"""Multiplications of the small MLP, and all its weights but the 74 biases."""


def test_steps_by_hand():
    """71.85 samples are five batches of 16, and 80 samples are five whole ones."""
    assert client_steps(cell_with(DEMO), DIGITS) == 10 * 4 * 4
    assert client_steps(cell_with(DEMO | {"J": "J2e"}), DIGITS) == 10 * 4 * 2 * 5
    four = DEMO | {"J": "J1e", "clients": 4}
    assert client_steps(cell_with(four), DIGITS | {"train": 320}) == 10 * 4 * 5


def test_native_seconds_by_hand():
    """Ten rounds of four clients take four steps each on 14.4 of their 71.9 samples; a batch of 16
    fills the lanes. The first layer needs no gradient of its inputs."""
    trained = 2 * (3 * SMALL - 64 * 64) / 8.5e10
    steps = 160 * (1e-5 + 1437 / 20 / 5 * trained)
    around = 10 * (1.5e-3 + 4 * 4e-4)
    tested = 360 * 2 * SMALL / 8.5e10
    assert round_seconds(cell_with(DEMO), DIGITS) == pytest.approx(steps + around + tested)
    halved = round_seconds(cell_with(DEMO | {"batch": 8}), DIGITS)  # half of the lanes are empty
    steps = 160 * (1e-5 + 1437 / 20 / 9 * 2 * trained)
    assert halved == pytest.approx(steps + around + tested)
    single = round_seconds(cell_with(DEMO | {"batch": 1}), DIGITS)
    assert single == pytest.approx(160 * (4e-5 + 71.85 / 72 * trained) + around + tested)


def test_seconds_of_pytorch_by_hand():
    """A centralized epoch with Adam: 90 steps on 16 samples, through four layers that put out
    128 numbers. The evaluation is native."""
    alone = {"clients": 1, "cohort": 1, "J": "J1e", "rounds": 1, "optimizer": "adam"}
    trained = 6 * SMALL / 8.5e10 + 128 * 4.5e-9
    expected = 90 * (4 * 3e-4 + 1437 / 90 * trained)
    expected += 1.5e-3 + 4e-4
    expected += 360 * 2 * SMALL / 8.5e10
    assert round_seconds(cell_with(DEMO | alone), DIGITS) == pytest.approx(expected)


def test_augmentation_takes_time_and_is_slower_in_pytorch():
    """Seven random numbers for each image of 3,072 numbers, in native code and in PyTorch's."""
    jitter = {"augmentation": "jitter-flip-gray", "J": "J1e"}
    for optimizer, times in (("sgd", 1), ("adam", 4)):
        plain = AML | {"optimizer": optimizer, "J": "J1e"}
        more = round_seconds(cell_with(plain | jitter), CIFAR) - round_seconds(
            cell_with(plain), CIFAR
        )
        assert more == pytest.approx(times * 10 * 10 * 500 * 7 * 3072 * 2e-10)


def test_concat_by_hand():
    """20 rounds: 16 with three clients of two steps in native code, then 4 in which they pass three
    batches through three networks forward. A client holds 143.7 samples, nine batches. Each of 20
    tests asks three networks. PyTorch passes and tests, and takes four times native code's time."""
    alone = DEMO | {"clients": 10, "cohort": 3, "J": "J2", "rounds": 20, "evaluate_every": 1}
    joined = alone | {"procedure": "concat-3"}
    assert client_steps(cell_with(joined), DIGITS) == 16 * 3 * 2
    tested, weights = 4 * 2 * SMALL / 8.5e10, SMALL + 74
    trained = 2 * (3 * SMALL - 64 * 64) / 8.5e10
    expected = (
        16 * 3 * 2 * (1e-5 + 143.7 / 9 * trained)
        + 4 * 3 * 3 * 3 * 143.7 / 9 * tested
        + 20 * 360 * 3 * tested
        + 20 * (1.5e-3 + 3 * 4e-4)
    )
    assert round_seconds(cell_with(joined), DIGITS) == pytest.approx(expected)
    assert memory_mb(cell_with(joined), DIGITS) - memory_mb(
        cell_with(alone), DIGITS
    ) == pytest.approx(4 * 2 * weights * 4 / 1e6)


def test_parts_of_a_run_are_added():
    """Three epochs of batches by PyTorch, then seven of single samples by native code, which is
    evaluated at its end as well."""
    hybrid = DEMO | {"procedure": "stratified-hybrid-3", "J": "J1e", "cohort": 20}
    batches = hybrid | {"procedure": "stratified-batch", "rounds": 3}
    single = hybrid | {"procedure": "stratified-single", "rounds": 7, "batch": 1}
    expected = round_seconds(cell_with(batches), DIGITS) + round_seconds(cell_with(single), DIGITS)
    assert round_seconds(cell_with(hybrid), DIGITS) == pytest.approx(expected)


def test_clients_that_step_together_hold_all_their_batches():
    """Ten batches of 128 of ResNet-20's 651,328 outputs, each one and a quarter times, instead of
    the 250 images of an evaluation, which outweigh one batch; the steps of a round are FedAvg's."""
    alone = AML | {"model": "resnet20"}
    together, images = alone | {"procedure": "fedtan"}, CIFAR | {"classes": 10}
    more = memory_mb(cell_with(together), images) - memory_mb(cell_with(alone), images)
    assert more == pytest.approx((10 * 1.25 * 128 - 250) * 651_328 * 4 / 1e6)
    assert round_seconds(cell_with(together), images) == round_seconds(cell_with(alone), images)
