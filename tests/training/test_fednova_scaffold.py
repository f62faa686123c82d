"""FedNova and SCAFFOLD: numbers by hand, and the cases in which they equal FedAvg or SGD."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from cohort.training.servers import Average, FedNova, Scaffold, ServerRule
from cohort.training.state import RunState
from cohort.training.updates import Updates, Weights
from tests.training.small_task import run, small_task


def updates(
    rows: list[list[float]],
    sizes: list[float],
    steps: list[int],
    momentum: float = 0.0,
    lr: float = 0.5,
) -> Updates:
    """Updates of clients 0, 1, ... of four, with one weight of two numbers."""
    stacked = {"w": torch.tensor(rows, dtype=torch.float64)}
    known = torch.tensor(sizes, dtype=torch.float64), torch.tensor(steps), torch.zeros(len(rows))
    return Updates(
        stacked, *known, clients=tuple(range(len(rows))), total=4, lr=lr, momentum=momentum
    )


def state_after(server: ServerRule, rounds: int, **settings) -> RunState:
    return run(small_task(server=server, rounds=rounds, **settings))


def assert_same(mine: Weights, theirs: Weights) -> None:
    for name, tensor in mine.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_effective_steps_are_how_far_sgd_moves_on_a_gradient_of_one(momentum: float, steps: int):
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0, momentum=momentum)
    for _ in range(steps):
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()
    assert updates([[0.0, 0.0]], [1.0], [steps], momentum).effective_steps()[
        0
    ].item() == pytest.approx(-weight.item(), abs=1e-12)


def test_fednova_by_hand():
    """From [1, 1], client 0 (3 of 4 samples) moved [-2, 0] in 2 steps, client 1 [0, -4] in 8. Per
    step that is [-1, 0] and [0, -1/2]; the mean [-3/4, -1/8] times the mean step count, 3.5."""
    start = {"w": torch.ones(2, dtype=torch.float64)}
    merged = FedNova().apply(start, updates([[-1.0, 1.0], [1.0, -3.0]], [3.0, 1.0], [2, 8]), {})
    steps = Fraction(3, 4) * 2 + Fraction(1, 4) * 8
    assert merged.weights["w"].tolist() == pytest.approx(
        [float(1 - Fraction(3, 4) * steps), float(1 - Fraction(1, 8) * steps)]
    )
    assert merged.measured["nova_factor"] == pytest.approx(
        float(Fraction(3, 4) * steps / 2 + Fraction(1, 4) * steps / 8)
    )


def test_fednova_with_equal_steps_is_the_mean():
    settings = {"J": "J3", "rounds": 3, "momentum": 0.9}
    assert_same(
        state_after(FedNova(), **settings).weights, state_after(Average(), **settings).weights
    )
    unequal = {"J": "J2e", "rounds": 3}
    nova, mean = (state_after(server, **unequal).weights for server in (FedNova(), Average()))
    assert any((tensor - mean[name]).abs().max() > 1e-6 for name, tensor in nova.items())


def test_scaffold_by_hand():
    """Two of four clients, learning rate 1/2. From [1, 1] client 0 moves to [0, 1] in 2 steps,
    client 1 to [1, -3] in 4. All variates start at zero, so theirs become distance / (steps * lr),
    [1, 0] and [0, 2]; the server's grows by a quarter of each. In the second round both move
    [-1, -1] in one step: client 0's becomes c_0 - c + distance / lr = [1, 0] - [1/4, 1/2] + [2, 2].
    """
    rule, start = Scaffold(), {"w": torch.ones(2, dtype=torch.float64)}
    memory = rule.begin(start, redraw=dict)
    assert rule.control_variate(memory, 0)["w"].tolist() == [0, 0]
    merged = rule.apply(start, updates([[0.0, 1.0], [1.0, -3.0]], [1.0, 1.0], [2, 4]), memory)
    assert merged.weights["w"].tolist() == [0.5, -1.0], "the plain mean"
    assert {name: tensor.tolist() for name, tensor in merged.memory.items()} == {
        "w/all": [0.25, 0.5],
        "w/0": [1, 0],
        "w/1": [0, 2],
    }
    assert rule.control_variate(merged.memory, 1)["w"].tolist() == [-0.25, 1.5]
    assert rule.control_variate(merged.memory, 3)["w"].tolist() == [-0.25, -0.5], (
        "its own is still zero"
    )
    second = rule.apply(
        start, updates([[0.0, 0.0], [0.0, 0.0]], [1.0, 1.0], [1, 1]), merged.memory
    ).memory
    assert second["w/0"].tolist() == [1 - 0.25 + 2, 0 - 0.5 + 2]
    assert second["w/1"].tolist() == [0 - 0.25 + 2, 2 - 0.5 + 2]
    changes = np.array([[1.75, 1.5], [1.75, 1.5]])
    np.testing.assert_allclose(second["w/all"], np.array([0.25, 0.5]) + changes.sum(axis=0) / 4)


def test_scaffold_from_a_random_start_by_hand():
    """As above, but all variates begin at [4, -1]. The first two become [1, 0] and [0, 2] all the
    same; the server's moves by a quarter of [1, 0] - [4, -1] and of [0, 2] - [4, -1], to [9/4, 0],
    away from those of clients 2 and 3, which were not chosen."""
    rule, start = Scaffold(start="random"), {"w": torch.ones(2, dtype=torch.float64)}
    drawn = {"w": torch.tensor([4.0, -1.0], dtype=torch.float64)}
    memory = rule.begin(start, redraw=lambda: drawn)
    assert rule.control_variate(memory, 0)["w"].tolist() == [0, 0]
    merged = rule.apply(start, updates([[0.0, 1.0], [1.0, -3.0]], [1.0, 1.0], [2, 4]), memory)
    assert {name: tensor.tolist() for name, tensor in merged.memory.items()} == {
        "w/all": [2.25, 0],
        "w/start": [4, -1],
        "w/0": [1, 0],
        "w/1": [0, 2],
    }
    assert rule.control_variate(merged.memory, 1)["w"].tolist() == [-2.25, 2]
    assert rule.control_variate(merged.memory, 3)["w"].tolist() == [1.75, -1]


def test_the_start_of_scaffold_matters_only_to_cohorts():
    """After a round of all clients no variate holds anything of its start."""
    settings = {"J": "J3", "rounds": 4, "lr": 0.2, "momentum": 0.5}
    for cohort in (4, 2):
        zero, random = (
            state_after(Scaffold(start=start), cohort=cohort, **settings)
            for start in ("zero", "random")
        )
        apart = [(zero.weights[name] - random.weights[name]).abs().max() for name in zero.weights]
        assert max(apart) < 1e-12 if cohort == 4 else max(apart) > 1e-3


def test_scaffold_reach_estimates_the_gradient_despite_momentum():
    """A client with gradient [1, -2], with momentum and a correction after each step."""
    gradient, lr, momentum, steps = torch.tensor([1.0, -2.0], dtype=torch.float64), 0.5, 0.9, 6
    rule, start = Scaffold(estimate="reach"), {"w": torch.ones(2, dtype=torch.float64)}
    memory = {
        "w/all": torch.tensor([0.3, 0.1], dtype=torch.float64),
        "w/0": torch.tensor([-0.2, 0.7], dtype=torch.float64),
    }
    weight, velocity = start["w"].clone(), torch.zeros(2, dtype=torch.float64)
    for _ in range(steps):
        velocity = momentum * velocity + gradient
        weight = weight - lr * velocity + lr * rule.control_variate(memory, 0)["w"]
    result = rule.apply(
        start, updates([weight.tolist()], [1.0], [steps], momentum, lr), memory
    ).memory
    torch.testing.assert_close(result["w/0"], gradient)
    wrong = (
        Scaffold()
        .apply(start, updates([weight.tolist()], [1.0], [steps], momentum, lr), memory)
        .memory["w/0"]
    )
    assert (wrong / gradient > 2).all()


def test_the_random_start_is_another_network_of_the_same_model():
    task = small_task(server=Scaffold(start="random"))
    save(task.procedure.begin(task).server)  # refuses tensors that share memory
    first, drawn = task.initial_weights(), task.other_initial_weights()
    assert drawn.keys() == first.keys()
    for name, tensor in drawn.items():
        assert tensor.shape == first[name].shape and tensor.dtype == first[name].dtype
        assert not torch.equal(tensor, first[name])
    assert all(
        torch.equal(drawn[name], again) for name, again in task.other_initial_weights().items()
    )
    other = small_task(seed=1).other_initial_weights()
    assert not any(torch.equal(drawn[name], tensor) for name, tensor in other.items())


@pytest.mark.parametrize("estimate", ["steps", "reach"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_scaffold_with_one_client_is_sgd(estimate: str, momentum: float):
    """Its own control variate is the server's, so nothing is corrected."""
    settings = {"sizes": (9,), "J": "J2e", "rounds": 4, "momentum": momentum, "lr_decay": 0.9}
    mine = state_after(Scaffold(estimate=estimate), **settings).weights
    assert_same(mine, state_after(Average(), **settings).weights)


def test_a_scaffold_run_is_the_papers_algorithm():
    """Two rounds of all four clients with full batches, as plain loops over lists of tensors."""
    settings = {"J": "J3", "batch": 100, "rounds": 2, "lr": 0.2, "lr_decay": 0.5}
    task = small_task(server=Scaffold(), **settings)
    weights = [parameter.detach().clone() for parameter in task.model.parameters()]
    count = len(task.shards.indices)
    ours = [torch.zeros_like(weight) for weight in weights]
    theirs = [[torch.zeros_like(weight) for weight in weights] for _ in range(count)]
    for round_ in range(2):
        lr, models, before = 0.2 * 0.5**round_, [], [tensor.clone() for tensor in ours]
        for client, indices in enumerate(task.shards.indices):
            local = [weight.clone().requires_grad_() for weight in weights]
            for _ in range(3):
                gradients = torch.autograd.grad(
                    _loss(task, local, torch.from_numpy(indices)), local
                )
                moves = zip(local, gradients, before, theirs[client], strict=True)
                local = [
                    (w - lr * (g + c - own)).detach().requires_grad_() for w, g, c, own in moves
                ]
            ends = zip(theirs[client], before, weights, local, strict=True)
            new = [own - c + (w - end.detach()) / (3 * lr) for own, c, w, end in ends]
            ours = [
                c + (n - own) / count for c, n, own in zip(ours, new, theirs[client], strict=True)
            ]
            theirs[client] = new
            models.append([tensor.detach() for tensor in local])
        shares = task.sizes / task.sizes.sum()
        weights = [
            sum(share * model[layer] for share, model in zip(shares, models, strict=True))
            for layer in range(len(weights))
        ]
    result = state_after(Scaffold(), **settings).weights
    for (name, _), weight in zip(task.model.named_parameters(), weights, strict=True):
        torch.testing.assert_close(result[name], weight, rtol=1e-9, atol=1e-12)


def _loss(task, local: list[Tensor], indices: Tensor) -> Tensor:
    named = {
        name: tensor for (name, _), tensor in zip(task.model.named_parameters(), local, strict=True)
    }
    outputs = torch.func.functional_call(task.model, named, task.train_samples.inputs(indices))
    return torch.nn.functional.cross_entropy(outputs, task.train_samples.labels[indices])


def test_scaffold_sends_twice_the_bytes():
    mean, scaffold = (state_after(server, 2).history.cost for server in (Average(), Scaffold()))
    for way in ("bytes_up", "bytes_down"):
        assert [value for _, value in scaffold[way]] == [2 * value for _, value in mean[way]]
