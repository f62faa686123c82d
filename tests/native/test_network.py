"""The front of `cohort.native`: a network's steps, its state, and its outputs."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.native import kernel
from cohort.native.network import NativeNetwork, Sgd, flatten, predict, unflatten
from cohort.training.evaluation import softmax_of

CLASSES, COUNT = 3, 48
SGD = Sgd(lr=0.05, momentum=0.9, weight_decay=0.01, mu=0.3)


def network(name: str = "small-cnn", side: int = 16) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return MODELS[name]().build((3, side, side), CLASSES).double()


def photos(side: int = 16) -> Samples:
    """Random images of bytes, standardized by channel."""
    rng = np.random.default_rng(8)
    values = torch.from_numpy(rng.integers(0, 256, (COUNT, 3, side, side), dtype=np.uint8))
    mean, std = (torch.from_numpy(rng.uniform(0.2, 1.2, (3, 1, 1))) for _ in range(2))
    labels = torch.from_numpy(rng.integers(0, CLASSES, COUNT))
    return Samples(values, labels, 255.0, mean, std)


def by_pytorch(model: nn.Module, samples: Samples, indices: np.ndarray, size: int) -> np.ndarray:
    """The weights after steps of torch.optim.SGD with a proximal term to where they began."""
    model, start = copy.deepcopy(model), [p.detach().clone() for p in model.parameters()]
    rates = {"lr": SGD.lr, "momentum": SGD.momentum, "weight_decay": SGD.weight_decay}
    optimizer = torch.optim.SGD(model.parameters(), **rates)
    for batch in torch.from_numpy(indices).split(size):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(samples.inputs(batch)), samples.labels[batch])
        pairs = zip(model.parameters(), start, strict=True)
        loss = loss + SGD.mu / 2 * sum(((now - then) ** 2).sum() for now, then in pairs)
        loss.backward()
        optimizer.step()
    return flatten(model.state_dict(), model)


@pytest.mark.parametrize("size", [1, 6])
def test_steps_in_several_calls_are_those_of_pytorch(size: int):
    model, samples = network(), photos()
    indices = np.random.default_rng(2).permutation(COUNT)[: 6 * size]
    counts, weights = np.full(3, size), model.state_dict()
    native = NativeNetwork(model, samples, size, AUGMENTATIONS["none"]())
    native.begin(weights, SGD, anchor=weights)
    native.train(indices[: 3 * size], counts)
    native.train(indices[3 * size :], counts)
    expected = by_pytorch(model, samples, indices, size)
    assert abs(expected - flatten(weights, model)).max() > 0.01
    np.testing.assert_allclose(native.weights(), expected, rtol=0, atol=1e-12)
    for name, tensor in unflatten(expected[None], model).items():
        assert tensor[0].shape == weights[name].shape


@pytest.mark.parametrize(
    "name", ["lenet5", "aml-lenet", "small-cnn", "small-mlp", "stratify-cnn", "vgg11"]
)
def test_outputs_in_evaluation(name: str, monkeypatch: pytest.MonkeyPatch):
    """Native outputs equal the network's but for rounding, without calling its forward pass."""
    samples = photos(32)
    for dtype, bound in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        model = network(name, 32).to(dtype).eval()
        given = replace(samples, mean=samples.mean.to(dtype), std=samples.std.to(dtype))
        chosen = torch.arange(COUNT - 1, -1, -1).repeat(3)
        with torch.inference_mode():
            expected = model(given.inputs(chosen))
            with monkeypatch.context() as patch:
                patch.delattr(nn.Sequential, "forward")
                patch.setattr(kernel, "BATCHES", 1)
                outputs = predict(model, model.state_dict(), given, chosen)
        assert outputs is not None
        assert (outputs - expected).abs().max() < bound * expected.abs().max()


def test_outputs_of_a_network_without_native_code():
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 2), nn.Tanh()).double()
    samples, chosen = photos(), torch.arange(4)
    assert predict(model, model.state_dict(), samples, chosen) is None
    expected = model(samples.inputs(chosen)).softmax(dim=1)
    assert torch.equal(softmax_of(model, model.state_dict(), samples, chosen), expected)
