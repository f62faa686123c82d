"""Loss and accuracy of a model on some samples."""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from cohort.cell.evaluations import evaluated_at_once
from cohort.data.samples import Samples
from cohort.training.fused.network import outputs_of
from cohort.training.updates import Weights

BINS = 15  # of confidence, as is usual for the calibration error


class Evaluation(NamedTuple):
    """Mean cross-entropy, accuracy, the expected calibration error (how far confidence and accuracy lie apart in the mean over samples,
    compared within bins of equal width of the confidence), and how many classes the model names at all."""

    loss: float
    accuracy: float
    calibration_error: float
    classes_named: int

    def of(self, split: str) -> dict[str, float]:
        """The metrics of a split by name."""
        return {f"{split}_{name}": value for name, value in self._asdict().items()}


def chunks(samples: Samples, indices: Tensor) -> tuple[Tensor, ...]:
    """The samples with these indices in as many parts as they are evaluated in."""
    return indices.split(evaluated_at_once(samples.values.shape[1:]))


@torch.inference_mode()
def evaluate(model: nn.Module, weights: Weights, samples: Samples, indices: Tensor) -> Evaluation:
    """How a model does on the samples with these indices; on no samples it is NaN."""
    model.load_state_dict(weights)
    model.eval()
    loss, right = 0.0, 0
    named: set[int] = set()
    excess = torch.zeros(
        BINS, dtype=torch.float64, device=indices.device
    )  # confidence less right answers, by bin
    for chunk in chunks(samples, indices):
        outputs, targets = outputs_of(model, samples.inputs(chunk)), samples.labels[chunk]
        loss += float(cross_entropy(outputs, targets, reduction="sum"))
        confidence, answers = outputs.double().softmax(dim=1).max(dim=1)
        named.update(answers.unique().tolist())
        hits = answers == targets
        right += int(hits.sum())
        bins = (confidence.nan_to_num() * BINS).ceil().long().clamp(1, BINS) - 1
        excess += (confidence - hits.double()) @ one_hot(bins, BINS).double()
    count = len(indices) or math.nan
    return Evaluation(loss / count, right / count, float(excess.abs().sum()) / count, len(named))


@torch.inference_mode()
def right_by_class(
    model: nn.Module, weights: Weights, samples: Samples, indices: Tensor, classes: int
) -> tuple[Tensor, Tensor]:
    """How many samples of each class there are, and how many of them a model gets right."""
    model.load_state_dict(weights)
    model.eval()
    right = torch.zeros(classes, dtype=torch.int64, device=indices.device)
    for chunk in chunks(samples, indices):
        targets = samples.labels[chunk]
        right += targets[
            outputs_of(model, samples.inputs(chunk)).argmax(dim=1) == targets
        ].bincount(minlength=classes)
    return samples.labels[indices].bincount(minlength=classes), right


@torch.inference_mode()
def softmax_of(model: nn.Module, weights: Weights, samples: Samples, indices: Tensor) -> Tensor:
    """The probabilities that a model gives each class, one row per sample, in float64."""
    model.load_state_dict(weights)
    model.eval()
    parts = [outputs_of(model, samples.inputs(chunk)) for chunk in chunks(samples, indices)]
    return torch.cat([part.double().softmax(dim=1) for part in parts])


@torch.inference_mode()
def mean_softmax(model: nn.Module, weights: Weights, samples: Samples, indices: Tensor) -> Tensor:
    """The probabilities that a model gives the classes, in the mean over samples; NaN on none."""
    model.load_state_dict(weights)
    model.eval()
    sums = [
        outputs_of(model, samples.inputs(chunk)).double().softmax(dim=1).sum(dim=0)
        for chunk in chunks(samples, indices)
    ]
    return torch.stack(sums).sum(dim=0) / len(indices)


def fingerprint(weights: Weights) -> str:
    """A SHA-256 of all weights: equal when two models are equal to the last bit."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(
            name.encode() + b"\0" + weights[name].detach().cpu().contiguous().numpy().tobytes()
        )
    return digest.hexdigest()


def all_finite(weights: Weights) -> bool:
    """Whether no weight is NaN or infinite."""
    return all(bool(tensor.isfinite().all()) for tensor in weights.values())
