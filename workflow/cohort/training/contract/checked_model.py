"""The model's contract."""

from __future__ import annotations

import sys

import torch
from torch import nn

from cohort.core import user_files
from cohort.core.components import source_of
from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.contract.mistakes import WrongAnswer

SAMPLES = 2
RTOL, ATOL = 1e-4, 1e-6  # kernels of a GPU may add up in another order


@torch.no_grad()
def check_model(name: str, network: nn.Module, samples: Samples, classes: int) -> None:
    """Raise WrongAnswer unless the network in evaluation mode puts out a number for each sample and
    class, and the same numbers twice."""
    model = MODELS.get(name)
    if model is None or not user_files.is_user_module(sys.modules[model.__module__]):
        return
    what = f"model '{name}' ({source_of(model)})"
    indices = torch.arange(min(SAMPLES, len(samples.labels)), device=samples.labels.device)
    inputs, was_training = samples.inputs(indices), network.training
    network.eval()
    try:
        first, second = network(inputs), network(inputs)
    except Exception as error:
        raise WrongAnswer(
            f"{what} fails on samples of shape {tuple(inputs.shape[1:])}: "
            f"{type(error).__name__}: {error}"
        ) from error
    finally:
        network.train(was_training)
    expected = len(inputs), classes
    if not isinstance(first, torch.Tensor) or tuple(first.shape) != expected:
        form = tuple(first.shape) if isinstance(first, torch.Tensor) else f"{first!r:.80}"
        raise WrongAnswer(f"{what} puts out {form} for {len(inputs)} samples, not {expected}")
    if not torch.allclose(first, second, rtol=RTOL, atol=ATOL, equal_nan=True):
        raise WrongAnswer(
            f"{what} puts out other numbers for the same samples each time in evaluation mode: "
            "forward must not draw random numbers there, or remember earlier calls"
        )
