"""Batches and FLOPs of the workloads against hand-computed numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.networks import build, forward_operations, round_operations
from benchmarks.workloads import W1, W2, W2A, W3, W4, Workload

CONV32 = (
    26 * 26 * 9 * 32,
    11 * 11 * 9 * 32 * 64 + 1600 * 128 + 128 * 10,
)  # multiplications in the first layer and in all others


def first_layer(workload: Workload) -> int:
    """Hand-computed multiplications of the first convolution on one sample."""
    return {"W1": 32 * 32 * 25 * 3 * 64, "W2": 28 * 28 * 25 * 6, "W2a": 28 * 28 * 25 * 3 * 6}[
        workload.name
    ]


@pytest.mark.parametrize("workload", [W1, W2, W2A], ids=lambda workload: workload.name)
def test_flops_agree_with_torchs_own_count(workload: Workload):
    with FlopCounterMode(display=False) as operations:
        build(workload)(torch.zeros(1, *workload.shape))
    forward = operations.get_total_flops() // 2
    assert forward_operations(workload) == 2 * forward
    samples = {"W1": 10 * 4 * 64, "W2": 10 * 5 * 500, "W2a": 10 * 5 * 500}[workload.name]
    assert workload.samples == samples
    assert round_operations(workload) == samples * 2 * (3 * forward - first_layer(workload))


def test_flops_of_the_single_sample_network():
    first, others = CONV32
    assert forward_operations(W3) == 2 * (first + others)
    assert round_operations(W3) == 400 * 2 * (2 * first + 3 * others)


@pytest.mark.parametrize(
    ("workload", "weights"),
    [(W1, 1_773_796), (W2, 61_706), (W3, 225_034), (W4, 1_773_796)],
    ids=lambda value: str(value)[:20],
)
def test_number_of_weights(workload: Workload, weights: int):
    assert sum(parameter.numel() for parameter in build(workload).parameters()) == weights


def test_batches_by_hand():
    load = replace(W1, size=5, batch=2, J="J4")
    orders = np.array([[4, 3, 2, 1, 0], [0, 1, 2, 3, 4]])
    assert load.epochs == 2
    assert [batch.tolist() for batch in load.batches(orders)] == [[4, 3], [2, 1], [0], [0, 1]]
    assert load.samples == 10 * 7
    assert replace(load, J="J2e").samples == 10 * 10


def test_lenet5_on_a_two_pixel_border_equals_padding():
    """Padding the first convolution of 28x28 images equals giving the images a black border."""
    network = build(W2)
    images = torch.randn(2, 1, 28, 28)
    first = network[0]
    padded = torch.nn.functional.conv2d(images, first.weight, first.bias, padding=2)
    torch.testing.assert_close(first(torch.nn.functional.pad(images, [2] * 4)), padded)
