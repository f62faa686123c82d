"""FedConcat: clusters against all partitions, stage 1 against FedAvg, stage 2 against a plain PyTorch
loop, costs, resuming."""

import copy
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from cohort.core.randomness import generator
from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.ledger import strip_prefix
from cohort.training.procedures import concat
from cohort.training.procedures.concat import CLASSIFIER, NO_CLUSTER, prefix_of
from cohort.training.procedures.procedure import Concat
from cohort.training.task import RunState, Task
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Weights
from tests.training.small_task import plain_samples, small_task, train
from tests.training.test_empty_clients import PlannedCohorts

CPU = torch.device("cpu")
TWO = Concat(clusters=2)
SHAPES = [(1, 8, 8), (3, 32, 32), (1, 28, 28), (3, 224, 224), (12,)]


def samples_of(labels: list[int], seed: int) -> Samples:
    """Make random inputs with these labels."""
    images = torch.from_numpy(np.random.default_rng(seed).normal(size=(len(labels), 1, 8, 8)))
    return plain_samples(images, torch.tensor(labels))


def clustered_task(**changes: Any) -> Task:
    """Clients 0 and 2 hold label 0, clients 1 and 3 labels 1 and 2, client 4 nothing."""
    samples = samples_of([0] * 9 + [1, 2] * 6 + [2], seed=2)
    settings = {"J": "J2", "momentum": 0.5} | changes
    task = small_task(sizes=(6, 8, 3, 5, 0), train=samples, **settings)
    parts = [np.arange(0, 6), np.arange(9, 17), np.arange(6, 9), np.arange(17, 22), np.arange(0)]
    labels = task.train_samples.labels.numpy()
    counts = np.stack([np.bincount(labels[part], minlength=3) for part in parts])
    task.shards.indices[:] = parts
    task.shards.label_counts[:] = counts
    return task


def states(task: Task, procedure: Concat = TWO) -> list[tuple[Weights, RunState]]:
    """The weights and the state after each round."""
    return [
        (state.weights, state) for state in procedure.rounds_of(task).run(procedure.begin(task))
    ]


def equal(a: Weights, b: Weights) -> bool:
    return list(a) == list(b) and all(torch.equal(a[name], b[name]) for name in a)


def network_with_dropout() -> nn.Module:
    """A tiny EfficientNet: convolution, batch normalization, pooling, and dropout before the last layer."""
    body = nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    head = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 3))
    return nn.Sequential(nn.Sequential(*body), head).double()


def test_with_one_cluster_stage_1_is_fedavg_bit_for_bit():
    """Also with empty clients. The mean output of one network is its own."""
    settings = {"sizes": (4, 0, 9, 6), "cohort": 2, "rounds": 10, "J": "J1e", "momentum": 0.9}
    settings |= {"lr_decay": 0.9, "weight_decay": 0.01}
    ours = states(small_task(**settings), Concat(clusters=1))
    task = small_task(**settings)
    fedavg = list(task.procedure.rounds_of(task).run(task.procedure.begin(task)))
    for (weights, _), state in zip(ours[:8], fedavg[:8], strict=True):
        assert equal(strip_prefix(weights, prefix_of(0)), state.weights)
    history, other = ours[-1][1].history, fedavg[-1].history
    assert np.array_equal(history.cohorts, other.cohorts)
    for name in ("train_loss", "update_norm", "test_accuracy", "cohort_entropy"):
        assert history.metrics[name][:8] == other.metrics[name][:8], name


def test_a_cluster_without_participants_keeps_its_weights():
    """Round 1 has nobody of cluster 1, round 2 nobody with samples, round 3 nobody of cluster 0."""
    task = clustered_task(selector=PlannedCohorts(cohorts=((0, 2), (4,), (3, 4), (0, 1))), rounds=4)
    start = task.initial_weights()
    (first, _), (second, _), (third, _), (_, state) = states(task)
    assert not equal(strip_prefix(first, prefix_of(0)), start)
    assert equal(strip_prefix(first, prefix_of(1)), start) and equal(second, first)
    assert equal(strip_prefix(third, prefix_of(0)), strip_prefix(first, prefix_of(0)))
    alone = train(SerialTrainer(task), start, [3], 3).client_weights(0)
    assert equal(strip_prefix(third, prefix_of(1)), alone)
    metrics = state.history.metrics
    assert metrics["clusters_trained"] == [(1, 1), (2, 0), (3, 1)]
    assert metrics["stage"] == [(1, 1), (2, 1), (3, 1), (4, 2)]
    assert [round for round, _ in metrics["train_loss"]] == [1, 3, 4]
    rounds = Concat(clusters=2).rounds_of(task)
    assert rounds.client_arrays(state)["cluster"].tolist() == [0, 1, 0, 1, NO_CLUSTER]
    # three distributions of labels make three clusters of the four that are asked for
    assert len(Concat(clusters=4).rounds_of(task).network(1).networks) == 3


def plain_classifiers(
    task: Task, weights: Weights, clients: list[int], round: int, lr: float, most: int = 3
) -> list[nn.Linear]:
    """Each client's classifier, trained in plain PyTorch on features computed beforehand."""
    networks = [copy.deepcopy(task.model) for _ in range(2)]
    for cluster, network in enumerate(networks):
        network.load_state_dict(strip_prefix(weights, prefix_of(cluster)))
    results = []
    for client in clients:
        indices = task.shards.indices[client]
        inputs, labels = task.train_samples.values[indices], task.train_samples.labels[indices]
        with torch.no_grad():
            features = torch.cat([network.eval()[:-1](inputs) for network in networks], dim=1)
        classifier = nn.Linear(features.shape[1], 3).double()
        classifier.load_state_dict(strip_prefix(weights, "classifier."))
        settings = task.settings
        options = {"momentum": settings.momentum, "weight_decay": settings.weight_decay}
        optimizer = torch.optim.SGD(classifier.parameters(), lr=lr, **options)
        order = generator(0, "batches", round=round, client=client).permutation(len(indices))
        for begin in range(0, len(order), task.settings.batch)[:most]:
            batch = order[begin : begin + task.settings.batch]
            optimizer.zero_grad()
            cross_entropy(classifier(features[batch]), labels[batch]).backward()
            optimizer.step()
        results.append(classifier)
    return results


def assert_mean_of_classifiers(weights: Weights, models: list[nn.Linear]) -> None:
    for name in ("weight", "bias"):
        expected = sum(getattr(model, name).detach() for model in models) / len(models)
        torch.testing.assert_close(weights[f"{CLASSIFIER}{name}"], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("J", "steps", "rates"),
    [("J1", 3, (0.2, 0.1)), ("J5e", 3, (0.2, 0.1)), ("J1", 1, (0.025, 0.0125))],
)
def test_stage_2_matches_a_plain_loop_and_an_unweighted_mean(
    J: str, steps: int, rates: tuple[float, float]
):
    """In batches of two, 6, 8 and 3 samples are 3, 4 (of which 3 are used) and 2 batches. J does not matter."""
    cohorts = ((0, 1, 2, 3),) * 3 + ((1, 0, 2, 4), (3, 2))
    settings = {"rounds": 5, "batch": 2, "J": J, "momentum": 0.5, "weight_decay": 0.01}
    settings |= {"lr": 0.2, "lr_decay": 0.5}
    task = clustered_task(selector=PlannedCohorts(cohorts=cohorts), **settings)
    # the learning rate starts anew, or goes on from 0.2 * 0.5 ** 3
    continued = int(rates[0] < task.settings.lr)
    by_round = states(task, Concat(clusters=2, classifier=0.4, steps=steps, continued=continued))
    for index, clients, lr in ((3, [1, 0, 2], rates[0]), (4, [3, 2], rates[1])):
        before, after = by_round[index - 1][0], by_round[index][0]
        models = plain_classifiers(task, before, clients, index + 1, lr, steps)
        assert_mean_of_classifiers(after, models)
        sizes = torch.tensor([len(task.shards.indices[client]) for client in clients])
        weighted = (sizes / sizes.sum()).double() @ torch.stack([own.bias for own in models])
        difference = after["classifier.bias"] - weighted.detach()
        assert difference.abs().max() > 1e-6  # there was something to get wrong
        assert equal(strip_prefix(after, "networks."), strip_prefix(before, "networks."))
    if steps == 3:
        taken = by_round[-1][1].history.cost["client_steps"]
        assert taken[3:] == [(4, 3 + 3 + 2), (5, 3 + 2)]


def test_frozen_networks_use_neither_dropout_nor_batch_statistics():
    """Batch normalization uses stage 1's running statistics in stage 2, also for batches of one."""
    cohorts = PlannedCohorts(cohorts=((0, 1), (2, 3)))
    task = clustered_task(model=network_with_dropout(), selector=cohorts, rounds=2, batch=2)
    (before, _), (after, _) = states(task)
    assert_mean_of_classifiers(after, plain_classifiers(task, before, [2, 3], 2, 0.1))


def test_a_warm_classifier_starts_once_as_the_sum_of_the_clusters_own():
    """Nobody with samples takes part in round 3, where stage 2 begins, nor in the last one."""

    def weights_by_round(warm: int) -> list[Weights]:
        cohorts = PlannedCohorts(cohorts=((0, 1), (2, 3), (4,), (0, 1), (4,)))
        task = clustered_task(selector=cohorts, rounds=5)
        procedure = Concat(clusters=2, classifier=0.6, warm=warm)
        return [weights for weights, _ in states(task, procedure)]

    _, before, warm, trained, after = weights_by_round(warm=1)
    first, second = (strip_prefix(before, f"{prefix_of(cluster)}3.") for cluster in range(2))
    joined = torch.cat([first["weight"], second["weight"]], dim=1)
    assert torch.equal(warm["classifier.weight"], joined)
    assert torch.equal(warm["classifier.bias"], first["bias"] + second["bias"])
    assert not equal(trained, warm) and equal(after, trained)
    cold = weights_by_round(warm=0)
    assert equal(cold[2], cold[1])


@torch.no_grad()
def test_which_network_is_evaluated_in_each_stage():
    """In stage 1 the mean probability of both networks, in stage 2 the classifier."""
    held_out = [0, 1, 2, 9, 10]
    task = clustered_task(rounds=5, cohort=5, validation=tuple(held_out), evaluate_every=2)
    with torch.enable_grad():
        by_round = states(task, Concat(clusters=2, classifier=0.4))
    metrics = by_round[-1][1].history.metrics
    assert [round for round, _ in metrics["validation_loss"]] == [2, 4, 5]
    images, labels = task.train_samples.values[held_out], task.train_samples.labels[held_out]
    networks = [copy.deepcopy(task.model) for _ in range(2)]
    for index, round in enumerate((2, 4, 5)):
        weights = by_round[round - 1][0]
        for cluster, network in enumerate(networks):
            network.load_state_dict(strip_prefix(weights, prefix_of(cluster)))
        if round <= 3:
            scores = sum(network(images).softmax(dim=1) / 2 for network in networks).log()
        else:
            features = torch.cat([network[:-1](images) for network in networks], dim=1)
            scores = linear(features, weights["classifier.weight"], weights["classifier.bias"])
        loss = float(cross_entropy(scores, labels))
        assert metrics["validation_loss"][index] == (round, pytest.approx(loss, rel=1e-12))
        right = float((scores.argmax(dim=1) == labels).double().mean())
        assert metrics["validation_accuracy"][index] == (round, right)


def test_bytes_by_hand():
    """A network has 64 x 64 + 64 and 64 x 3 + 3 weights in float64. In stage 1 each client of the
    cohort receives and sends one. In stage 2 it is a classifier of 2 x 64 x 3 + 3 weights, and who
    has them not yet receives both networks without their last layers. Label counts are sent once:
    4 bytes for each of 3 classes by each of 5 clients."""
    cohorts = ((0, 1, 4), (2, 3, 4), (0, 1, 4), (1, 2, 4), (0, 1, 2))
    task = clustered_task(selector=PlannedCohorts(cohorts=cohorts), rounds=5)
    *_, (_, state) = states(task, Concat(clusters=2, classifier=0.6))
    encoder, end, joined = 8 * (64 * 64 + 64), 8 * (64 * 3 + 3), 8 * (2 * 64 * 3 + 3)
    whole = 3 * (encoder + end)
    down = [whole, whole, 3 * joined + 3 * 2 * encoder, 3 * joined + 2 * encoder, 3 * joined]
    assert state.history.cost["bytes_down"] == list(enumerate(down, start=1))
    up = [whole + 4 * 3 * 5, whole, 3 * joined, 3 * joined, 3 * joined]
    assert state.history.cost["bytes_up"] == list(enumerate(up, start=1))


def test_a_resumed_run_keeps_the_clusters_of_its_checkpoint():
    """Another version of k-means may cluster differently."""
    task = clustered_task(selector=PlannedCohorts(cohorts=((0, 1), (1,), (0, 1))), rounds=3)
    before = next(TWO.rounds_of(task).run(TWO.begin(task)))
    before.server["cluster"] = 1 - before.server["cluster"].clamp(min=0)
    after = next(TWO.rounds_of(task).run(before))
    changed = [
        not equal(*(strip_prefix(state.weights, prefix_of(cluster)) for state in (before, after)))
        for cluster in range(2)
    ]
    assert changed == [True, False]


@pytest.mark.parametrize(
    ("rounds", "share", "first"),
    [(500, 0.2, 400), (2, 0.2, 1), (3, 0.2, 2), (10, 0.01, 9), (10, 0.99, 1), (25, 0.2, 20)],
)
def test_each_stage_has_its_share_and_at_least_one_round(rounds: int, share: float, first: int):
    assert Concat(clusters=5, classifier=share).cluster_rounds(rounds) == first


def network_of(name: str) -> tuple[nn.Module, torch.Tensor]:
    """A network of the catalog and a batch of two inputs for it."""
    model = MODELS[name]()
    for shape in SHAPES:
        try:
            model.check(shape)
        except ValueError:
            continue
        if ("images" in model.kinds) == (len(shape) == 3):
            inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(2, *shape))).float()
            samples = inputs.abs().long() if "text" in model.kinds else inputs
            return model.build(shape, 10).eval(), samples
    raise AssertionError(f"{name} takes none of {SHAPES}")


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_every_networks_output_is_its_last_layer_on_its_features(name: str):
    network, inputs = network_of(name)
    features, last = concat.features(network, inputs), concat.last_linear(network)
    assert torch.equal(linear(features, last.weight, last.bias), network(inputs))
    assert not last._forward_pre_hooks


def clusters_of(
    counts: list[list[int]] | np.ndarray, clusters: int, balanced: bool = False, seed: int = 0
) -> list[int]:
    rng = np.random.default_rng(seed)
    return concat.cluster_clients(np.array(counts), clusters, rng, balanced).tolist()


def spread(shares: np.ndarray, labels: np.ndarray) -> float:
    """The sum of squared distances to the mean of each cluster."""
    parts = [shares[labels == label] for label in np.unique(labels)]
    return float(sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts))


def test_label_shares_matter_and_sizes_do_not():
    """By counts each of the two large clients would be alone. Clusters are numbered by their first
    clients; a client without samples is in none."""
    counts = [[0, 100], [0, 0], [100, 0], [0, 1], [3, 0]]
    for seed in range(5):
        assert clusters_of(counts, 2, seed=seed) == [0, NO_CLUSTER, 1, 0, 1]


def test_no_partition_is_better():
    """All 3 ** 8 assignments of eight clients to three clusters."""
    counts = np.random.default_rng(3).integers(1, 40, (8, 4))
    shares = counts / counts.sum(axis=1, keepdims=True)
    best = min(spread(shares, np.array(labels)) for labels in product(range(3), repeat=8))
    assert spread(shares, np.array(clusters_of(counts, 3))) == pytest.approx(best, rel=1e-12)


def test_more_clusters_than_distributions_or_clients():
    assert len(set(clusters_of([[1, 1]] * 6, 3))) == 1
    assert clusters_of([[0, 1], [1, 0], [0, 0]], 5, balanced=True) == [0, 1, NO_CLUSTER]


@pytest.mark.parametrize("seed", [0, 1, 6])
@pytest.mark.parametrize(
    ("clients", "clusters", "places"), [(40, 5, 9), (100, 5, 24), (11, 5, 3), (7, 1, 8)]
)
def test_balanced_clusters_are_locally_optimal(clients: int, clusters: int, places: int, seed: int):
    """There are 1.2 times the mean places, rounded down, but enough for all. With the final centers
    no swap and no move to a free place is an improvement."""
    counts = np.random.default_rng(seed).integers(0, 9, (clients, 3)) ** 3 + [1, 0, 0]
    labels = np.array(clusters_of(counts, clusters, balanced=True))
    sizes = np.bincount(labels, minlength=clusters)
    assert sizes.sum() == clients and sizes.max() <= places
    shares = counts / counts.sum(axis=1, keepdims=True)
    centers = np.stack([shares[labels == label].mean(axis=0) for label in range(sizes.size)])
    distances = ((shares[:, None] - centers) ** 2).sum(axis=2)
    own = distances[np.arange(clients), labels]
    swapping = own[:, None] + own - distances[:, labels] - distances[:, labels].T
    moving = own - np.where(sizes < places, distances, np.inf).min(axis=1)
    assert swapping.max() < 1e-12 and moving.max() < 1e-12
