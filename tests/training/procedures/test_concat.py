"""FedConcat: stage 1 against FedAvg, stage 2 against a plain PyTorch loop, costs, resuming."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import nn
from torch.nn.functional import cross_entropy, linear

from cohort.cell.planned import plan_file, write_plan
from cohort.commands.run import make_inputs, run_cell
from cohort.core.errors import UserError
from cohort.core.randomness import generator
from cohort.data.samples import Samples
from cohort.plan import Plan, load
from cohort.records.record import read
from cohort.selection.entropy import Entropy
from cohort.selection.probe import Probe
from cohort.training.cursor import strip_prefix
from cohort.training.evaluation import fingerprint
from cohort.training.job import checkpoint
from cohort.training.objectives.fedprox import FedProx
from cohort.training.procedures.concat import Concat
from cohort.training.procedures.concat.concatenated import prefix_of
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.updates import Weights
from tests.training.procedures.test_concatenated import network_with_dropout
from tests.training.small_task import (
    plain_samples,
    small_cell,
    small_model,
    small_task,
    train,
    trainer_of,
)
from tests.training.test_empty_clients import PlannedFile

CPU = torch.device("cpu")
TWO = Concat(clusters=2)


def samples_of(labels: list[int], seed: int) -> Samples:
    """Make random inputs with these labels."""
    images = torch.from_numpy(np.random.default_rng(seed).normal(size=(len(labels), 1, 8, 8)))
    return plain_samples(images, torch.tensor(labels))


def clustered_task(**changes: Any) -> Task:
    """Clients 0 and 2 hold label 0, clients 1 and 3 labels 1 and 2, client 4 nothing."""
    task = small_task(
        sizes=(6, 8, 3, 5, 0),
        train=samples_of([0] * 9 + [1, 2] * 6 + [2], seed=2),
        **({"J": "J2", "momentum": 0.5} | changes),
    )
    parts = [np.arange(0, 6), np.arange(9, 17), np.arange(6, 9), np.arange(17, 22), np.arange(0)]
    labels = task.train_samples.labels.numpy()
    counts = np.stack([np.bincount(labels[these], minlength=3) for these in parts])
    task.shards.indices[:] = parts
    task.shards.label_counts[:] = counts
    return task


def states(task: Task, procedure: Concat = TWO) -> list[tuple[Weights, RunState]]:
    """The weights and the state after each round."""
    return [(state.weights, state) for state in procedure.rounds(task, procedure.begin(task))]


def same(one: Weights, other: Weights) -> bool:
    return list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)


def test_with_one_cluster_stage_1_is_fedavg_bit_for_bit():
    """Also with empty clients. The mean output of one network is its own."""
    settings = {
        "sizes": (4, 0, 9, 6),
        "cohort": 2,
        "rounds": 10,
        "J": "J1e",
        "momentum": 0.9,
        "lr_decay": 0.9,
        "weight_decay": 0.01,
    }
    ours = [
        (strip_prefix(weights, prefix_of(0)), state)
        for weights, state in states(small_task(**settings), Concat(clusters=1))
    ]
    task = small_task(**settings)
    fedavg = [
        (state.weights, state) for state in task.procedure.rounds(task, task.procedure.begin(task))
    ]
    assert all(same(one, other) for (one, _), (other, _) in zip(ours[:8], fedavg[:8], strict=True))
    assert same(ours[9][0], ours[7][0]) and not same(fedavg[8][0], fedavg[7][0])
    mine, other = ours[-1][1].history, fedavg[-1][1].history
    assert [cohort.tolist() for cohort in mine.cohorts] == [
        cohort.tolist() for cohort in other.cohorts
    ]
    for name in ("train_loss", "update_norm", "test_accuracy", "cohort_entropy"):
        assert mine.metrics[name][:8] == other.metrics[name][:8], name
    for name in ("test_loss", "test_calibration_error"):
        assert mine.metrics[name][:8] == [
            (round, pytest.approx(value, rel=1e-12)) for round, value in other.metrics[name][:8]
        ], name


def test_each_cluster_averages_its_own_clients():
    """Means are weighted by size: 6 and 3 samples are 2/3 and 1/3, 8 and 5 are 8/13 and 5/13."""
    task = clustered_task(selector=PlannedFile(cohorts=((0, 1, 2, 3, 4), (0, 1))), rounds=2)
    start = task.initial_weights()
    (weights, _), _ = states(task)
    updates = train(trainer_of(task), start, range(4))
    for cluster, shares in ((0, {0: 2 / 3, 2: 1 / 3}), (1, {1: 8 / 13, 3: 5 / 13})):
        for name, tensor in strip_prefix(weights, prefix_of(cluster)).items():
            expected = sum(
                share * updates.weights[name][client] for client, share in shares.items()
            )
            torch.testing.assert_close(tensor, expected, rtol=1e-12, atol=1e-12)
            assert not torch.equal(tensor, start[name])


def test_there_is_no_network_without_a_cluster():
    """Three distributions of labels make three clusters of the four that are asked for."""
    rounds = Concat(clusters=4).rounds_of(clustered_task())
    state = rounds.begin()
    assert sorted(set(state.server["cluster"].tolist())) == [-1, 0, 1, 2]
    assert len(rounds.network(1).networks) == 3


def test_a_cluster_without_participants_keeps_its_weights():
    """Round 1 has nobody of cluster 1, round 2 nobody with samples, round 3 nobody of cluster 0."""
    task = clustered_task(selector=PlannedFile(cohorts=((0, 2), (4,), (3, 4), (0, 1))), rounds=4)
    start = task.initial_weights()
    by_round = states(task)
    (one, _), (two, _), (three, _), (_, state) = by_round
    assert not same(strip_prefix(one, prefix_of(0)), start) and same(
        strip_prefix(one, prefix_of(1)), start
    )
    assert same(two, one)
    assert same(strip_prefix(three, prefix_of(0)), strip_prefix(one, prefix_of(0)))
    alone = train(trainer_of(task), start, [3], 3).client_weights(0)
    assert same(strip_prefix(three, prefix_of(1)), alone)
    metrics = state.history.metrics
    assert metrics["clusters_trained"] == [(1, 1), (2, 0), (3, 1)]
    assert metrics["stage"] == [(1, 1), (2, 1), (3, 1), (4, 2)]
    assert [round for round, _ in metrics["train_loss"]] == [1, 3, 4]
    assert [round for round, _ in metrics["test_accuracy"]] == [1, 2, 3, 4] and not state.diverged
    facts = Concat(clusters=2).rounds_of(task).client_arrays(state)
    assert facts["cluster"].tolist() == [0, 1, 0, 1, -1]


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
        with torch.no_grad():
            seen = torch.cat(
                [network.eval()[:-1](task.train_samples.values[indices]) for network in networks],
                dim=1,
            )
        classifier = nn.Linear(seen.shape[1], 3).double()
        classifier.load_state_dict(strip_prefix(weights, "classifier."))
        optimizer = torch.optim.SGD(
            classifier.parameters(),
            lr=lr,
            momentum=task.settings.momentum,
            weight_decay=task.settings.weight_decay,
        )
        order = generator(0, "batches", round=round, client=client).permutation(len(indices))
        for begin in range(0, len(order), task.settings.batch)[:most]:
            these = order[begin : begin + task.settings.batch]
            optimizer.zero_grad()
            cross_entropy(
                classifier(seen[these]), task.train_samples.labels[indices[these]]
            ).backward()
            optimizer.step()
        results.append(classifier)
    return results


@pytest.mark.parametrize("J", ["J1", "J5e"])
def test_stage_2_matches_a_plain_loop_and_an_unweighted_mean(J: str):
    """In batches of two, 6, 8 and 3 samples are 3, 4 (of which 3 are used) and 2 batches. J does
    not matter."""
    cohorts = ((0, 1, 2, 3),) * 3 + ((1, 0, 2, 4), (3, 2))
    settings = {
        "rounds": 5,
        "batch": 2,
        "J": J,
        "momentum": 0.5,
        "weight_decay": 0.01,
        "lr": 0.2,
        "lr_decay": 0.5,
    }
    task = clustered_task(selector=PlannedFile(cohorts=cohorts), **settings)
    by_round = states(task, Concat(clusters=2, classifier=0.4))
    for position, (clients, lr) in {
        3: ([1, 0, 2], 0.2),
        4: ([3, 2], 0.1),
    }.items():  # the learning rate starts again
        before, after = by_round[position - 1][0], by_round[position][0]
        models = plain_classifiers(task, before, clients, position + 1, lr)
        for name in ("weight", "bias"):
            tensor = after[f"classifier.{name}"]
            expected = sum(getattr(model, name).detach() for model in models) / len(models)
            torch.testing.assert_close(tensor, expected, rtol=1e-12, atol=1e-14)
            by_size = [len(task.shards.indices[client]) for client in clients]
            weighted = sum(
                size * getattr(model, name).detach()
                for size, model in zip(by_size, models, strict=True)
            ) / sum(by_size)
            assert (tensor - weighted).abs().max() > 1e-6  # there was something to get wrong
        assert all(
            same(strip_prefix(after, prefix_of(cluster)), strip_prefix(before, prefix_of(cluster)))
            for cluster in range(2)
        )
    assert by_round[-1][1].history.cost["client_steps"][3:] == [(4, 3 + 3 + 2), (5, 3 + 2)]


def test_the_number_of_batches_is_a_parameter():
    task = clustered_task(selector=PlannedFile(cohorts=((0, 1), (1, 3))), rounds=2, batch=2)
    (before, _), (after, _) = states(task, Concat(clusters=2, steps=1))
    models = plain_classifiers(task, before, [1, 3], 2, 0.1, most=1)
    torch.testing.assert_close(
        after["classifier.bias"],
        (models[0].bias + models[1].bias).detach() / 2,
        rtol=1e-12,
        atol=1e-14,
    )


def test_frozen_networks_use_neither_dropout_nor_batch_statistics():
    """Batch normalization uses stage 1's running statistics in stage 2, also for batches of one."""
    task = clustered_task(
        model=network_with_dropout(),
        selector=PlannedFile(cohorts=((0, 1), (2, 3))),
        rounds=2,
        batch=2,
    )
    (before, _), (after, _) = states(task)
    models = plain_classifiers(task, before, [2, 3], 2, 0.1)
    torch.testing.assert_close(
        after["classifier.weight"],
        (models[0].weight + models[1].weight).detach() / 2,
        rtol=1e-12,
        atol=1e-14,
    )


@pytest.mark.parametrize("mu", [0.0, 0.1])
def test_a_warm_classifier_starts_as_the_sum_of_the_clusters_own(mu: float):
    """Nobody with samples takes part in stage 2, so the classifier stays as it starts."""

    def found(warm: int) -> list[Weights]:
        task = clustered_task(
            selector=PlannedFile(cohorts=((0, 1), (2, 3), (4,))), objective=FedProx(mu=mu), rounds=3
        )
        return [weights for weights, _ in states(task, Concat(clusters=2, warm=warm))]

    _, before, after = found(warm=1)
    heads = [strip_prefix(before, f"{prefix_of(cluster)}3.") for cluster in range(2)]
    assert torch.equal(
        after["classifier.weight"], torch.cat([head["weight"] for head in heads], dim=1)
    )
    assert torch.equal(after["classifier.bias"], heads[0]["bias"] + heads[1]["bias"])
    assert not torch.equal(before["classifier.bias"], after["classifier.bias"])
    assert same(found(warm=0)[-1], before)


def test_a_warm_classifier_starts_once():
    """Round 3 trains it, and in round 4 nobody with samples takes part."""
    task = clustered_task(selector=PlannedFile(cohorts=((0, 1), (2, 3), (0, 1), (4,))), rounds=4)
    _, (before, _), (trained, _), (after, _) = states(
        task, Concat(clusters=2, classifier=0.5, warm=1)
    )
    assert same(after, trained) and not same(trained, before)


def test_a_proximal_term_pulls_the_classifier_to_its_first_weights():
    """With a large mu it moves much less."""
    moved = {}
    for mu in (0.0, 9.0):
        task = clustered_task(
            selector=PlannedFile(cohorts=((0, 1), (1, 3))),
            objective=FedProx(mu=mu),
            rounds=2,
            batch=2,
            momentum=0.0,
        )
        (before, _), (after, _) = states(task)
        moved[mu] = float((after["classifier.weight"] - before["classifier.weight"]).norm())
    assert 0 < moved[9.0] < 0.8 * moved[0.0]


@torch.no_grad()
def test_which_network_is_evaluated_in_each_stage():
    """In stage 1 the mean probability of both networks, in stage 2 the classifier."""
    task = clustered_task(rounds=5, cohort=5, validation=(0, 1, 2, 9, 10), evaluate_every=2)
    with torch.enable_grad():
        by_round = states(task, Concat(clusters=2, classifier=0.4))
    metrics = by_round[-1][1].history.metrics
    assert (
        [round for round, _ in metrics["test_loss"]]
        == [2, 4, 5]
        == [round for round, _ in metrics["validation_loss"]]
    )
    images, labels = (
        task.train_samples.values[:11][[0, 1, 2, 9, 10]],
        task.train_samples.labels[[0, 1, 2, 9, 10]],
    )
    networks = [copy.deepcopy(task.model) for _ in range(2)]
    for index, round in enumerate((2, 4, 5)):
        weights = by_round[round - 1][0]
        for cluster, network in enumerate(networks):
            network.load_state_dict(strip_prefix(weights, prefix_of(cluster)))
        if round <= 3:
            scores = (
                (networks[0](images).softmax(dim=1) + networks[1](images).softmax(dim=1)) / 2
            ).log()
        else:
            seen = torch.cat([network[:-1](images) for network in networks], dim=1)
            scores = linear(seen, weights["classifier.weight"], weights["classifier.bias"])
        assert metrics["validation_loss"][index] == (
            round,
            pytest.approx(float(cross_entropy(scores, labels)), rel=1e-12),
        )
        assert metrics["validation_accuracy"][index] == (
            round,
            float((scores.argmax(dim=1) == labels).double().mean()),
        )


def test_bytes_by_hand():
    """A network has 64 x 64 + 64 and 64 x 3 + 3 weights in float64. In stage 1 each client of the
    cohort receives and sends one. In stage 2 it is a classifier of 2 x 64 x 3 + 3 weights, and who
    has them not yet receives both networks without their last layers. Label counts are sent once:
    4 bytes for each of 3 classes by each of 5 clients."""
    cohorts = ((0, 1, 4), (2, 3, 4), (0, 1, 4), (1, 2, 4), (0, 1, 2))
    *_, (_, state) = states(
        clustered_task(selector=PlannedFile(cohorts=cohorts), rounds=5),
        Concat(clusters=2, classifier=0.6),
    )
    encoder, end, joined = 8 * (64 * 64 + 64), 8 * (64 * 3 + 3), 8 * (2 * 64 * 3 + 3)
    whole = 3 * (encoder + end)
    down = [whole, whole, 3 * joined + 3 * 2 * encoder, 3 * joined + 2 * encoder, 3 * joined]
    assert state.history.cost["bytes_down"] == list(enumerate(down, start=1))
    up = [whole + 4 * 3 * 5, whole, 3 * joined, 3 * joined, 3 * joined]
    assert state.history.cost["bytes_up"] == list(enumerate(up, start=1))
    assert set(state.history.cost) == {
        "bytes_down",
        "bytes_up",
        "client_steps",
        "selection_samples",
        "seconds",
        "seconds_training",
        "seconds_selecting",
        "seconds_scoring",
        "seconds_evaluating",
    }


def chance_task() -> Task:
    """A task with batch normalization, dropout, momentum, and a cohort of three of five."""
    return clustered_task(
        model=network_with_dropout(), cohort=3, rounds=7, J="J2", batch=2, momentum=0.9
    )


@pytest.mark.parametrize("until", [1, 3, 4, 5, 6])
def test_a_resumed_run_is_bit_identical(until: int, tmp_path: Path):
    """Four rounds of stage 1 and three of stage 2, stopped in both and between them."""
    procedure = Concat(clusters=2, classifier=0.43, warm=1)
    assert procedure.cluster_rounds(7) == 4
    *_, (weights, whole) = states(chance_task(), procedure)
    task = chance_task()
    stopped = next(
        state for state in procedure.rounds(task, procedure.begin(task)) if state.round == until
    )
    checkpoint.save(tmp_path / "c", stopped, "k0")
    loaded = checkpoint.load(tmp_path / "c", "k0", procedure.begin(chance_task()), CPU)
    assert loaded is not None and loaded[0].round == until
    state = loaded[0]
    *_, state = procedure.rounds(chance_task(), state)
    assert fingerprint(state.weights) == fingerprint(weights)
    assert state.history.metrics == whole.history.metrics
    for name in ("bytes_down", "bytes_up", "client_steps"):
        assert state.history.cost[name] == whole.history.cost[name]


def test_a_resumed_run_keeps_the_clusters_of_its_checkpoint(tmp_path: Path):
    """Another version of k-means may cluster differently."""
    procedure, task = (
        Concat(clusters=2),
        clustered_task(selector=PlannedFile(cohorts=((0, 1), (1,), (0, 1))), rounds=3),
    )
    stopped = next(procedure.rounds(task, procedure.begin(task)))
    stopped.server["cluster"] = 1 - stopped.server["cluster"].clamp(min=0)
    checkpoint.save(tmp_path / "c", stopped, "k0")
    loaded = checkpoint.load(tmp_path / "c", "k0", procedure.begin(task), CPU)
    assert loaded is not None
    before = loaded[0].weights
    after = next(procedure.rounds(task, loaded[0])).weights
    changed = [
        cluster
        for cluster in range(2)
        if not same(
            strip_prefix(after, prefix_of(cluster)), strip_prefix(before, prefix_of(cluster))
        )
    ]
    assert changed == [0]


def test_divergence_ends_the_run_in_either_stage():
    for cohorts, lr in ((((0, 1),) * 4, 1e200), (((4,), (4,), (4,), (0, 1)), 1e200)):
        task = clustered_task(
            selector=PlannedFile(cohorts=cohorts),
            rounds=5,
            lr=lr,
            J="J5",
            batch=2,
            weight_decay=0.5,
        )
        *_, (_, state) = states(task, Concat(clusters=2, classifier=0.4))
        assert state.diverged and state.round < 5


def test_a_dead_network_gives_finite_metrics():
    """A dead hidden layer gives the same output for every input, as in FedEntOpt's VGG-11."""
    model = small_model()
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].bias.fill_(-1)
    *_, (weights, state) = states(clustered_task(model=model, rounds=6, cohort=4), TWO)
    assert not state.diverged and all(bool(tensor.isfinite().all()) for tensor in weights.values())
    assert {value for _, value in state.history.metrics["test_classes_named"]} == {1}


@pytest.mark.parametrize(
    ("rounds", "share", "first"),
    [(500, 0.2, 400), (2, 0.2, 1), (3, 0.2, 2), (10, 0.01, 9), (10, 0.99, 1), (25, 0.2, 20)],
)
def test_each_stage_has_its_share_and_at_least_one_round(rounds: int, share: float, first: int):
    procedure = Concat(clusters=5, classifier=share)
    assert [procedure.stage(round, rounds) for round in range(1, rounds + 1)] == [1] * first + [
        2
    ] * (rounds - first)


USUAL = {
    "dataset": "digits",
    "model": "small-mlp",
    "clients": 10,
    "cohort": 3,
    "rounds": 10,
    "batch": 16,
    "lr": 0.05,
}


def planned(project: Path, strategy: str = "fedavg", **settings: Any) -> Plan:
    """Write a study of a single cell and return its plan."""
    axes = {"partition": ["dir-0.5"], "J": ["J2"], "strategy": [strategy], "seed": [0]}
    study = {
        "title": "Joined",
        "settings": USUAL | settings,
        "experiments": {"main": {"axes": axes}},
    }
    (project / "config/studies/study.yaml").write_text(yaml.safe_dump(study))
    return load({"studies": "study"})


FORM = "is not of the form concat-CLUSTERS[-classifierN][-stepsN][-balancedN][-warmN]"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "too many clusters": (
        {"procedure": "concat-11"},
        "procedure 'concat-11' makes 11 clusters, but there are only 10 clients",
    ),
    "too few rounds": ({"rounds": 1}, "rounds must be at least 2"),
    "a schedule": ({"schedule": "cosine"}, "follows lr_decay, not the schedule 'cosine'"),
    "a server rule": ({"strategy": "fedavgm"}, "has no use for the server rule 'momentum'"),
    "losses": (
        {"strategy": "loss", "reserve": 60},
        "has no global model to show to the selector 'loss'",
    ),
    "no clusters": ({"procedure": "concat"}, f"procedure 'concat' {FORM}: CLUSTERS is missing"),
    "only a classifier": (
        {"procedure": "concat-5-classifier1"},
        "classifier is 1, but must be below 1",
    ),
    "half a balance": ({"procedure": "concat-5-balanced2"}, "balanced is 2, but must be at most 1"),
    "another word": ({"procedure": "concatenate-5"}, "procedure 'concatenate-5' is not known"),
    "what is so anyway": (
        {"procedure": "concat-5-classifier0.2"},
        "procedure 'concat-5-classifier0.2' is written 'concat-5'",
    ),
    "parameters of none": (
        {"procedure": "federated-2"},
        "procedure 'federated-2' is not of the form federated",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsuitable_settings_are_refused_in_one_sentence(name: str, project: Path):
    settings, sentence = REFUSED[name]
    with pytest.raises(UserError) as caught:
        planned(project, **({"procedure": "concat-5"} | settings))
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_probing_selectors_are_refused():
    with pytest.raises(ValueError, match="has no global model to show to the selector 'probe'"):
        TWO.check(small_cell(clients=9, rounds=9, selector=Probe()))
    TWO.check(small_cell(clients=9, rounds=9, selector=Entropy(buffer=0.5)))


def test_dropout_of_clients_is_refused():
    with pytest.raises(ValueError, match="hears everybody whom it asks: participation is 'dropout"):
        TWO.check(small_cell(clients=9, rounds=9, participation="dropout-0.3"))
    TWO.check(small_cell(clients=9, rounds=9))


def test_its_parameters_are_part_of_the_identity_and_its_science_is_one(project: Path):
    digests = [
        next(iter(planned(project, procedure=name).cells))
        for name in ("federated", "concat-5", "concat-4", "concat-5-warm1")
    ]
    assert len(set(digests)) == 4
    (cell,) = planned(project, procedure="concat-5-warm1").cells.values()
    assert cell.science["procedure:concat"] == 1


def test_a_cell_from_plan_to_record(project: Path):
    """The record evaluates by the joined model, and names each client's cluster."""
    plan = planned(
        project,
        strategy="fedconcat",
        procedure="concat-3-classifier0.5-balanced1",
        rounds=40,
        momentum=0.9,
    )
    (cell,) = plan.cells.values()
    write_plan(cell.planned())
    make_inputs(plan, cell)
    run_cell(plan_file(cell.digest), device="cpu")
    record = read(cell.path)
    metrics = record.history.metrics
    assert [value for _, value in metrics["stage"]] == [1] * 20 + [2] * 20
    right, tested = (record.classes[name].sum() for name in ("right", "tested"))
    assert right / tested == pytest.approx(metrics["test_accuracy"][-1][1]) and right / tested > 0.5
    assert sorted(np.bincount(record.clients["cluster"])) in ([2, 4, 4], [3, 3, 4])
    accuracies = record.clients["accuracy"] @ record.clients["size"] / record.clients["size"].sum()
    assert 0.5 < accuracies < 1
