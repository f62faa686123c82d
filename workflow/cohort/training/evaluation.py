"""Loss and accuracy of a model on some samples."""

from __future__ import annotations

import hashlib
import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from cohort.data.samples import Samples
from cohort.training.updates import Weights

CHUNK = 1000


@torch.inference_mode()
def evaluate(model: nn.Module, weights: Weights, samples: Samples, indices: torch.Tensor) -> tuple[float, float]:
    """Mean cross-entropy and accuracy over the samples with these indices; of no samples both are NaN."""
    if not len(indices):
        return math.nan, math.nan
    model.load_state_dict(weights)
    model.eval()
    loss, right = 0.0, 0
    for chunk in indices.split(CHUNK):
        outputs, targets = model(samples.inputs(chunk)), samples.labels[chunk]
        loss += float(cross_entropy(outputs, targets, reduction="sum"))
        right += int((outputs.argmax(dim=1) == targets).sum())
    return loss / len(indices), right / len(indices)


def fingerprint(weights: Weights) -> str:
    """A SHA-256 of all weights: equal when two models are equal to the last bit."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode() + b"\0" + weights[name].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def all_finite(weights: Weights) -> bool:
    """Whether no weight is NaN or infinite."""
    return all(bool(tensor.isfinite().all()) for tensor in weights.values())
