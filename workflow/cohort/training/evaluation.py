"""Loss and accuracy of a model on some samples."""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

from cohort.data.samples import Samples
from cohort.training.updates import Weights

CHUNK = 1000
BINS = 15  # of confidence, as is usual for the calibration error


class Evaluation(NamedTuple):
    """Mean cross-entropy, accuracy, and the expected calibration error: how far confidence and accuracy lie apart in the mean over samples,
    compared within bins of equal width of the confidence."""

    loss: float
    accuracy: float
    calibration_error: float

    def of(self, split: str) -> dict[str, float]:
        """The metrics of a split by name."""
        return {f"{split}_{name}": value for name, value in self._asdict().items()}


@torch.inference_mode()
def evaluate(model: nn.Module, weights: Weights, samples: Samples, indices: torch.Tensor) -> Evaluation:
    """How a model does on the samples with these indices; on no samples it is NaN."""
    model.load_state_dict(weights)
    model.eval()
    loss, right = 0.0, 0
    excess = torch.zeros(BINS, dtype=torch.float64, device=indices.device)  # confidence less right answers, by bin
    for chunk in indices.split(CHUNK):
        outputs, targets = model(samples.inputs(chunk)), samples.labels[chunk]
        loss += float(cross_entropy(outputs, targets, reduction="sum"))
        confidence, answers = outputs.double().softmax(dim=1).max(dim=1)
        hits = answers == targets
        right += int(hits.sum())
        bins = (confidence.nan_to_num() * BINS).ceil().long().clamp(1, BINS) - 1
        excess += (confidence - hits.double()) @ one_hot(bins, BINS).double()
    count = len(indices) or math.nan
    return Evaluation(loss / count, right / count, float(excess.abs().sum()) / count)


def fingerprint(weights: Weights) -> str:
    """A SHA-256 of all weights: equal when two models are equal to the last bit."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode() + b"\0" + weights[name].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def all_finite(weights: Weights) -> bool:
    """Whether no weight is NaN or infinite."""
    return all(bool(tensor.isfinite().all()) for tensor in weights.values())
