"""Batch normalization shared by clients: by sums it is PyTorch's on the union of their batches, by
averages it is what the clients of FedTAN compute of each other's means."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cohort.models import MODELS
from cohort.training.procedures.fedtan import shared_norm
from cohort.training.procedures.fedtan.shared_norm import (
    LockStep,
    Weighting,
    equal_client_weights,
    equal_row_weights,
)

COUNTS = (4, 1, 7)
BOUND = 1e-10


def batches(*shape: int, seed: int = 5, counts: tuple[int, ...] = COUNTS) -> list[Tensor]:
    """A batch for each client, whose means and deviations differ."""
    rng = np.random.default_rng(seed)
    return [
        torch.from_numpy(rng.normal(client, 1 + client, (count, *shape)))
        for client, count in enumerate(counts)
    ]


def resnet20() -> nn.Module:
    return MODELS["resnet20"]().build((3, 8, 8), 3)


def perceptron() -> nn.Module:
    layers = nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)
    return nn.Sequential(*layers)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "a residual network": (resnet20, (3, 8, 8)),
    "ResNet-9": (lambda: MODELS["resnet9"]().build((1, 8, 8), 3), (1, 8, 8)),
    "one of table rows": (perceptron, (6,)),
}


def network_of(name: str) -> tuple[nn.Module, tuple[int, ...]]:
    """A network in float64 that has already seen some batches."""
    torch.manual_seed(6)
    build, shape = NETWORKS[name]
    network = build().double()
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.uniform_(layer.bias, -0.5, 0.5)
    network.train()(torch.randn(5, *shape, dtype=torch.float64))
    return network, shape


def projected(outputs: Tensor, seed: int) -> Tensor:
    """Numbers of which each row gives one, as losses do."""
    torch.manual_seed(seed)
    return (outputs * torch.randn_like(outputs)).square().sum(dim=1)


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=BOUND, atol=BOUND)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("counts", [COUNTS, (12,), (1, 1)])
def test_by_sums_it_is_batch_normalization_of_the_union(name: str, counts: tuple[int, ...]):
    """Outputs, gradients of inputs and, summed over clients, of weights; running statistics of
    every client."""
    network, shape = network_of(name)
    networks = [copy.deepcopy(network) for _ in counts]
    given = batches(*shape, counts=counts)
    union = torch.cat(given).requires_grad_()
    expected = network(union)
    projected(expected, 7).sum().backward()

    own = [part.clone().requires_grad_() for part in given]
    actual = torch.cat(LockStep(networks, equal_row_weights)(own))
    projected(actual, 7).sum().backward()
    assert_close(actual, expected)
    assert_close(torch.cat([part.grad for part in own]), union.grad)
    every = zip(*(network.parameters() for network in networks), strict=True)
    for parameter, clients in zip(network.parameters(), every, strict=True):
        assert_close(sum(client.grad for client in clients), parameter.grad)
    for part in networks:
        for buffer, other in zip(part.buffers(), network.buffers(), strict=True):
            assert_close(buffer, other)


def test_a_clients_gradients_are_those_of_its_own_rows():
    """Without batch normalization clients have nothing to do with each other."""
    torch.manual_seed(8)
    network = MODELS["resnet9-gn"]().build((1, 8, 8), 3).double()
    networks = [copy.deepcopy(network) for _ in COUNTS]
    given = batches(1, 8, 8)
    outputs = LockStep(networks, equal_client_weights)(given)
    torch.stack(
        [projected(own, client).mean() for client, own in enumerate(outputs)]
    ).sum().backward()
    for client, (own, batch) in enumerate(zip(networks, given, strict=True)):
        alone = copy.deepcopy(network)
        projected(alone(batch), client).mean().backward()
        for parameter, expected in zip(own.parameters(), alone.parameters(), strict=True):
            assert_close(parameter.grad, expected.grad)


def literal(
    given: list[np.ndarray], gradients: list[np.ndarray], eps: float
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray, np.ndarray]:
    """FedTAN's normalization of rows of channels, client by client: outputs, gradients of the
    inputs, and the averages of means and variances."""
    mean = np.mean([own.mean(axis=0) for own in given], axis=0)
    variance = np.mean([((own - mean) ** 2).mean(axis=0) for own in given], axis=0)
    deviation = np.sqrt(variance + eps)
    outputs = [(own - mean) / deviation for own in given]
    of_mean = np.mean([-(grad / deviation).sum(axis=0) for grad in gradients], axis=0)
    of_variance = np.mean(
        [
            -(grad * (own - mean) / (2 * deviation**3)).sum(axis=0)
            for own, grad in zip(given, gradients, strict=True)
        ],
        axis=0,
    )
    back = [
        grad / deviation + of_mean / len(own) + of_variance * 2 * (own - mean) / len(own)
        for own, grad in zip(given, gradients, strict=True)
    ]
    return outputs, back, mean, variance


def test_by_averages_it_is_what_clients_compute_one_by_one():
    """A layer of five channels, whose weights are 1 and biases 0, on a client of one row too."""
    layers = [nn.Sequential(nn.BatchNorm1d(5)).double() for _ in COUNTS]
    rng, given = np.random.default_rng(9), batches(5)
    gradients = [rng.normal(size=own.shape) for own in given]
    inputs = [own.clone().requires_grad_() for own in given]
    outputs = LockStep(layers, equal_client_weights)(inputs)
    torch.autograd.backward(outputs, [torch.from_numpy(grad) for grad in gradients])
    expected, back, mean, variance = literal([own.numpy() for own in given], gradients, 1e-5)
    for client in range(len(COUNTS)):
        assert_close(outputs[client], torch.from_numpy(expected[client]))
        assert_close(inputs[client].grad, torch.from_numpy(back[client]))
        norm = layers[client][0]
        actual = torch.from_numpy(gradients[client] * expected[client]).sum(dim=0)
        assert_close(norm.weight.grad, actual)
        assert_close(norm.bias.grad, torch.from_numpy(gradients[client]).sum(dim=0))
        assert_close(norm.running_mean, torch.from_numpy(0.1 * mean))
        # of 3 clients, every row of one with n rows has a weight of 1 by 3 n
        unbiased = variance / (1 - (1 / 4 + 1 + 1 / 7) / 9)
        assert_close(norm.running_var, torch.from_numpy(0.9 + 0.1 * unbiased))
        assert norm.num_batches_tracked == 1


@pytest.mark.parametrize("name", NETWORKS)
def test_by_averages_a_client_has_its_part_of_the_mean_losss_gradient(name: str):
    """By autograd through plain means: batches are repeated until all clients have equally many
    rows, which leaves each client's means as they are."""
    network, shape = network_of(name)
    networks, given = [copy.deepcopy(network) for _ in COUNTS], batches(*shape)
    outputs = LockStep(networks, equal_client_weights)(given)
    torch.stack(
        [projected(own, client).mean() for client, own in enumerate(outputs)]
    ).sum().backward()

    repeats = [28 // count for count in COUNTS]
    union = torch.cat(
        [own.repeat(times, *[1] * len(shape)) for own, times in zip(given, repeats, strict=True)]
    )
    together = network(union).split(28)
    losses = [
        projected(rows[:count], client).mean()
        for client, (rows, count) in enumerate(zip(together, COUNTS, strict=True))
    ]
    # the repeated rows of a client are equal, so its first ones stand for all in the mean
    every = torch.cat(
        [
            rows[:count].repeat(times, 1)
            for rows, count, times in zip(together, COUNTS, repeats, strict=True)
        ]
    )
    assert_close(every, torch.cat(together))
    torch.stack(losses).sum().backward()
    clients = zip(*(network.parameters() for network in networks), strict=True)
    for parameter, own in zip(network.parameters(), clients, strict=True):
        assert_close(sum(part.grad for part in own), parameter.grad)


def test_equal_batches_make_both_forms_the_same():
    network, shape = network_of("a residual network")
    given, prints = batches(*shape, counts=(3, 3)), []
    for weighting in (equal_row_weights, equal_client_weights):
        networks = [copy.deepcopy(network) for _ in given]
        torch.cat(LockStep(networks, weighting)(given)).square().sum().backward()
        prints.append([parameter.grad for own in networks for parameter in own.parameters()])
    for actual, expected in zip(*prints, strict=True):
        assert_close(actual, expected)


def test_unequal_batches_make_them_differ():
    network, shape = network_of("one of table rows")
    outputs = [
        torch.cat(LockStep([copy.deepcopy(network) for _ in COUNTS], weighting)(batches(*shape)))
        for weighting in (equal_row_weights, equal_client_weights)
    ]
    assert (outputs[0] - outputs[1]).abs().max() > 0.01


@pytest.mark.parametrize("weighting", [equal_row_weights, equal_client_weights])
def test_clients_send_a_number_for_each_channel(
    weighting: Weighting, monkeypatch: pytest.MonkeyPatch
):
    """Two sums of every client forward and two backward."""
    sent: list[tuple[int, ...]] = []
    plain = shared_norm._weighted_sum

    def noted(sums: list[Tensor], weights: list[float]) -> Tensor:
        sent.extend(tuple(own.shape) for own in sums)
        return plain(sums, weights)

    monkeypatch.setattr(shared_norm, "_weighted_sum", noted)
    layers = [nn.Sequential(nn.BatchNorm2d(5)).double() for _ in COUNTS]
    given = [own.requires_grad_() for own in batches(5, 2, 3)]
    torch.cat(LockStep(layers, weighting)(given)).square().sum().backward()
    assert sent == [(5,)] * 4 * len(COUNTS)
