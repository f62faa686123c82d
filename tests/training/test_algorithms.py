"""The papers' algorithms, written out as loops over lists of tensors, against whole runs; and the
parts of objectives and server rules that such a loop does not reach, by hand."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from cohort.training.objectives import CrossEntropy, FedLC, FedProx, FedRS, Objective
from cohort.training.servers import Average, FedNova, Momentum, Scaffold
from cohort.training.task import Task
from cohort.training.updates import LocalWork, Updates, stack
from tests.training.small_task import run, small_model, small_task

Tensors = list[Tensor]


def combined(shares: list[float], models: list[Tensors]) -> Tensors:
    """The sum of models, weighted by shares."""
    columns = zip(*models, strict=True)
    return [sum(s * w for s, w in zip(shares, column, strict=True)) for column in columns]


def gradients_of(task: Task, weights: Tensors, indices: Any, start: Tensors, mu: float) -> Tensors:
    """The gradients of the mean cross-entropy plus FedProx's term."""
    local = [weight.clone().requires_grad_() for weight in weights]
    names = [name for name, _ in task.model.named_parameters()]
    chosen = torch.as_tensor(indices)
    inputs = task.train_samples.inputs(chosen)
    outputs = functional_call(task.model, dict(zip(names, local, strict=True)), inputs)
    loss = cross_entropy(outputs, task.train_samples.labels[chosen])
    for weight, begun in zip(local, start, strict=True):
        loss = loss + mu / 2 * (weight - begun).square().sum()
    return list(torch.autograd.grad(loss, local))


def run_literally(
    task: Task,
    *,
    mu: float = 0.0,
    nova: bool = False,
    scaffold: bool = False,
    beta: float = 0.0,
    server_lr: float = 1.0,
) -> Tensors:
    """All clients take part in each round."""
    settings, count = task.settings, len(task.sizes)
    weights = [parameter.detach().clone() for parameter in task.model.parameters()]
    zeros = [torch.zeros_like(weight) for weight in weights]
    ours, theirs, server_velocity = zeros, [zeros] * count, zeros
    shares = (task.sizes / task.sizes.sum()).tolist()
    for round in range(1, settings.rounds + 1):
        lr, moves, steps, new = settings.lr * settings.lr_decay ** (round - 1), [], [], []
        for client, indices in enumerate(task.shards.indices):
            work = LocalWork(client=client, round=round, weights={}, samples=indices, lr=lr)
            local, velocity = weights, zeros
            batches = [indices[positions] for _, positions in work.steps(settings)]
            for batch in batches:
                gradients = gradients_of(task, local, batch, weights, mu)
                changes = zip(gradients, local, velocity, strict=True)
                decay, keep = settings.weight_decay, settings.momentum
                velocity = [keep * v + g + decay * w for g, w, v in changes]
                parts = zip(local, velocity, ours, theirs[client], strict=True)
                local = [w - lr * v + lr * (own - c) for w, v, c, own in parts]
            moves.append([after - w for after, w in zip(local, weights, strict=True)])
            steps.append(len(batches))
            parts = zip(theirs[client], ours, moves[-1], strict=True)
            new.append([own - c - move / (len(batches) * lr) for own, c, move in parts])
        if scaffold:
            changed = [sum(rows) for rows in zip(*new, strict=True)]
            before = [sum(rows) for rows in zip(*theirs, strict=True)]
            parts = zip(ours, changed, before, strict=True)
            ours = [c + (after - old) / count for c, after, old in parts]
            theirs = new
        factors = shares
        if nova:
            mean_steps = sum(s * n for s, n in zip(shares, steps, strict=True))
            factors = [s * mean_steps / n for s, n in zip(shares, steps, strict=True)]
        parts = zip(server_velocity, combined(factors, moves), strict=True)
        server_velocity = [beta * v + move for v, move in parts]
        weights = [w + server_lr * v for w, v in zip(weights, server_velocity, strict=True)]
    return weights


ALGORITHMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fedavg": ({}, {}),
    "a convolutional network": ({"model": small_model("small-cnn")}, {}),
    "one step on all samples": ({"J": "J1", "batch": 1000}, {}),
    "momentum of clients": ({"momentum": 0.9, "weight_decay": 0.125}, {}),
    "fedprox": ({"objective": FedProx(mu=0.7)}, {"mu": 0.7}),
    "fednova": ({"server": FedNova()}, {"nova": True}),
    "scaffold": ({"server": Scaffold()}, {"scaffold": True}),
    "server": ({"server": Momentum(beta=0.8, lr=0.5)}, {"beta": 0.8, "server_lr": 0.5}),
}


@pytest.mark.parametrize("J", ["J3", "J2e"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_runs_are_the_papers_algorithms(name: str, J: str):
    changes, options = ALGORITHMS[name]
    settings = {"J": J, "batch": 3, "rounds": 3, "lr": 0.2, "lr_decay": 0.5}
    task = small_task(**(settings | changes))
    begun, expected = task.initial_weights(), run_literally(task, **options)
    if options and (name, J) != ("fednova", "J3"):  # with equal steps it is FedAvg
        plain = run_literally(task)
        assert any((a - b).abs().max() > 1e-4 for a, b in zip(plain, expected, strict=True))
    actual = run(task).weights
    for (key, _), weight in zip(task.model.named_parameters(), expected, strict=True):
        torch.testing.assert_close(actual[key], weight, rtol=1e-9, atol=1e-12)
        assert (weight - begun[key]).abs().max() > 1e-4  # there was something to get wrong


SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mu 0": ({"objective": FedProx(mu=0.0)}, {}),
    "no momentum": ({"server": Momentum(beta=0.0)}, {}),
    "no update as long as that": ({"server": Momentum(beta=0.0, clip=1e9)}, {}),
    "equal steps": ({"server": FedNova()}, {"momentum": 0.9}),
    "scaffold with one client": (
        {"server": Scaffold(unit="step")},
        {"sizes": (9,), "cohort": 1, "momentum": 0.9, "lr_decay": 0.9},
    ),
    "alpha 1": ({"objective": FedRS(alpha=1.0)}, {}),
}


@pytest.mark.parametrize("name", SAME)
def test_special_cases_are_fedavg(name: str):
    parts, settings = SAME[name]
    shared = {"J": "J3", "rounds": 4, "lr": 0.3, **settings}
    plain, other = run(small_task(**shared)).weights, run(small_task(**shared, **parts)).weights
    is_exact = name in ("mu 0", "no momentum", "no update as long as that")
    for key, tensor in plain.items():
        torch.testing.assert_close(other[key], tensor, rtol=1e-10, atol=0 if is_exact else 1e-12)
        assert not is_exact or torch.equal(other[key], tensor)


def updates(
    rows: list[list[float]], sizes: list[float], steps: list[int], **settings: Any
) -> Updates:
    """Updates of clients 0, 1, ... of four, with one weight of two numbers."""
    stacked = {"w": torch.tensor(rows, dtype=torch.float64)}
    reports = torch.tensor(sizes).double(), torch.tensor(steps), torch.zeros(len(rows))
    options: dict[str, Any] = {"lr": 0.5, **settings}
    return Updates(stacked, *reports, clients=tuple(range(len(rows))), total=4, **options)


START = {"w": torch.ones(2, dtype=torch.float64)}


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_effective_steps_are_how_far_sgd_moves_on_a_gradient_of_one(momentum: float, steps: int):
    position = velocity = 0.0
    for _ in range(steps):
        velocity = momentum * velocity + 1
        position += velocity
    actual = updates([[0.0, 0.0]], [1], [steps], momentum=momentum).effective_steps()
    assert actual.item() == pytest.approx(position, abs=1e-12)


def test_fednova_measures_the_sum_of_its_factors():
    """Shares of 3/4 and 1/4 with 2 and 8 steps, 3.5 on average; 5 with equal shares."""
    merged = FedNova().apply(START, updates([[-1, 1], [1, -3]], [3, 1], [2, 8]), {})
    expected = Fraction(3, 4) * Fraction(7, 2) / 2 + Fraction(1, 4) * Fraction(7, 2) / 8
    assert merged.measured["nova_factor"] == pytest.approx(float(expected))
    of_forty = updates([[-1, 1], [1, -3]], [3, 1], [2, 8], samples=40)  # a tenth of all
    merged = FedNova(shares="all").apply(START, of_forty, {})
    assert merged.measured["nova_factor"] == pytest.approx(float(expected) / 100)
    merged = FedNova(shares="equal").apply(START, of_forty, {})
    assert merged.measured["nova_factor"] == pytest.approx(0.5 * 5 / 2 + 0.5 * 5 / 8)
    halves = {"samples": 40, "factors": torch.tensor([0.5, 0.5]).double()}  # stand for shares
    weighed = updates([[-1, 1], [1, -3]], [3, 1], [2, 2], **halves)
    for shares in ("all", "equal"):
        assert FedNova(shares=shares).apply(START, weighed, {}).measured["nova_factor"] == 1


def test_scaffold_with_a_cohort_from_a_random_start_by_hand():
    """Two of four clients, learning rate 1/2, all variates begin at [4, -1]. From [1, 1] client 0
    moves to [0, 1] in 2 steps, client 1 to [1, -3] in 4: their variates become [1, 0] and [0, 2];
    the server's moves by a quarter of [1, 0] - [4, -1] and of [0, 2] - [4, -1], to [9/4, 0]."""
    rule, drawn = Scaffold(start="random"), {"w": torch.tensor([4.0, -1.0], dtype=torch.float64)}
    memory = rule.begin(START, redraw=lambda: drawn)
    assert rule.control_variate(memory, 0, 0.5)["w"].tolist() == [0, 0]
    merged = rule.apply(START, updates([[0, 1], [1, -3]], [1, 1], [2, 4]), memory)
    assert merged.weights["w"].tolist() == [0.5, -1.0], "the plain mean"
    expected = {"w/all": [2.25, 0], "w/start": [4, -1], "w/0": [1, 0], "w/1": [0, 2]}
    assert {name: tensor.tolist() for name, tensor in merged.memory.items()} == expected
    assert rule.control_variate(merged.memory, 1, 0.5)["w"].tolist() == [-2.25, 2]
    assert rule.control_variate(merged.memory, 3, 0.5)["w"].tolist() == [1.75, -1]
    moved = updates([[0, 1], [1, -3]], [1, 1], [2, 4])
    # by step they become [1/2, 0] and [0, 1], and the server's [17/8, -1/4]
    by_step = replace(rule, unit="step")
    memory_by_step = by_step.apply(START, moved, memory).memory
    assert by_step.control_variate(memory_by_step, 0, 0.25)["w"].tolist() == [-6.5, 1]
    over_cohort = replace(rule, over="cohort").apply(START, moved, memory)
    assert over_cohort.memory["w/all"].tolist() == [0.5, 1], "the mean of [1, 0] and [0, 2]"


@pytest.mark.parametrize("unit", ["gradient", "step"])
def test_scaffold_removes_the_drift_of_constant_gradients_despite_momentum(unit: Any):
    """From the second round on both clients go where the mean gradient leads, at any rate."""
    gradients, momentum = torch.tensor([[1.0, -2.0], [3.0, 0.5]], dtype=torch.float64), 0.9
    rule, rows = Scaffold(unit=unit), torch.empty(2, 2, dtype=torch.float64)
    memory, weights = rule.begin(START, redraw=dict), START
    for lr in (0.5, 0.5, 0.5) if unit == "step" else (0.5, 0.4, 0.1):
        for client, gradient in enumerate(gradients):
            weight, velocity = weights["w"].clone(), torch.zeros(2, dtype=torch.float64)
            correction = rule.control_variate(memory, client, lr)["w"]
            for _ in range(6):
                velocity = momentum * velocity + gradient
                weight += lr * correction - lr * velocity
            rows[client] = weight
        moved = replace(updates(rows.tolist(), [1, 1], [6, 6], lr=lr), total=2)
        assert (lr == 0.5 and not memory["w/all"].any()) or torch.allclose(rows[0], rows[1])
        weights, memory, _ = rule.apply(weights, moved, memory)


def test_updates_are_clipped_by_the_norm_over_all_weights():
    """(2, 3, 6) has norm 7 and is clipped to (1, 1.5, 3); (0, 3, 0) stays: with sizes 1 and 3 the
    mean is (1/4, (1.5 + 9) / 4, 3/4)."""
    start = {"a": torch.tensor([1.0, 2.0]).double(), "b": torch.tensor([0.5]).double()}
    moves = [{"a": [2.0, 3.0], "b": [6.0]}, {"a": [0.0, 3.0], "b": [0.0]}]
    models = [{name: start[name] + torch.tensor(move[name]) for name in start} for move in moves]
    reports = torch.tensor([1.0, 3.0]).double(), torch.tensor([1, 1]), torch.zeros(2)
    rule, clients = Momentum(beta=0.0, clip=3.5), Updates(stack(models), *reports)
    assert clients.distances(start).tolist() == pytest.approx([7, 3])
    weights, _, measured = rule.apply(start, clients, rule.begin(start, dict))
    assert weights["a"].tolist() == pytest.approx([1.25, 2 + 10.5 / 4])
    assert weights["b"].tolist() == pytest.approx([0.5 + 0.75])
    assert measured == {"clipped_fraction": 0.5, "largest_update": pytest.approx(7)}


def test_integer_buffers_are_rounded_and_stay_integers():
    """(1 * 4 + 3 * 8) / 4 = 7; sizes 1, 1 and 4 make shares that sum to 0.999..., and the mean of 5, 5 and 5 is still 5."""
    for counts, sizes, mean in (([4, 8], [1, 3], 7), ([5, 5, 5], [1, 1, 4], 5)):
        reports = torch.tensor(sizes).double(), torch.ones(len(sizes)), torch.zeros(len(sizes))
        merged, _, _ = Average().apply({}, Updates({"n": torch.tensor(counts)}, *reports), {})
        assert merged["n"].dtype == torch.int64 and merged["n"].item() == mean


LABELS = torch.tensor([0, 0, 1, 0, 1, 1, 1])  # three of class 0, four of class 1, none of class 2
BALANCED = torch.tensor([0, 1, 2, 0, 1, 2])
INPUTS = torch.tensor([[1.0, 2.0], [-1.0, 0.5]], dtype=torch.float64)
TARGETS = torch.tensor([0, 1])
OUTPUTS = [[1.1, 1.8, 0.3], [-0.9, 0.3, -2.2]]
MARGINS = [3**-0.25, 4**-0.25, 100]


@pytest.mark.parametrize(
    ("objective", "labels", "logits"),
    [
        # outputs without bias are [1, 2, 0] and [-1, .5, -2.5]; those of the missing class 2 are
        # halved, its bias is not
        (FedRS(alpha=0.5), LABELS, [[1.1, 1.8, 0.3], [-0.9, 0.3, -0.95]]),
        # margins are twice 3^-1/4 and 4^-1/4; the logit of the missing class drops by 100
        (FedLC(tau=2.0), LABELS, np.subtract(OUTPUTS, np.multiply(2, MARGINS))),
        # balanced classes: FedRS restricts nothing, FedLC shifts all logits equally
        (FedRS(alpha=0.2), BALANCED, OUTPUTS),
        (FedLC(tau=1.0), BALANCED, OUTPUTS),
        (CrossEntropy(), LABELS, OUTPUTS),
    ],
)
def test_calibrated_losses_by_hand(objective: Objective, labels: Tensor, logits: list[list[float]]):
    layer = nn.Linear(2, 3).double()
    layer.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]], dtype=torch.float64)
    layer.bias.data = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64)
    statistics = objective.label_statistics(labels.bincount(minlength=3).double())
    actual = objective.losses(layer(INPUTS), TARGETS, statistics, layer.bias)
    rows = zip(logits, TARGETS.tolist(), strict=True)
    expected = [math.log(sum(map(math.exp, row))) - row[target] for row, target in rows]
    assert actual.tolist() == pytest.approx(expected, abs=1e-12)
