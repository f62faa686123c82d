"""Concatenated networks: features, outputs before and after they are joined, frozen parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from cohort.models import MODELS
from cohort.training.cursor import strip_prefix
from cohort.training.procedures.concat.concatenated import (
    Concatenated,
    features,
    initial_weights,
    last_linear,
    prefix_of,
    summed_classifiers,
)
from tests.training.small_task import small_model

SHAPES = [(1, 8, 8), (3, 32, 32), (1, 28, 28), (3, 224, 224), (12,)]


def network_with_dropout() -> nn.Module:
    """A tiny EfficientNet: convolution, batch normalization, pooling, and dropout before the last
    layer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        body = nn.Sequential(
            nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
        return nn.Sequential(body, nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 3))).double()


def network_of(name: str) -> tuple[nn.Module, torch.Tensor]:
    """A network of the catalog and a batch of two inputs for it."""
    model = MODELS[name]()
    for shape in SHAPES:
        try:
            model.check(shape)
        except ValueError:
            continue
        if ("images" in model.kinds) == (len(shape) == 3):
            inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(2, *shape))).float()
            given = inputs.abs().long() if "text" in model.kinds else inputs
            return model.build(shape, 10).eval(), given
    raise AssertionError(f"{name} takes none of {SHAPES}")


@pytest.mark.parametrize("name", MODELS)
def test_every_networks_output_is_its_last_layer_on_its_features(name: str):
    network, inputs = network_of(name)
    with torch.no_grad():
        seen, answer = features(network, inputs), network(inputs)
        assert seen.shape == (2, last_linear(network).in_features) and answer.shape == (2, 10)
        assert torch.equal(
            nn.functional.linear(seen, last_linear(network).weight, last_linear(network).bias),
            answer,
        )
    assert not last_linear(network)._forward_pre_hooks


def test_features_are_taken_after_dropout():
    network, inputs = (
        network_with_dropout().eval(),
        torch.randn(4, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1)),
    )
    assert torch.equal(features(network, inputs), network[0](inputs))
    assert (features(network.train(), inputs) == 0).any()


@pytest.fixture
def three() -> Concatenated:
    """Three concatenated networks with different weights."""
    made = Concatenated(small_model(), 3, seed=5)
    with torch.no_grad():
        for number, network in enumerate(made.networks):
            for parameter in network.parameters():
                parameter.mul_(1 + number)
    return made.eval()


INPUTS = torch.from_numpy(np.random.default_rng(2).normal(size=(5, 1, 8, 8)))


def test_before_joining_the_output_is_the_mean_probability(three: Concatenated):
    scores = np.stack([network(INPUTS).detach().numpy() for network in three.networks])
    shares = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    answer = three(INPUTS).detach()
    np.testing.assert_allclose(answer.exp().numpy(), shares.mean(axis=0), rtol=1e-12)
    assert float(
        nn.functional.cross_entropy(answer, torch.zeros(5, dtype=torch.int64))
    ) == pytest.approx(-np.log(shares.mean(axis=0)[:, 0]).mean(), rel=1e-12)


def test_confident_wrong_networks_give_no_infinite_loss(three: Concatenated):
    with torch.no_grad():
        for network in three.networks:
            last_linear(network).bias.copy_(torch.tensor([-5e3, 0, 5e3]))
    assert (
        math.isfinite(float(three(INPUTS).min()))
        and three(INPUTS).argmax(dim=1).tolist() == [2] * 5
    )


def test_after_joining_the_output_is_the_classifiers_on_all_features(three: Concatenated):
    three.joined = True
    seen = np.concatenate(
        [network[:-1](INPUTS).detach().numpy() for network in three.networks], axis=1
    )
    assert seen.shape == (5, 3 * 64)
    expected = (
        seen @ three.classifier.weight.detach().numpy().T + three.classifier.bias.detach().numpy()
    )
    np.testing.assert_allclose(three(INPUTS).detach().numpy(), expected, rtol=1e-12)


def test_summed_classifiers_give_the_sum_of_all_outputs(three: Concatenated):
    expected = sum(network(INPUTS) for network in three.networks).detach()
    three.load_state_dict(three.state_dict() | summed_classifiers(three, three.state_dict()))
    three.joined = True
    torch.testing.assert_close(three(INPUTS), expected, rtol=1e-12, atol=1e-12)


def test_only_the_classifier_has_gradients():
    """The networks behave as in evaluation while the classifier trains."""
    made = Concatenated(network_with_dropout(), 2, seed=5)
    made.joined = True
    before = {name: tensor.clone() for name, tensor in made.state_dict().items()}
    answers = [made.train()(INPUTS), made.eval()(INPUTS)]
    assert torch.equal(*answers)
    made.train()(INPUTS).sum().backward()
    changed = [
        name for name, tensor in made.state_dict().items() if not torch.equal(tensor, before[name])
    ]
    assert changed == [] and not any(
        parameter.grad is not None for parameter in made.networks.parameters()
    )
    assert all(bool(parameter.grad.any()) for parameter in made.classifier.parameters())


def test_all_networks_start_equal_and_the_classifier_from_its_seed():
    model = small_model()
    weights = {name: tensor + 1 for name, tensor in model.state_dict().items()}
    state = torch.random.get_rng_state()
    one, same, other = (
        initial_weights(Concatenated(model, 2, seed), weights) for seed in (5, 5, 6)
    )
    assert torch.equal(torch.random.get_rng_state(), state)
    for cluster in range(2):
        assert all(
            torch.equal(tensor, weights[name])
            for name, tensor in strip_prefix(one, prefix_of(cluster)).items()
        )
    assert list(strip_prefix(one, prefix_of(1))) == list(weights)
    assert torch.equal(one["classifier.weight"], same["classifier.weight"]) and one[
        "classifier.weight"
    ].shape == (3, 128)
    assert not torch.equal(one["classifier.weight"], other["classifier.weight"])
    assert set(one) == set(Concatenated(model, 2, 5).state_dict())
