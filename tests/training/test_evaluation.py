"""Loss and accuracy against numpy, fingerprints, and what selectors ask to be measured."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cohort.training.needs import (
    Lookout,
    bytes_each,
    bytes_once,
    reports,
    reserved_loss,
    soft_labels,
)
from torch import nn

from cohort.training import evaluation
from cohort.training.evaluation import all_finite, evaluate, fingerprint, right_by_class
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.batched.trainer import BatchedTrainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates, Weights, stack
from tests.training.small_task import plain_samples, small_settings

RNG = np.random.default_rng(8)
IMAGES, LABELS = RNG.normal(size=(23, 5)), RNG.integers(0, 4, 23)
SAMPLES = plain_samples(torch.from_numpy(IMAGES), torch.from_numpy(LABELS))
CLIENTS = [
    {
        "weight": torch.from_numpy(RNG.normal(size=(4, 5))),
        "bias": torch.from_numpy(RNG.normal(size=4)),
    }
    for _ in range(3)
]


def linear() -> nn.Module:
    return nn.Linear(5, 4).double()


def by_hand(weights: Weights, indices: list[int]) -> tuple[float, float]:
    """Mean negative log-probability of the right class, share of samples whose right class has the largest output."""
    losses, right = [], []
    for index in indices:
        outputs = weights["weight"].numpy() @ IMAGES[index] + weights["bias"].numpy()
        losses.append(np.log(np.exp(outputs).sum()) - outputs[LABELS[index]])
        right.append(np.argmax(outputs) == LABELS[index])
    return float(np.mean(losses)), float(np.mean(right))


@pytest.mark.parametrize(
    "indices", [list(range(23)), [4], [3, 1, 4, 15, 9, 2, 6], list(range(0, 23, 2))]
)
def test_loss_and_accuracy_by_hand(indices: list[int]):
    loss, accuracy, *_ = evaluate(linear(), CLIENTS[0], SAMPLES, torch.tensor(indices))
    expected = by_hand(CLIENTS[0], indices)
    assert loss == pytest.approx(expected[0], rel=1e-12)
    assert accuracy == expected[1]


@pytest.mark.parametrize("chunk", [1, 4, 22, 23, 24])
def test_chunks_do_not_matter(chunk: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(evaluation, "evaluated_at_once", lambda shape: chunk)
    loss, accuracy, *_ = evaluate(linear(), CLIENTS[1], SAMPLES, torch.arange(23))
    expected = by_hand(CLIENTS[1], list(range(23)))
    assert loss == pytest.approx(expected[0], rel=1e-12)
    assert accuracy == expected[1]


def test_how_many_classes_are_named_and_right_class_by_class():
    """An answer is the class of the largest output."""
    indices = list(range(2, 23))
    outputs = IMAGES[indices] @ CLIENTS[2]["weight"].numpy().T + CLIENTS[2]["bias"].numpy()
    answers, labels = outputs.argmax(axis=1), LABELS[indices]
    assert evaluate(linear(), CLIENTS[2], SAMPLES, torch.tensor(indices)).classes_named == len(
        set(answers.tolist())
    )
    tested, right = right_by_class(
        linear(), CLIENTS[2], SAMPLES, torch.tensor(indices), 5
    )  # nothing is of the fifth class
    assert tested.tolist() == [int((labels == label).sum()) for label in range(5)]
    assert right.tolist() == [
        sum(answer == label == named for answer, named in zip(answers, labels, strict=True))
        for label in range(5)
    ]


def test_a_constant_answer_names_one_class():
    weights = {
        "weight": torch.zeros(4, 5, dtype=torch.float64),
        "bias": torch.tensor([0.0, 3.0, 0.0, 0.0], dtype=torch.float64),
    }
    assert evaluate(linear(), weights, SAMPLES, torch.arange(23)).classes_named == 1


def calibration_by_hand(weights: Weights, indices: list[int]) -> float:
    """Bins (0, 1/15], (1/15, 2/15], ...: the distance of mean confidence and accuracy in each, weighted by its samples."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for index in indices:
        outputs = np.exp(weights["weight"].numpy() @ IMAGES[index] + weights["bias"].numpy())
        confidence = outputs.max() / outputs.sum()
        place = next(number for number in range(15) if confidence <= (number + 1) / 15)
        bins.setdefault(place, []).append((confidence, outputs.argmax() == LABELS[index]))
    assert len(bins) > 3 or len(indices) < 23
    gaps = [
        len(pairs)
        * abs(np.mean([pair[0] for pair in pairs]) - np.mean([pair[1] for pair in pairs]))
        for pairs in bins.values()
    ]
    return float(sum(gaps) / len(indices))


@pytest.mark.parametrize("client", range(3))
@pytest.mark.parametrize("chunk", [4, 1000])
def test_calibration_error_by_hand(client: int, chunk: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(evaluation, "evaluated_at_once", lambda shape: chunk)
    for indices in (list(range(23)), [4]):
        found = evaluate(
            linear(), CLIENTS[client], SAMPLES, torch.tensor(indices)
        ).calibration_error
        assert found == pytest.approx(calibration_by_hand(CLIENTS[client], indices), rel=1e-12)


def test_accuracy_is_not_trivial_here():
    assert 0 < by_hand(CLIENTS[0], list(range(23)))[1] < 1


def test_dropout_is_off():
    model = nn.Sequential(nn.Dropout(0.9), nn.Linear(5, 4).double()).train()
    weights = {f"1.{name}": tensor for name, tensor in CLIENTS[0].items()}
    loss, *_ = evaluate(model, weights, SAMPLES, torch.arange(23))
    assert loss == pytest.approx(by_hand(CLIENTS[0], list(range(23)))[0], rel=1e-12)


def test_fingerprint_changes_with_one_bit_of_any_tensor():
    base = {
        "weight": torch.tensor([[1.0, 2.0]]),
        "bias": torch.tensor([0.5]),
        "count": torch.tensor(3),
    }
    found = {fingerprint(base)}
    for name in ("weight", "bias"):
        flipped = {key: tensor.clone() for key, tensor in base.items()}
        flipped[name].view(torch.int32).view(-1)[0] ^= 1
        found.add(fingerprint(flipped))
    found.add(fingerprint(base | {"count": torch.tensor(4)}))
    found.add(fingerprint({"other": base["weight"], "bias": base["bias"], "count": base["count"]}))
    found.add(fingerprint(base | {"weight": base["weight"].double()}))
    assert len(found) == 6
    assert all(len(word) == 64 for word in found)


def test_fingerprint_does_not_depend_on_order_or_layout():
    weight = torch.arange(6.0).view(2, 3)
    base = {"a": weight, "b": torch.ones(1)}
    assert fingerprint(base) == fingerprint({"b": torch.ones(1), "a": weight.t().contiguous().t()})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_weight_that_is_no_number_is_found(value: float):
    weights = {"a": torch.ones(2, 2), "b": torch.zeros(3), "count": torch.tensor(7)}
    assert all_finite(weights)
    weights["b"][1] = value
    assert not all_finite(weights)


def cohort_of_three() -> Updates:
    return Updates(
        stack(CLIENTS),
        torch.tensor([2.0, 1.0, 3.0]),
        torch.tensor([1, 1, 1]),
        torch.zeros(3),
        clients=(0, 2, 1),
    )


def lookout_of(reserved: list[int], kind: type[Trainer] = SerialTrainer) -> Lookout:
    shards = [np.array([3, 5]), np.array([1, 2, 9]), np.array([8])]
    return Lookout(
        kind(linear(), small_settings(), CrossEntropy(), SAMPLES, shards),
        SAMPLES,
        torch.tensor(reserved),
        SAMPLES,
        shards,
    )


@pytest.mark.parametrize("kind", [SerialTrainer, BatchedTrainer])
def test_reserved_loss_is_each_local_models_loss_on_the_reserved_samples(kind: type[Trainer]):
    reserved = [2, 7, 11, 20]
    found = reserved_loss(cohort_of_three(), lookout_of(reserved, kind))
    np.testing.assert_allclose(
        found, [by_hand(client, reserved)[0] for client in CLIENTS], rtol=1e-12
    )
    assert len(set(found.tolist())) == 3


def test_what_is_measured_is_what_is_needed_and_it_is_counted():
    lookout = lookout_of([2, 7, 11, 20])
    assert reports(frozenset(), cohort_of_three(), lookout) == ({}, 0)
    assert reports({"label_counts"}, cohort_of_three(), lookout) == ({}, 0)
    measured, looks = reports({"label_counts", "reserved_loss"}, cohort_of_three(), lookout)
    assert set(measured) == {"reserved_loss"}
    assert looks == 3 * 4  # three models, four samples each


def test_soft_labels_are_each_local_models_mean_softmax_on_its_own_samples():
    found = soft_labels(cohort_of_three(), lookout_of([0]))
    for row, (client, own) in enumerate(zip(CLIENTS, ([3, 5], [8], [1, 2, 9]), strict=True)):
        outputs = torch.func.functional_call(linear(), client, SAMPLES.inputs(torch.tensor(own)))
        np.testing.assert_allclose(
            found[row], outputs.double().softmax(dim=1).mean(dim=0).detach().numpy(), rtol=1e-12
        )
    measured, looks = reports({"soft_labels"}, cohort_of_three(), lookout_of([0]))
    assert set(measured) == {"soft_labels"} and looks == 6
    assert (
        bytes_each({"soft_labels"}, 10) == 40
        and bytes_each({"label_counts", "reserved_loss"}, 10) == 0
    )


def test_bytes_that_clients_send_once():
    """Ten classes, four bytes each, from 100 clients."""
    assert bytes_once({"label_counts"}, 100, 10) == 4000
    assert bytes_once({"reserved_loss"}, 100, 10) == 0
    assert bytes_once(set(), 100, 10) == 0
