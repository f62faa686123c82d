"""Evaluation of models: loss, accuracy, calibration and softmax outputs on given samples. Native
code computes them if the network has any, unless `plain` asks for PyTorch."""

import hashlib
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from cohort.data.samples import Samples
from cohort.native.network import predict
from cohort.settings import evaluation_batch_size
from cohort.training.updates import Weights

BINS = 15  # of confidence, the usual number for the expected calibration error


class Evaluation(NamedTuple):
    """Mean cross-entropy, accuracy, expected calibration error (the mean difference of confidence
    and accuracy, in equal bins of the confidence), and the number of classes predicted."""

    loss: float
    accuracy: float
    calibration_error: float
    classes_named: float

    def metrics(self, split: str) -> dict[str, float]:
        """The metrics by recorded name: `test_loss` and so on for the split `test`."""
        return {f"{split}_{name}": value for name, value in self._asdict().items()}


@torch.inference_mode()
def evaluate(
    model: nn.Module, weights: Weights, samples: Samples, indices: Tensor, *, plain: bool = False
) -> Evaluation:
    """Evaluate a model on the samples with these indices, by PyTorch alone if `plain`. If a weight
    or an output is not finite, means are NaN and no class is named; without samples means are."""
    if not all_finite(weights):  # the argmax of NaN is class 0, which would score
        return Evaluation(math.nan, math.nan, math.nan, 0)
    loss, correct, predicted = 0.0, 0, set[int]()
    # the sum of confidence minus correctness by bin
    excess = torch.zeros(BINS, dtype=torch.float64, device=indices.device)
    for chunk, outputs in _outputs(model, weights, samples, indices, plain):
        targets = samples.labels[chunk]
        loss += float(cross_entropy(outputs, targets, reduction="sum"))
        confidence, predictions = outputs.double().softmax(dim=1).max(dim=1)
        predicted.update(predictions.unique().tolist())
        hits = predictions == targets
        correct += int(hits.sum())
        bins = (confidence.nan_to_num() * BINS).ceil().long().clamp(1, BINS) - 1
        excess += (confidence - hits.double()) @ one_hot(bins, BINS).double()
    if math.isnan(loss):  # finite weights whose outputs overflow
        return Evaluation(math.nan, math.nan, math.nan, 0)
    count = len(indices) or math.nan
    calibration_error = float(excess.abs().sum()) / count
    return Evaluation(loss / count, correct / count, calibration_error, len(predicted))


@torch.inference_mode()
def correct_by_class(
    model: nn.Module, weights: Weights, samples: Samples, indices: Tensor, classes: int, plain: bool
) -> tuple[Tensor, Tensor]:
    """Count the samples of each class, and those that a model classifies correctly: two tensors
    (class). None are correct if a weight is not finite."""
    correct = torch.zeros(classes, dtype=torch.int64, device=indices.device)
    if all_finite(weights):
        for chunk, outputs in _outputs(model, weights, samples, indices, plain):
            targets = samples.labels[chunk]
            hits = (outputs.argmax(dim=1) == targets) & outputs.isfinite().all(dim=1)
            correct += targets[hits].bincount(minlength=classes)
    return samples.labels[indices].bincount(minlength=classes), correct


@torch.inference_mode()
def softmax_of(
    model: nn.Module, weights: Weights, samples: Samples, indices: Tensor, *, plain: bool = False
) -> Tensor:
    """A model's softmax outputs (sample, class) in float64."""
    batches = _outputs(model, weights, samples, indices, plain)
    return torch.cat([outputs.double().softmax(dim=1) for _, outputs in batches])


def _outputs(
    model: nn.Module, weights: Weights, samples: Samples, indices: Tensor, plain: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of the indices, each with the model's outputs for these samples."""
    parts = indices.split(evaluation_batch_size(samples.values.shape[1:]))
    computed = None if plain else predict(model, weights, samples, indices)
    if computed is not None:
        yield from zip(parts, computed.split([len(part) for part in parts]), strict=True)
        return
    model.load_state_dict(weights)
    model.eval()
    for part in parts:
        yield part, model(samples.inputs(part))


def fingerprint(weights: Weights) -> str:
    """A SHA-256 of all weights in hex: equal for bit-identical models."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        content = weights[name].detach().cpu().contiguous().numpy().tobytes()
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()


def all_finite(weights: Weights) -> bool:
    """Whether no weight is NaN or infinite."""
    return all(bool(tensor.isfinite().all()) for tensor in weights.values())
