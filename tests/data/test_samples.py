"""Stored values become a network's inputs on a device."""

import torch

from cohort.data.samples import Samples


def test_inputs_are_scaled_and_standardized_channel_by_channel():
    """Two channels of 1x2 pixels, scale 200: (value / 200 - mean) / std with means 0.5 and 0.25 and
    deviations 0.25 and 0.5."""
    images = torch.tensor([[[[0, 200]], [[100, 50]]], [[[100, 50]], [[200, 0]]]], dtype=torch.uint8)
    mean, std = (
        torch.tensor(values, dtype=torch.float64).view(-1, 1, 1)
        for values in ([0.5, 0.25], [0.25, 0.5])
    )
    samples = Samples(images, torch.tensor([0, 1]), 200.0, mean, std)
    expected = [[[[-2.0, 2.0]], [[0.5, 0.0]]], [[[0.0, -1.0]], [[1.5, -0.5]]]]
    assert samples.inputs(torch.tensor([0, 1])).tolist() == expected
    assert samples.inputs(torch.tensor([1])).tolist() == expected[1:]
    turned = [expected[1], expected[0], expected[1]]
    assert samples.inputs(torch.tensor([1, 0, 1])).tolist() == turned
