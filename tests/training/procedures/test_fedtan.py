"""FedTAN: its first step by hand and by autograd, its relation to FedAvg, costs, and what it
refuses."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cohort.cell.planned import plan_file, write_plan
from cohort.commands.run import make_inputs, run_cell
from cohort.core.errors import UserError
from cohort.core.randomness import generator
from cohort.data.samples import Samples
from cohort.records.record import read
from cohort.selection.pools import Probe
from cohort.training.objectives import FedProx
from cohort.training.procedures.fedtan import FedTan
from cohort.training.procedures.fedtan.first_step import FirstStepTogether
from cohort.training.servers import FedNova
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers.local_work import batches
from cohort.training.updates import size_in_bytes
from tests.training.procedures.test_concat import planned
from tests.training.small_task import (
    HalfSquare,
    plain_samples,
    random_samples,
    run,
    small_cell,
    small_task,
    train,
    trainer_of,
)

SIZES = (7, 4, 9)


def normalized_network() -> nn.Module:
    """A small convolutional network with two batch normalizations, for 8x8 pixels and three
    classes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(12)
        return nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.BatchNorm1d(36),
            nn.Linear(36, 3),
        ).double()


def task_of(procedure: str = "fedtan", **changes: Any) -> Task:
    usual = {"sizes": SIZES, "J": "J2e", "batch": 4, "lr": 0.05, "rounds": 2}
    return small_task(model=normalized_network(), procedure=procedure, **(usual | changes))


def assert_close(actual: RunState, expected: RunState) -> None:
    for name, tensor in expected.weights.items():
        torch.testing.assert_close(actual.weights[name], tensor, rtol=1e-10, atol=1e-10)


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
    assert_close(actual, expected)
    for metric in ("train_loss", "test_accuracy", "test_loss", "update_norm"):
        np.testing.assert_allclose(
            actual.history.metrics[metric], expected.history.metrics[metric], rtol=1e-9
        )
    assert actual.history.cost["client_steps"] == expected.history.cost["client_steps"]


def test_one_client_trains_as_in_centralized_training():
    """Without momentum an epoch of the only client is the same as a round."""
    actual, expected = (
        run(task_of(procedure, sizes=(9,), J="J1e", rounds=4))
        for procedure in ("fedtan", "centralized")
    )
    assert_close(actual, expected)


def identical_clients(procedure: str, clients: int) -> RunState:
    """Clients with the same five samples take one step on all of them."""
    samples = random_samples(5, 4)
    train = plain_samples(samples.values.repeat(clients, 1, 1, 1), samples.labels.repeat(clients))
    task = task_of(procedure, sizes=(5,) * clients, train=train, J="J1", batch=5, rounds=3)
    for client in range(clients):
        task.shards.indices[client] = np.arange(5 * client, 5 * client + 5)
    return run(task)


def test_identical_clients_train_as_one_of_them():
    """Averages of equal means and variances are these. In a pool of all rows the variance has
    another correction for its bias."""
    actual, expected = (identical_clients("fedtan", clients) for clients in (3, 1))
    for name, tensor in expected.weights.items():
        if not name.endswith("running_var"):
            torch.testing.assert_close(actual.weights[name], tensor, rtol=1e-10, atol=1e-10)


def of_numbers(values: list[float], targets: list[int]) -> Samples:
    inputs = torch.tensor(values, dtype=torch.float64).view(-1, 1)
    return plain_samples(inputs, torch.tensor(targets))


def test_the_first_step_by_hand():
    """Client 0 holds x = 0 and 2 with targets 0 and 1, client 1 holds x = 7 with target 1. Local
    means 1 and 7 average to 4; squared distances of 16, 4 and 9 average to (10 + 9) / 2 = 9.5, and
    together with eps = 6.5 the deviation is 4. So normalized inputs are -1, -1/2 and 3/4.

    The outputs are 2 g + 1 of these, with g = 1 and losses of half squares: the outputs -1, 0, 5/2
    have errors of -1, -1 and 3/2. Client 0's gradients with respect to the last layer's weight:
    the mean of 1 and 1/2 = 3/4, its bias: -1; client 1's: 9/8 and 3/2.
    """
    layer, last = nn.BatchNorm1d(1, eps=6.5), nn.Linear(1, 1)
    network = nn.Sequential(layer, last).double()
    nn.init.constant_(last.weight, 2)
    nn.init.constant_(last.bias, 1)
    task = small_task(
        model=network,
        train=of_numbers([0, 2, 7], [0, 1, 1]),
        test=of_numbers([1] * 20, [1] * 20),
        classes=2,
        objective=HalfSquare(),
        sizes=(2, 1),
        J="J1",
        lr=0.1,
        procedure="fedtan",
    )
    task.shards.indices[:] = [np.array([0, 1]), np.array([2])]
    updates = train(trainer_of(task, FirstStepTogether), task.initial_weights(), [0, 1])
    expected = {
        # gradients of scale and shift are twice those of the last layer's weight and bias
        "0.weight": [1 - 0.1 * 2 * 0.75, 1 - 0.1 * 2 * 1.125],
        "0.bias": [0.1 * 2, -0.1 * 2 * 1.5],
        "1.weight": [2 - 0.1 * 0.75, 2 - 0.1 * 1.125],
        "1.bias": [1 + 0.1, 1 - 0.1 * 1.5],
        "0.running_mean": [0.1 * 4] * 2,
        # rows weigh 1/4, 1/4 and 1/2
        "0.running_var": [0.9 + 0.1 * 9.5 / (1 - 3 / 8)] * 2,
        "0.num_batches_tracked": [1, 1],
    }
    for name, values in expected.items():
        assert updates.weights[name].flatten().tolist() == pytest.approx(values, rel=1e-12), name
    assert updates.losses.tolist() == pytest.approx([0.5, 9 / 8])
    assert updates.steps.tolist() == [1, 1]


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
        scale, shift = (
            parameter.view_as(mean[0, :, ...]) for parameter in (layer.weight, layer.bias)
        )
        inputs = [own / deviation * scale + shift for own in centered]
    return inputs


def first_batches(task: Task) -> list[Tensor]:
    """The places of each client's first batch among all samples."""
    results = []
    for client, own in enumerate(task.shards.indices):
        rng = generator(task.settings.seed, "batches", round=1, client=client)
        results.append(
            torch.from_numpy(own[next(batches(len(own), task.settings, rng.permutation))])
        )
    return results


def test_the_mean_of_all_first_steps_is_a_step_on_the_mean_loss():
    """The gradient of that mean loss goes through the shared statistics. Later steps show it in the
    weights."""
    task = task_of(J="J1", rounds=1, sizes=(5, 3, 1))
    start, samples = task.initial_weights(), task.train_samples
    updates = train(trainer_of(task, FirstStepTogether), start, range(3))
    network, places = normalized_network(), first_batches(task)
    assert [len(own) for own in places] == [4, 3, 1]
    outputs = plain_averages(network, [samples.inputs(own) for own in places])
    losses = [
        cross_entropy(scores, samples.labels[own])
        for scores, own in zip(outputs, places, strict=True)
    ]
    torch.stack(losses).mean().backward()
    torch.testing.assert_close(updates.losses, torch.stack(losses).detach(), rtol=1e-10, atol=0)
    for name, parameter in network.named_parameters():
        expected = parameter.detach() - 0.05 * parameter.grad
        torch.testing.assert_close(
            updates.weights[name].mean(dim=0), expected, rtol=1e-10, atol=1e-10
        )
        assert (updates.weights[name][0] - updates.weights[name][1]).abs().max() > 1e-5


@pytest.mark.parametrize(
    ("sizes", "is_exact"),
    [((8, 8, 8), True), ((3, 3, 3), True), ((8, 8, 3), False), ((12, 4, 4), False)],
    ids=["equal", "equal, shorter than a batch", "unequal batches", "unequal shards"],
)
def test_a_round_of_one_step_is_sgd_on_the_union_of_equal_clients_batches(
    sizes: tuple[int, ...], is_exact: bool
):
    """With ordinary batch normalization. Clients whose first batches differ in size have other
    statistics, and those whose shards differ another weight in the average."""
    task = task_of(J="J1", rounds=1, sizes=sizes)
    network, samples = normalized_network().train(), task.train_samples
    places = torch.cat(first_batches(task))
    cross_entropy(network(samples.inputs(places)), samples.labels[places]).backward()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter -= 0.05 * parameter.grad
    result = run(task).weights
    distances = {
        name: (result[name] - tensor).abs().max() for name, tensor in network.state_dict().items()
    }
    assert (max(distances.values()) < 1e-10) == is_exact
    if not is_exact:
        assert distances["5.weight"] > 1e-4


def test_later_steps_are_local_and_momentum_begins_anew():
    """They continue each client's first step by a plain loop of PyTorch's SGD."""
    task = task_of(J="J3", momentum=0.9, rounds=1, sizes=(8, 8))
    start = task.initial_weights()
    short = replace(task, settings=replace(task.settings, J="J1"))
    first, whole = (
        train(trainer_of(variant, FirstStepTogether), start, range(2)) for variant in (short, task)
    )
    for client, own in enumerate(task.shards.indices):
        network = copy.deepcopy(task.model)
        network.load_state_dict(first.client_weights(client))
        optimizer = torch.optim.SGD(network.train().parameters(), lr=0.05, momentum=0.9)
        rng = generator(0, "batches", round=1, client=client)
        for batch in list(batches(8, task.settings, rng.permutation))[1:]:
            places = torch.from_numpy(own[batch])
            optimizer.zero_grad()
            scores = network(task.train_samples.inputs(places))
            cross_entropy(scores, task.train_samples.labels[places]).backward()
            optimizer.step()
        for name, tensor in network.state_dict().items():
            torch.testing.assert_close(
                whole.client_weights(client)[name], tensor, rtol=1e-10, atol=1e-10
            )
    assert whole.steps.tolist() == [3, 3]


def test_everything_is_averaged_by_size():
    """Running statistics too; their counts of batches are rounded."""
    task = task_of(rounds=1)
    updates = train(trainer_of(task, FirstStepTogether), task.initial_weights(), range(3))
    shares = np.array(SIZES) / sum(SIZES)
    state = run(task_of(rounds=1))
    assert "1.running_var" in state.weights
    for name, tensor in state.weights.items():
        rows = updates.weights[name].double().numpy()
        expected = np.tensordot(shares, rows, axes=1)
        if name.endswith("num_batches_tracked"):
            expected = expected.round()
        np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-12, atol=1e-14)


def test_a_proximal_term_does_not_change_the_first_step():
    states = [run(task_of(J="J1", objective=objective)) for objective in (None, FedProx(mu=5.0))]
    assert_close(*states)
    states = [run(task_of(J="J3", objective=objective)) for objective in (None, FedProx(mu=5.0))]
    assert any(
        not torch.allclose(states[0].weights[name], tensor)
        for name, tensor in states[1].weights.items()
    )


def test_traffic():
    """Each client moves the model once in each direction, and the statistics of 4 + 36 channels:
    two numbers of eight bytes per channel forward and two backward, in both directions."""
    task = task_of(rounds=1)
    state, model = run(task), size_in_bytes(task.initial_weights())
    up_and_down = {
        "model": model,
        "batch_statistics": 2 * 8 * 40,
        "gradients_of_statistics": 2 * 8 * 40,
    }
    per_client = 3 * sum(up_and_down.values())
    assert {name: result.tolist() for name, result in state.history.traffic.items()} == {
        name: [3 * size, 3 * size, 0] for name, size in up_and_down.items()
    }
    assert state.history.cost["bytes_up"] == [(1, per_client)]
    assert state.history.cost["bytes_down"] == [(1, per_client)]


def test_a_client_without_samples_shares_nothing():
    with_empty, without = (run(task_of(sizes=sizes)) for sizes in ((7, 4, 9, 0), SIZES))
    assert_close(with_empty, without)
    model = size_in_bytes(without.weights)
    up = [amount for _, amount in with_empty.history.cost["bytes_up"]]
    assert up == [amount + model for _, amount in without.history.cost["bytes_up"]]


def test_a_single_sample_has_no_statistics():
    """A batch of one sample is normalized by running statistics, as in FedAvg."""
    actual, expected = (
        run(task_of(procedure, sizes=(1,))) for procedure in ("fedtan", "federated")
    )
    assert_close(actual, expected)
    assert actual.history.cost["bytes_up"] == expected.history.cost["bytes_up"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"model": "lenet5"},
            "shares the statistics of batch normalization, which the model 'lenet5' lacks",
        ),
        ({"model": "resnet9-gn"}, "which the model 'resnet9-gn' lacks"),
        ({"optimizer": "adam"}, "trains clients by SGD, but optimizer is 'adam'; leave it out"),
        ({"schedule": "cosine"}, "not the schedule 'cosine', which is for centralized runs"),
        (
            {"server": FedNova()},
            "averages the clients' models, not by the server rule 'fednova'",
        ),
        ({"selector": Probe()}, "but the selector 'probe' probes them first"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(change: dict[str, Any], sentence: str):
    FedTan().check(small_cell(model="resnet20"))
    with pytest.raises(ValueError) as refusal:
        FedTan().check(small_cell(**({"model": "resnet20"} | change)))
    assert sentence in str(refusal.value)


def test_other_networks_are_refused_when_a_study_is_planned(project: Path):
    with pytest.raises(UserError, match="procedure 'fedtan' shares the statistics") as caught:
        planned(project, procedure="fedtan", model="small-cnn")
    assert "\n" not in str(caught.value)
    assert len(planned(project, procedure="fedtan", model="resnet20").cells) == 1


def test_a_planned_cell_learns_the_digits(project: Path):
    """From shards on disk to a record."""
    plan = planned(
        project, procedure="fedtan", model="resnet20", rounds=8, J="J1e", partition="iid"
    )
    (cell,) = plan.cells.values()
    write_plan(cell.planned())
    make_inputs(plan, cell)
    run_cell(plan_file(cell.digest), device="cpu")
    history = read(cell.path).history
    assert history.metrics["test_accuracy"][-1][1] > 0.5
    assert {"model", "batch_statistics", "gradients_of_statistics"} <= set(history.traffic)
