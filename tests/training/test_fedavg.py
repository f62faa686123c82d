"""FedAvg end to end: against centralized gradient descent, and against exact quadratics."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from cohort.data.samples import Samples
from cohort.training.objectives import Objective
from cohort.training.procedures.federated import Federated
from cohort.training.servers import Average
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates, stack
from tests.training.small_task import (
    plain_samples,
    run,
    small_model,
    small_settings,
    small_task,
    train,
    trainer_of,
)


@pytest.mark.parametrize("name", ["small-mlp", "small-cnn"])
@pytest.mark.parametrize("cohort", [4, 1])
def test_one_full_batch_step_is_one_step_of_centralized_gradient_descent(name: str, cohort: int):
    """The size-weighted mean of the clients' gradients is the gradient of all data."""
    sizes = (4, 9, 2, 6) if cohort == 4 else (21,)
    task = small_task(model=small_model(name), sizes=sizes, cohort=cohort, batch=1000, lr=0.3)
    before = task.initial_weights()

    central = small_model(name)
    central.load_state_dict(before)
    indices = torch.arange(21)
    cross_entropy(central(task.train_samples.inputs(indices)), task.train_samples.labels).backward()
    expected = {
        key: parameter.detach() - 0.3 * parameter.grad
        for key, parameter in central.named_parameters()
    }

    state = run(task)
    assert set(state.weights) == set(expected)
    for key, value in expected.items():
        assert (state.weights[key] - value).abs().max() < 1e-10
        assert (value - before[key]).abs().max() > 1e-4  # there was something to get wrong


def test_an_unweighted_mean_would_be_noticed():
    """Sizes differ enough that the plain mean is far from the weighted one."""
    task = small_task(batch=1000, lr=0.3)
    start = task.initial_weights()
    updates = train(trainer_of(task), start, range(4))
    weighted, _, _ = Average().apply(start, updates, {})
    plain = {key: rows.mean(dim=0) for key, rows in updates.weights.items()}
    assert max(float((weighted[key] - plain[key]).abs().max()) for key in plain) > 1e-4


@dataclass(frozen=True, kw_only=True)
class HalfSquare(Objective):
    """Half the mean squared distance."""

    name: ClassVar[str] = "half-square"

    def losses(self, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return (outputs[:, 0] - targets) ** 2 / 2


# (x, y) of each client: with weight w the loss is the mean of (w x - y)^2 / 2, and the gradient the
# mean of x (w x - y)
CLIENTS = [[(1, 3)], [(2, 1), (1, 5)], [(3, 2), (1, 1), (2, 6)]]


def quadratic(settings: dict) -> tuple[Trainer, dict[str, Tensor]]:
    """The serial trainer of a single weight that starts at 1."""
    rows = [pair for client in CLIENTS for pair in client]
    samples: Samples = plain_samples(
        torch.tensor([[float(x)] for x, _ in rows], dtype=torch.float64),
        torch.tensor([y for _, y in rows]),
    )
    shards = [np.array([0]), np.array([1, 2]), np.array([3, 4, 5])]
    model = nn.Linear(1, 1, bias=False).double()
    return SerialTrainer(model, small_settings(**settings), HalfSquare(), samples, shards), {
        "weight": torch.ones(1, 1, dtype=torch.float64)
    }


def test_two_steps_of_three_clients_by_hand():
    """Learning rate 1/10, start at 1, two full-batch steps each.

    Client 0: gradient w - 3. 1 - (-2)/10 = 1.2; 1.2 - (-1.8)/10 = 1.38.
    Client 1: gradient (2 (2w - 1) + (w - 5)) / 2 = (5w - 7)/2. At 1 it is -1: 1.1; at 1.1 it is
    -0.75: 1.175.
    Client 2: gradient (3 (3w - 2) + (w - 1) + 2 (2w - 6)) / 3 = (14w - 19)/3. At 1 it is -5/3: 7/6;
    at 7/6 it is -8/9: 7/6 + 4/45 = 113/90.
    Weighted 1, 2, 3 of 6: (1.38 + 2.35 + 113/30) / 6 = (3.73 + 3.7666...) / 6 = 1.249444...
    Losses before each step: client 0 (4/2 + 3.24/2) / 2 = 1.81.
    """
    trainer, start = quadratic({"J": "J2", "batch": 10, "lr": 0.1})
    updates = train(trainer, start, [0, 1, 2])
    assert updates.weights["weight"][:, 0, 0].tolist() == pytest.approx(
        [1.38, 1.175, 113 / 90], abs=1e-12
    )
    assert updates.sizes.tolist() == [1, 2, 3]
    assert updates.steps.tolist() == [2, 2, 2]
    assert updates.losses[0].item() == pytest.approx(1.81, abs=1e-12)
    merged, memory, _ = Average().apply(start, updates, {})
    assert merged["weight"].item() == pytest.approx((1.38 + 2.35 + 113 / 30) / 6, abs=1e-12)
    assert memory == {}


def descend(
    weight: Fraction,
    pairs: list[tuple[int, int]],
    steps: int,
    lr: Fraction,
    momentum: Fraction,
    decay: Fraction,
) -> Fraction:
    """PyTorch's gradient descent: v = momentum v + g + decay w, w = w - lr v, v = 0 at first."""
    velocity = Fraction(0)
    for _ in range(steps):
        gradient = sum(x * (weight * x - y) for x, y in pairs) / Fraction(len(pairs))
        velocity = momentum * velocity + gradient + decay * weight
        weight = weight - lr * velocity
    return weight


OPTIMIZERS = [("0", "0"), ("9/10", "0"), ("0", "1/8"), ("9/10", "1/8")]


@pytest.mark.parametrize(("momentum", "decay"), OPTIMIZERS)
@pytest.mark.parametrize("lr_decay", ["1", "1/2"])
def test_four_rounds_with_momentum_and_weight_decay(momentum: str, decay: str, lr_decay: str):
    """Momentum starts at zero for each client and round; the learning rate decays by round."""
    options = {
        "momentum": float(Fraction(momentum)),
        "weight_decay": float(Fraction(decay)),
        "lr_decay": float(Fraction(lr_decay)),
    }
    trainer, weights = quadratic({"J": "J3", "batch": 10, "lr": 0.0625, **options})
    exact = Fraction(1)
    for round in range(1, 5):
        updates = train(trainer, weights, [0, 1, 2], round)
        weights, _, _ = Average().apply(weights, updates, {})
        lr = Fraction(1, 16) * Fraction(lr_decay) ** (round - 1)
        local = [
            descend(exact, pairs, 3, lr, Fraction(momentum), Fraction(decay)) for pairs in CLIENTS
        ]
        exact = sum(
            len(pairs) * weight for pairs, weight in zip(CLIENTS, local, strict=True)
        ) / Fraction(6)
        assert updates.weights["weight"][:, 0, 0].tolist() == pytest.approx(
            [float(weight) for weight in local], abs=1e-12
        )
        assert weights["weight"].item() == pytest.approx(float(exact), abs=1e-12)


def test_each_optimizer_setting_changes_the_quadratic():
    result = {
        descend(Fraction(1), CLIENTS[1], 3, Fraction(1, 16), Fraction(momentum), Fraction(decay))
        for momentum, decay in OPTIMIZERS
    }
    assert len(result) == 4


def updates_of(models: list[dict[str, Tensor]], sizes: list[int]) -> Updates:
    count = len(sizes)
    return Updates(
        stack(models),
        torch.tensor(sizes, dtype=torch.float64),
        torch.ones(count, dtype=torch.int64),
        torch.zeros(count),
    )


def test_the_mean_is_weighted_by_size():
    """Sizes 1, 3 and 4: (1 * 8 + 3 * 0 + 4 * 2) / 8 = 2 and (1 * 0 + 3 * 16 + 4 * -4) / 8 = 4."""
    models = [
        {"a": torch.tensor([8.0, 0.0])},
        {"a": torch.tensor([0.0, 16.0])},
        {"a": torch.tensor([2.0, -4.0])},
    ]
    merged, _, _ = Average().apply({}, updates_of(models, [1, 3, 4]), {})
    assert merged["a"].tolist() == [2.0, 4.0]
    assert merged["a"].dtype == torch.float32


def test_integer_buffers_stay_integers():
    """A batch counter: (1 * 4 + 3 * 8) / 4 = 7."""
    models = [
        {"count": torch.tensor(4), "weight": torch.tensor([1.0])},
        {"count": torch.tensor(8), "weight": torch.tensor([2.0])},
    ]
    merged, _, _ = Average().apply({}, updates_of(models, [1, 3]), {})
    assert merged["count"].dtype == torch.int64
    assert merged["count"].item() == 7
    assert merged["weight"].tolist() == [1.75]


def test_mean_is_the_weighted_sum_for_any_shares():
    rng = np.random.default_rng(0)
    rows, shares = rng.normal(size=(5, 2, 3)), rng.normal(size=5)
    models = [{"a": torch.from_numpy(row)} for row in rows]
    actual = updates_of(models, [1] * 5).mean(torch.from_numpy(shares))["a"].numpy()
    expected = sum(share * row for share, row in zip(shares, rows, strict=True))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(
        updates_of(models, [1] * 5).client_weights(3)["a"].numpy(), rows[3]
    )


def test_equal_counters_survive_averaging():
    """Sizes 1, 1 and 4 make shares that sum to 0.999...; the mean of 5, 5 and 5 is still 5."""
    sizes = torch.tensor([1.0, 1.0, 4.0], dtype=torch.float64)
    updates = Updates({"counter": torch.tensor([5, 5, 5])}, sizes, torch.ones(3), torch.zeros(3))
    assert updates.mean(sizes / sizes.sum())["counter"].item() == 5


def test_validation_samples_are_evaluated_in_the_planned_rounds():
    """Training samples 0 to 4, in rounds 1, 2, 4 and the last."""
    task = small_task(rounds=5, validation=(0, 1, 2, 3, 4), evaluate_every="1 until 2, 2")
    results = {}
    for state in Federated().rounds(task, Federated().begin(task)):
        outputs = functional_call(
            task.model, state.weights, task.train_samples.inputs(torch.arange(5))
        )
        right = outputs.argmax(dim=1) == task.train_samples.labels[:5]
        results[state.round] = (
            float(cross_entropy(outputs, task.train_samples.labels[:5])),
            float(right.double().mean()),
        )
    history = state.history.metrics
    assert [round for round, _ in history["test_loss"]] == [1, 2, 4, 5]
    assert history["validation_loss"] == [
        (round, pytest.approx(results[round][0])) for round in (1, 2, 4, 5)
    ]
    assert history["validation_accuracy"] == [(round, results[round][1]) for round in (1, 2, 4, 5)]
    assert len({value for _, value in history["validation_loss"]}) == 4


def test_without_validation_samples_there_are_no_validation_metrics():
    task = small_task()
    state = run(task)
    assert not [name for name in state.history.metrics if "validation" in name]
