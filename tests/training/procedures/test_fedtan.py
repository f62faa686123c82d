"""FedTAN: its shared batch normalization and first step by hand and by autograd, its relation to
FedAvg, costs, and what it refuses."""

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cohort.models import MODELS
from cohort.training.objectives import FedProx
from cohort.training.procedures.fedtan import FirstStepTogether, LockStep
from cohort.training.task import RunState, Task
from cohort.training.updates import size_in_bytes
from tests.training.small_task import local_batches, run, seeded, small_task, train

SIZES = (7, 4, 9)
COUNTS = (4, 1, 7)


def normalized_network() -> nn.Module:
    """A small convolutional network with two batch normalizations, for 8x8 pixels and three classes."""
    convolution = partial(nn.Conv2d, 1, 4, 3, stride=2), partial(nn.BatchNorm2d, 4), nn.ReLU
    head = nn.Flatten, partial(nn.BatchNorm1d, 36), partial(nn.Linear, 36, 3)
    return seeded(12, *convolution, *head)


def task_of(procedure: str = "fedtan", **changes: Any) -> Task:
    defaults = {"sizes": SIZES, "J": "J2e", "batch": 4, "lr": 0.05, "rounds": 2}
    return small_task(model=normalized_network(), procedure=procedure, **(defaults | changes))


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


def assert_same_weights(actual: RunState, expected: RunState) -> None:
    for name, tensor in expected.weights.items():
        assert_close(actual.weights[name], tensor)


# batch normalization of several clients


def batches(*shape: int, seed: int = 5, counts: tuple[int, ...] = COUNTS) -> list[Tensor]:
    """A batch for each client, whose means and deviations differ."""
    rng = np.random.default_rng(seed)
    drawn = (rng.normal(client, 1 + client, (count, *shape)) for client, count in enumerate(counts))
    return [torch.from_numpy(values) for values in drawn]


SHAPES = {"resnet20": (3, 8, 8), "resnet9": (1, 8, 8), "table rows": (6,)}


def network_of(name: str) -> nn.Module:
    """A network in float64 that has already seen some batches."""
    torch.manual_seed(6)
    if name in MODELS:
        network = MODELS[name]().build(SHAPES[name], 3).double()
    else:
        layers = nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)
        network = nn.Sequential(*layers).double()
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.uniform_(layer.bias, -0.5, 0.5)
    network.train()(torch.randn(5, *SHAPES[name], dtype=torch.float64))
    return network


def projected(outputs: Tensor, seed: int) -> Tensor:
    """Numbers of which each row gives one, as losses do."""
    torch.manual_seed(seed)
    return (outputs * torch.randn_like(outputs)).square().sum(dim=1)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("counts", [(4, 4, 4), (12,), (1, 1)])
def test_with_equal_batches_it_is_batch_normalization_of_the_union(
    name: str, counts: tuple[int, ...]
):
    """Outputs, gradients of inputs and, summed over clients, of weights; running statistics of every client."""
    network, inputs = network_of(name), batches(*SHAPES[name], counts=counts)
    networks = [copy.deepcopy(network) for _ in counts]
    union = torch.cat(inputs).requires_grad_()
    expected = network(union)
    projected(expected, 7).sum().backward()

    own = [part.clone().requires_grad_() for part in inputs]
    actual = torch.cat(LockStep(networks)(own))
    projected(actual, 7).sum().backward()
    assert_close(actual, expected)
    assert_close(torch.cat([part.grad for part in own]), union.grad)
    every = zip(*(network.parameters() for network in networks), strict=True)
    for parameter, clients in zip(network.parameters(), every, strict=True):
        assert_close(sum(client.grad for client in clients), parameter.grad)
    for part in networks:
        for buffer, other in zip(part.buffers(), network.buffers(), strict=True):
            assert_close(buffer, other)


# rounds


@pytest.mark.parametrize(
    "changes",
    [{}, {"weight_decay": 0.1, "clip": 0.5}, {"augmentation": "crop-flip"}, {"J": "J1"}],
    ids=str,
)
def test_one_client_trains_as_in_fedavg(changes: dict[str, Any]):
    """All statistics are its own; also with decayed weights, clipped gradients, augmentation."""
    actual, expected = (
        run(task_of(procedure, sizes=(9,), **changes)) for procedure in ("fedtan", "federated")
    )
    assert_same_weights(actual, expected)
    for metric in ("train_loss", "test_accuracy", "test_loss", "update_norm"):
        pair = actual.history.metrics[metric], expected.history.metrics[metric]
        np.testing.assert_allclose(*pair, rtol=1e-9)
    assert actual.history.cost["client_steps"] == expected.history.cost["client_steps"]


def plain_averages(network: nn.Module, inputs: list[Tensor]) -> list[Tensor]:
    """The network's outputs for each client, normalized by averages of the clients' own means:
    plain tensor algebra through which autograd finds its way."""
    for layer in network:
        if not isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            inputs = [layer(own) for own in inputs]
            continue
        dims = (0, *range(2, inputs[0].dim()))
        mean = torch.stack([own.mean(dim=dims, keepdim=True) for own in inputs]).mean(dim=0)
        centered = [own - mean for own in inputs]
        squares = [own.square().mean(dim=dims, keepdim=True) for own in centered]
        deviation = (torch.stack(squares).mean(dim=0) + layer.eps).sqrt()
        scale, shift = (own.view_as(mean[0]) for own in (layer.weight, layer.bias))
        inputs = [own / deviation * scale + shift for own in centered]
    return inputs


def first_batches(task: Task) -> list[Tensor]:
    """The places of each client's first batch among all samples."""
    results = []
    for client, own in enumerate(task.shards.indices):
        first, *_ = local_batches(task, client, round=1)
        results.append(torch.from_numpy(own[first]))
    return results


def test_the_mean_of_all_first_steps_is_a_step_on_the_mean_loss():
    """The gradient of that mean loss goes through the shared statistics. Later steps show it in the weights."""
    task = task_of(J="J1", rounds=1, sizes=(5, 3, 1))
    start, samples = task.initial_weights(), task.train_samples
    updates = train(FirstStepTogether(task), start, range(3))
    network, places = normalized_network(), first_batches(task)
    assert [len(own) for own in places] == [4, 3, 1]
    outputs = plain_averages(network, [samples.inputs(own) for own in places])
    pairs = zip(outputs, places, strict=True)
    losses = torch.stack([cross_entropy(scores, samples.labels[own]) for scores, own in pairs])
    losses.mean().backward()
    torch.testing.assert_close(updates.losses, losses.detach(), rtol=1e-10, atol=0)
    for name, parameter in network.named_parameters():
        expected = parameter.detach() - 0.05 * parameter.grad
        assert_close(updates.weights[name].mean(dim=0), expected)
        assert (updates.weights[name][0] - updates.weights[name][1]).abs().max() > 1e-5


def test_later_steps_are_local_and_momentum_begins_anew():
    """They continue each client's first step by a plain loop of PyTorch's SGD."""
    task = task_of(J="J3", momentum=0.9, rounds=1, sizes=(8, 8))
    start = task.initial_weights()
    short = replace(task, settings=replace(task.settings, J="J1"))
    first, whole = (train(FirstStepTogether(variant), start, range(2)) for variant in (short, task))
    for client, own in enumerate(task.shards.indices):
        network = copy.deepcopy(task.model)
        network.load_state_dict(first.client_weights(client))
        optimizer = torch.optim.SGD(network.train().parameters(), lr=0.05, momentum=0.9)
        for batch in local_batches(task, client, round=1)[1:]:
            places = torch.from_numpy(own[batch])
            optimizer.zero_grad()
            scores = network(task.train_samples.inputs(places))
            cross_entropy(scores, task.train_samples.labels[places]).backward()
            optimizer.step()
        for name, tensor in network.state_dict().items():
            assert_close(whole.client_weights(client)[name], tensor)
    assert whole.steps.tolist() == [3, 3]


def test_a_proximal_term_does_not_change_the_first_step():
    plain, other = (run(task_of(J="J1", objective=own)) for own in (None, FedProx(mu=5.0)))
    assert_same_weights(plain, other)
    plain, other = (run(task_of(J="J3", objective=own)) for own in (None, FedProx(mu=5.0)))
    name = "5.weight"
    assert not torch.allclose(plain.weights[name], other.weights[name])


def test_traffic():
    """Each client moves the model once in each direction, and the statistics of 4 + 36 channels:
    two numbers of eight bytes per channel forward and two backward, in both directions."""
    task = task_of(rounds=1)
    state, model = run(task), size_in_bytes(task.initial_weights())
    names = "model", "batch_statistics", "gradients_of_statistics"
    up_and_down = dict(zip(names, (model, 2 * 8 * 40, 2 * 8 * 40), strict=True))
    per_client = 3 * sum(up_and_down.values())
    assert {name: result.tolist() for name, result in state.history.traffic.items()} == {
        name: [3 * size, 3 * size, 0] for name, size in up_and_down.items()
    }
    assert state.history.cost["bytes_up"] == [(1, per_client)]
    assert state.history.cost["bytes_down"] == [(1, per_client)]


def test_a_client_without_samples_shares_nothing():
    with_empty, without = (run(task_of(sizes=sizes)) for sizes in ((7, 4, 9, 0), SIZES))
    assert_same_weights(with_empty, without)
    model = size_in_bytes(without.weights)
    up = [amount for _, amount in with_empty.history.cost["bytes_up"]]
    assert up == [amount + model for _, amount in without.history.cost["bytes_up"]]
