"""Stored values become a network's inputs on a device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cohort.core.hdf5 import new_hdf5
from cohort.data.samples import Samples, load
from cohort.data.store import FORMAT


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_split_is_loaded_in_the_given_precision(dtype: torch.dtype, tmp_path: Path):
    rng = np.random.default_rng(0)
    stored = {
        "train": rng.integers(0, 256, (6, 3, 4, 4), dtype=np.uint8),
        "test": rng.integers(0, 256, (2, 3, 4, 4), dtype=np.uint8),
    }
    mean, std = np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.7])
    with new_hdf5(tmp_path / "data.h5") as file:
        facts = {"dataset": "noise", "classes": 2, "scale": 255, "mean": mean, "std": std}
        file.attrs.update(facts | {"format": FORMAT})
        for name, images in stored.items():
            file[f"{name}/values"] = images
            file[f"{name}/labels"] = (np.arange(len(images)) % 2).astype(np.uint16)
    for name, images in stored.items():
        samples = load(tmp_path / "data.h5", name, torch.device("cpu"), dtype)
        assert samples.values.dtype == torch.uint8
        assert samples.labels.tolist() == [index % 2 for index in range(len(images))]
        inputs = samples.inputs(torch.arange(len(images)))
        assert inputs.dtype == dtype
        expected = (images / 255 - mean[:, None, None]) / std[:, None, None]
        np.testing.assert_allclose(
            inputs.numpy(), expected, rtol=0, atol=1e-6 if dtype == torch.float32 else 1e-14
        )
