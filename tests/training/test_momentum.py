"""FedAvgM: numbers by hand, and its limits (no momentum, an unreachable clipping norm)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from cohort.training.servers import Average, Momentum
from cohort.training.updates import Updates, Weights, stack
from tests.training.small_task import run, small_task

START = {
    "a": torch.tensor([1.0, 2.0], dtype=torch.float64),
    "b": torch.tensor([[0.5]], dtype=torch.float64),
}


def updates(*moves: tuple[float, float, float], sizes: tuple[float, ...] = (1, 3)) -> Updates:
    """Updates of clients that moved from the start by these amounts."""
    clients = [
        {"a": START["a"] + torch.tensor(move[:2]).double(), "b": START["b"] + move[2]}
        for move in moves
    ]
    return Updates(
        stack(clients),
        torch.tensor(sizes, dtype=torch.float64),
        torch.tensor([1, 1]),
        torch.zeros(2),
    )


def values(weights: Weights) -> list[float]:
    return [*weights["a"].tolist(), weights["b"].item()]


def test_two_rounds_by_hand():
    """Mean update (1 * (4, 0, 8) + 3 * (0, 4, 0)) / 4 = (1, 3, 2). The velocity is that, then half
    of it plus that again."""
    rule = Momentum(beta=0.5, lr=0.1)
    weights, memory, facts = rule.apply(
        START, updates((4, 0, 8), (0, 4, 0)), rule.begin(START, dict)
    )
    assert values(weights) == pytest.approx([1.1, 2.3, 0.7])
    assert values(memory) == pytest.approx([1, 3, 2])
    assert facts == {"clipped_fraction": 0.0, "largest_update": pytest.approx(math.sqrt(80))}
    weights, memory, _ = rule.apply(START, updates((4, 0, 8), (0, 4, 0)), memory)
    assert values(memory) == pytest.approx([1.5, 4.5, 3])
    assert values(weights) == pytest.approx([1.15, 2.45, 0.8])


def test_updates_are_clipped_by_the_norm_over_all_weights():
    """(2, 3, 6) has norm 7 and is clipped to (1, 1.5, 3); (0, 3, 0) stays: the mean is
    (1/4, (1.5 + 9) / 4, 3/4)."""
    rule = Momentum(beta=0.0, clip=3.5)
    weights, _, facts = rule.apply(START, updates((2, 3, 6), (0, 3, 0)), rule.begin(START, dict))
    assert values(weights) == pytest.approx([1.25, 2 + 10.5 / 4, 0.5 + 0.75])
    assert facts == {"clipped_fraction": 0.5, "largest_update": pytest.approx(7)}


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_without_momentum_it_is_fedavg_bit_for_bit(precision: str):
    results = []
    for server in (Average(), Momentum(beta=0.0), Momentum(beta=0.0, clip=1e9)):
        task = small_task(server=server, rounds=6, precision=precision, lr=0.3)
        state = run(task)
        results.append(state)
    for other in results[1:]:
        assert all(
            torch.equal(results[0].weights[name], other.weights[name]) for name in other.weights
        )
        assert other.history.metrics["test_loss"] == results[0].history.metrics["test_loss"]


def test_momentum_changes_the_second_round_and_not_the_first():
    losses = {}
    for beta in (0.0, 0.8):
        task = small_task(server=Momentum(beta=beta), rounds=2, lr=0.3)
        state = run(task)
        losses[beta] = [loss for _, loss in state.history.metrics["test_loss"]]
        assert [round for round, _ in state.history.metrics["clipped_fraction"]] == [1, 2]
    assert losses[0.0][0] == losses[0.8][0]
    assert losses[0.0][1] != losses[0.8][1]


def test_norms_match_numpy():
    rng = np.random.default_rng(0)
    moves = rng.normal(size=(2, 3))
    distances = updates(*map(tuple, moves)).distances(START)
    np.testing.assert_allclose(distances.numpy(), np.linalg.norm(moves, axis=1), rtol=1e-12)
