"""The loop over rounds: states, divergence, evaluations, and cohorts of changing size."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from cohort.core.randomness import generator
from cohort.data.samples import Samples
from cohort.records.history import History
from cohort.selection import Selector
from cohort.selection.peco import Peco
from cohort.selection.pools import Probe
from cohort.selection.selector import Probing, Rng, State, View
from cohort.selection.simple import FixedProbability, HighestLoss, HighestTrainingLoss, Random, Ucb
from cohort.training.evaluation import fingerprint
from cohort.training.evaluators import EVALUATORS
from cohort.training.job.train import TRAINERS
from cohort.training.task import RunState, Task
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Weights
from tests.training.small_task import run, small_task, states, train
from tests.training.test_empty_clients import PlannedCohorts

CPU = torch.device("cpu")


def rounds_of(state: RunState, metric: str) -> list[int]:
    """The rounds in which a metric was recorded."""
    return [round for round, _ in state.history.metrics[metric]]


@pytest.mark.parametrize("procedure", ["federated", "centralized", "concat-2", "fedtan"])
def test_divergence_ends_the_run(procedure: str):
    """The weights overflow before round 3. That they are no model shows in no accuracy: the argmax
    of NaN is class 0, which some samples have."""
    sizes = (9,) if procedure == "centralized" else (4, 9, 2, 6)
    settings = {"lr": 1e300, "J": "J5", "weight_decay": 0.9, "evaluate_every": 1}
    by_round = states(small_task(sizes=sizes, rounds=6, procedure=procedure, **settings))
    assert [state.diverged for state in by_round] == [False] * (len(by_round) - 1) + [True]
    assert by_round[-1].round == len(by_round) < 3
    assert rounds_of(by_round[-1], "test_accuracy") == list(range(1, len(by_round)))
    assert len(by_round[-1].history.cohorts) == len(by_round)


def test_finite_weights_whose_outputs_overflow_are_a_divergence():
    (last,) = states(small_task(lr=1e160, rounds=3, evaluate_every=1))
    assert last.diverged and all(tensor.isfinite().all() for tensor in last.weights.values())
    assert last.history.last("test_classes_named") == 0


HELD_OUT = ((0, 1, 4), (3,), (7, 9), ())
PLANS = {"evaluate_every": 2, "evaluate_holdout": 3, "evaluate_next": "2 until 2, 4"}
PLANS |= {"evaluate_local": "1 until 2, 2", "evaluate_own": 4, "evaluators": "cohort_samples 3"}
EXPECTED = {
    "test_loss": [2, 4, 5],
    "validation_loss": [2, 4, 5],
    "holdout_loss": [3, 5],
    "next_cohort_loss": [2, 4, 5],
    "local_loss": [1, 2, 4, 5],
    "own_samples_loss": [4, 5],
    "cohort_samples_loss": [3, 5],
}


def evaluated_task(
    holdouts: tuple[tuple[int, ...], ...] = ((0, 1), (2,), (), ()), **settings: Any
) -> Task:
    """Samples 0 to 4 are validation samples, some of which clients hold out."""
    task = small_task(**({"rounds": 5, "validation": (0, 1, 2, 3, 4)} | settings))
    parts = [np.array(part, dtype=np.int64) for part in holdouts]
    return replace(task, shards=replace(task.shards, holdouts=parts))


def test_each_evaluator_has_its_own_plan_and_evaluates_in_the_last_round():
    state = run(evaluated_task(**PLANS))
    assert {metric.removesuffix("_loss") for metric in EXPECTED} == set(EVALUATORS)
    assert {metric: rounds_of(state, metric) for metric in EXPECTED} == EXPECTED


def by_hand(task: Task, weights: Weights, samples: Samples, indices: Any) -> tuple[float, float]:
    """The loss and accuracy of a model on some samples."""
    chosen = torch.as_tensor(indices)
    outputs = functional_call(task.model, weights, samples.inputs(chosen))
    labels = samples.labels[chosen]
    right = (outputs.argmax(dim=1) == labels).double().mean()
    return float(cross_entropy(outputs, labels)), float(right)


def test_held_out_samples_by_hand():
    """Clients hold out three samples, one and none: the mean weighs samples, not clients."""
    task = evaluated_task(((0, 1, 4), (3,), (), ()), evaluate_holdout=1, lr=0.5)
    by_round = states(task)
    metrics = by_round[-1].history.metrics
    differs = False
    for state in by_round:
        index = state.round - 1
        model = task, state.weights, task.train_samples
        first, second = by_hand(*model, [0, 1, 4]), by_hand(*model, [3])
        loss, accuracy = ((3 * a + b) / 4 for a, b in zip(first, second, strict=True))
        assert metrics["holdout_loss"][index][1] == pytest.approx(loss, rel=1e-12)
        assert metrics["holdout_accuracy"][index][1] == pytest.approx(accuracy, rel=1e-12)
        worst = metrics["holdout_worst_accuracy"][index][1]
        assert worst == pytest.approx(min(first[1], second[1]), rel=1e-12)
        differs |= abs(accuracy - (first[1] + second[1]) / 2) > 0.01 and worst < accuracy
    assert differs  # there was something to get wrong


def test_the_next_cohort_by_hand():
    """After round 1 clients 1 and 2 come next, then 2 and 3, then 3 and 0. The mean weighs samples,
    as Flower weighs clients by their numbers of examples."""
    selector = PlannedCohorts(cohorts=((0, 1), (1, 2), (2, 3), (3, 0)))
    settings = {"rounds": 3, "cohort": 2, "lr": 0.5, "J": "J2", "evaluate_next": 1}
    by_round = states(task := evaluated_task(HELD_OUT, selector=selector, **settings))
    metrics = by_round[-1].history.metrics
    for state, held_out in zip(by_round, ([3, 7, 9], [7, 9], [0, 1, 4]), strict=True):
        loss, accuracy = by_hand(task, state.weights, task.train_samples, held_out)
        index = state.round - 1
        assert metrics["next_cohort_accuracy"][index] == (state.round, accuracy)
        assert metrics["next_cohort_loss"][index][1] == pytest.approx(loss, rel=1e-12)


def test_local_models_by_hand():
    """In each round the mean over the three clients that answer, each counting the same."""
    settings = {"rounds": 2, "evaluate_local": 1, "J": "J2e", "lr": 0.3}
    task = small_task(participation="dropout-0.25", **settings)
    weights = task.initial_weights()
    by_round = states(task)
    metrics = by_round[-1].history.metrics
    for state in by_round:
        answered = train(SerialTrainer(task), weights, range(4), state.round)
        index, cohort = state.round - 1, state.history.cohorts[state.round - 1]
        rows = _answered(task, cohort, state.round)
        assert len(rows) == 3
        tests, models = (task.test_samples, task.test), map(answered.client_weights, rows)
        losses, accuracies = zip(*[by_hand(task, model, *tests) for model in models], strict=True)
        assert metrics["local_loss"][index][1] == pytest.approx(np.mean(losses), rel=1e-12)
        assert metrics["local_accuracy"][index][1] == pytest.approx(np.mean(accuracies), rel=1e-12)
        assert len(set(losses)) == 3
        assert metrics["local_loss"][index][1] != metrics["test_loss"][index][1]
        weights = state.weights


def _answered(task: Task, cohort: np.ndarray, round: int) -> list[int]:
    """The clients that do not drop out in a round."""
    rng = generator(task.settings.seed, "answers", round=round)
    return cohort[task.participation.responds(cohort, rng)].tolist()


@dataclass(frozen=True, kw_only=True)
class Shrinking(PlannedCohorts, Probing):
    """Probes pools of three or four clients, and chooses three, then one, then two of them."""

    name: ClassVar[str] = "shrinking"
    batches: ClassVar[int] = 1  # type: ignore[misc]

    def draw_pool(self, candidates: np.ndarray, view: View, rng: np.random.Generator) -> np.ndarray:
        return rng.permutation(candidates)[: 3 + int(rng.integers(2))]

    def select(self, state: State, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        return rng.choice(candidates, (3, 1, 2)[int(state["round"][0])], replace=False)


@pytest.mark.parametrize("trainer", ["serial", "native", "batched"])
def test_cohorts_and_pools_of_changing_size_are_recorded(trainer: str):
    settings = {"rounds": 3, "cohort": 3, "J": "J2", "seed": 3}
    state = run(
        replace(small_task(selector=Shrinking(cohorts=()), **settings), trainer=TRAINERS[trainer])
    )
    history = History.from_arrays(state.history.arrays())
    assert [len(cohort) for cohort in history.cohorts] == [3, 1, 2]
    assert {len(pool) for pool in history.pools} == {3, 4}
    for name in ("cohorts", "responders", "pools", "norms"):
        rows, expected = getattr(history, name), getattr(state.history, name)
        assert [row.tolist() for row in rows] == [row.tolist() for row in expected]
    assert history.metrics == state.history.metrics and history.cost == state.history.cost


@pytest.mark.parametrize("trainer", ["serial", "native", "batched"])
def test_a_probe_that_leaves_no_steps_gives_the_training_loss(trainer: str):
    """At J1e with full batches the probe is all of a client's work. The training loss is the mean
    loss of the probes of the cohort, and the update is what the probes did."""
    settings = {"rounds": 1, "cohort": 2, "J": "J1e", "batch": 100, "lr": 0.3}
    task = small_task(selector=Probe(pool=2.0, batches=1), **settings)
    start = task.initial_weights()
    state = run(replace(task, trainer=TRAINERS[trainer]))
    (cohort,) = state.history.cohorts
    model, indices = (task, start, task.train_samples), task.shards.indices
    losses = [by_hand(*model, indices[client])[0] for client in cohort]
    assert state.history.metrics["train_loss"] == [(1, pytest.approx(np.mean(losses), rel=1e-9))]
    assert state.history.cost["client_steps"] == [(1, 4)]  # one of each client in the pool
    plain = small_task(**settings)
    updates = train(SerialTrainer(plain), plain.initial_weights(), cohort)
    for name, tensor in updates.weighted_sum(updates.shares()).items():
        torch.testing.assert_close(state.weights[name], tensor, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("selector", [Random(), Peco(), HighestLoss(), HighestTrainingLoss(), Ucb(), FixedProbability()],
                         ids=lambda selector: selector.name)  # fmt: skip
def test_a_run_is_the_same_without_the_draw_of_the_next_cohort(selector: Selector):
    def state_of(plan: int) -> RunState:
        settings = {"rounds": 5, "cohort": 2, "lr": 0.5, "J": "J2", "evaluate_local": 1}
        task = evaluated_task(HELD_OUT, selector=selector, evaluate_next=plan, **settings)
        return run(replace(task, shards=replace(task.shards, borrowers=np.array([1]))))

    with_it, without = state_of(1), state_of(0)
    assert fingerprint(with_it.weights) == fingerprint(without.weights)
    for name, array in without.selector.items():
        np.testing.assert_array_equal(with_it.selector[name], array)
    for cohort, other in zip(with_it.history.cohorts, without.history.cohorts, strict=True):
        np.testing.assert_array_equal(cohort, other)
    measured = dict(with_it.history.metrics)
    assert [len(measured.pop(f"next_cohort_{name}")) for name in ("accuracy", "loss")] == [5, 5]
    assert measured == without.history.metrics
