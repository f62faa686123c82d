"""Loss, accuracy and calibration error against NumPy, fingerprints, and what selectors need."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from cohort.training import evaluation
from cohort.training.evaluation import correct_by_class, evaluate, fingerprint
from cohort.training.updates import Weights
from tests.training.small_task import plain_samples

RNG = np.random.default_rng(8)
IMAGES, LABELS = RNG.normal(size=(23, 5)), RNG.integers(0, 4, 23)
SAMPLES = plain_samples(torch.from_numpy(IMAGES), torch.from_numpy(LABELS))
SHAPES = {"weight": (4, 5), "bias": (4,)}
CLIENTS = [
    {name: torch.from_numpy(RNG.normal(size=shape)) for name, shape in SHAPES.items()}
    for _ in range(3)
]


def linear() -> nn.Module:
    return nn.Linear(5, 4).double()


def by_hand(weights: Weights, indices: list[int]) -> tuple[float, float]:
    """Mean negative log-probability of the true class, and share of samples where it is largest."""
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


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_model_that_is_not_finite_has_no_accuracy(bad: float):
    """Even where its outputs are finite for these samples: the weight meets an input of 0."""
    samples = replace(SAMPLES, values=SAMPLES.values.clone())
    samples.values[:, 0] = 0
    weights = CLIENTS[0] | {"weight": CLIENTS[0]["weight"].clone()}
    weights["weight"][2, 0] = bad
    indices = torch.arange(23)
    *means, named = evaluate(linear(), weights, samples, indices)
    assert all(map(math.isnan, means)) and named == 0
    tested, right = correct_by_class(linear(), weights, samples, indices, 4, False)
    assert tested.tolist() == np.bincount(LABELS).tolist() and right.tolist() == [0] * 4


def test_outputs_that_overflow_are_no_right_answers():
    weights = {name: torch.full_like(tensor, 1e308) for name, tensor in CLIENTS[0].items()}
    samples = replace(SAMPLES, values=SAMPLES.values * 1e10)
    indices = torch.arange(23)
    *means, named = evaluate(linear(), weights, samples, indices)
    assert all(map(math.isnan, means)) and named == 0
    assert not correct_by_class(linear(), weights, samples, indices, 4, False)[1].any()


def test_classes_named_and_right_answers_by_class():
    """The answer is the class with the largest output."""
    indices = list(range(2, 23))
    outputs = IMAGES[indices] @ CLIENTS[2]["weight"].numpy().T + CLIENTS[2]["bias"].numpy()
    answers, labels = outputs.argmax(axis=1), LABELS[indices]
    result = evaluate(linear(), CLIENTS[2], SAMPLES, torch.tensor(indices))
    assert result.classes_named == len(set(answers.tolist()))
    # the fifth class has no samples
    tested, right = correct_by_class(linear(), CLIENTS[2], SAMPLES, torch.tensor(indices), 5, False)
    assert tested.tolist() == [int((labels == label).sum()) for label in range(5)]
    assert right.tolist() == [int(((answers == c) & (labels == c)).sum()) for c in range(5)]


def calibration_by_hand(weights: Weights, indices: list[int]) -> float:
    """In bins (0, 1/15], (1/15, 2/15], ...: the distance between mean confidence and accuracy, weighted by samples."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for index in indices:
        outputs = np.exp(weights["weight"].numpy() @ IMAGES[index] + weights["bias"].numpy())
        confidence = outputs.max() / outputs.sum()
        bin_index = next(number for number in range(15) if confidence <= (number + 1) / 15)
        bins.setdefault(bin_index, []).append((confidence, outputs.argmax() == LABELS[index]))
    assert len(bins) > 3 or len(indices) < 23
    means = [(len(pairs), *np.mean(pairs, axis=0)) for pairs in bins.values()]
    return float(sum(n * abs(sure - right) for n, sure, right in means) / len(indices))


@pytest.mark.parametrize("client", range(3))
@pytest.mark.parametrize("chunk", [4, 1000])
def test_calibration_error_by_hand(client: int, chunk: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(evaluation, "evaluation_batch_size", lambda shape: chunk)
    for indices in (list(range(23)), [4]):
        result = evaluate(linear(), CLIENTS[client], SAMPLES, torch.tensor(indices))
        expected = calibration_by_hand(CLIENTS[client], indices)
        assert result.calibration_error == pytest.approx(expected, rel=1e-12)


def test_fingerprints_change_with_one_bit_of_any_tensor():
    base = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
    base["count"] = torch.tensor(3)
    results = {fingerprint(base)}
    for name in ("weight", "bias"):
        flipped = {key: tensor.clone() for key, tensor in base.items()}
        flipped[name].view(torch.int32).view(-1)[0] ^= 1
        results.add(fingerprint(flipped))
    results.add(fingerprint(base | {"count": torch.tensor(4)}))
    results.add(fingerprint({name.replace("weight", "other"): base[name] for name in base}))
    results.add(fingerprint(base | {"weight": base["weight"].double()}))
    assert len(results) == 6
    assert all(len(digest) == 64 for digest in results)
