"""The network of each workload, the same for every variant, and its FLOPs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.workloads import Workload
from cohort.models import MODELS


def build(workload: Workload) -> nn.Module:
    """Build the workload's network, initialized from torch's global generator."""
    if workload.model in MODELS:
        return MODELS[workload.model]().build(workload.shape, workload.classes)
    return conv32_conv64(workload.classes)


def conv32_conv64(classes: int) -> nn.Module:
    """Two 3x3 convolutions and two linear layers for 28x28 images; 225,034 weights at ten classes.

    None of the five papers uses it.
    """
    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1600, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


def forward_operations(workload: Workload) -> int:
    """Count the FLOPs of one sample's forward pass, of direct convolutions and matrix products."""
    network = build(workload).eval()  # batch normalization cannot train on one sample
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(_one_sample(workload))
    return int(counter.get_total_flops())


def round_operations(workload: Workload) -> int:
    """Count the FLOPs of a round: forward pass and weight gradients, not gradients of images."""
    network = build(workload)
    with FlopCounterMode(display=False) as counter:
        cross_entropy(network(_one_sample(workload)), torch.zeros(1, dtype=torch.int64)).backward()
    return int(counter.get_total_flops()) * workload.samples


def _one_sample(workload: Workload) -> Tensor:
    return torch.zeros(1, *workload.shape)
