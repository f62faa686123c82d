"""Generated code takes the same steps as PyTorch, for every kind of processor."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cohort.native.emitter import SIZES, Target, host
from cohort.native.lanes_program import LanesProgram
from cohort.native.layers import layers_of
from cohort.native.program import CodeRequest, StepOptions
from cohort.native.single_program import is_single_sample
from cohort.native.spectra import is_spectral_faster
from tests.native.networks import Case, networks


def host_128bit(scalar: str) -> Target:
    """The processor of this machine with 128-bit vectors, as on arm64, computing in `scalar`."""
    here = host(scalar)
    return Target(here.cpu, here.features, scalar, 16 // here.size, here.registers)


def avx2(scalar: str) -> Target:
    """An x86-64 processor with AVX2 but without AVX-512."""
    return Target("haswell", "", scalar, 32 // SIZES[scalar], 16)


TARGETS = {"this processor": host, "AVX2": avx2, "vectors of arm64": host_128bit}
PLAIN, EVERYTHING = StepOptions(), StepOptions(*[True] * 6)


def assert_same_steps(case: Case, tolerance: float) -> None:
    expected = case.expected()
    weights, losses = case.actual()
    assert np.abs(weights - expected).max() < tolerance * np.abs(expected).max()
    np.testing.assert_allclose(losses, case.losses, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@settings(max_examples=10)
@given(
    network=networks(),
    batch=st.sampled_from([1, 2, 7, 16, 33, 64, 200]),
    kind=st.sampled_from(sorted(TARGETS)),
    options=st.builds(StepOptions, *[st.booleans()] * 6),
    seed=st.integers(0, 99),
)
def test_any_network(
    network: tuple[nn.Sequential, tuple[int, int, int]],
    batch: int,
    kind: str,
    options: StepOptions,
    seed: int,
):
    """In float64, to 1e-12 of the largest weight."""
    case = Case(*network, batch, TARGETS[kind]("double"), options, steps=3, seed=seed)
    assert_same_steps(case, 1e-12)
    expected, actual = case.outputs()
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def lenet(channels: tuple[int, int], padding: int = 0) -> nn.Sequential:
    side = 32 // 4 if padding else 5
    return nn.Sequential(
        nn.Conv2d(3, channels[0], 5, padding=padding),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(*channels, 5, padding=padding),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(channels[1] * side**2, 20),
        nn.ReLU(),
        nn.Linear(20, 10),
    )


VGG = nn.Sequential(  # wide convolutions on maps of any size, down to two pixels
    nn.Conv2d(3, 9, 3, padding=1),
    nn.MaxPool2d(2),
    nn.ReLU(),
    nn.Conv2d(9, 12, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(12, 17, 3, padding=1),
    nn.MaxPool2d(2),
    nn.ReLU(),
    nn.Conv2d(17, 16, 3, padding=1),
    nn.MaxPool2d(2),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1),
    nn.MaxPool2d(2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(16, 5),
)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize(
    ("network", "side", "spectral"),
    [(lenet((6, 16)), 32, 0), (lenet((8, 24), 2), 32, 1), (VGG, 16, 4)],
    ids=["narrow", "wide", "VGG"],
)
def test_convolutions_by_either_way(kind: str, network: nn.Sequential, side: int, spectral: int):
    """Directly where channels are few, by their spectra where there are many."""
    layers = layers_of(network, (3, side, side))
    assert sum(map(is_spectral_faster, layers[1:])) == spectral
    batch, options = (64, StepOptions(momentum=True)) if kind == "AVX2" else (10, EVERYTHING)
    case = Case(network, (3, side, side), batch, TARGETS[kind]("double"), options)
    assert_same_steps(case, 1e-12)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("network", [lenet((6, 20)), lenet((20, 33), 2)], ids=["small", "large"])
@pytest.mark.parametrize(
    "options",
    [
        PLAIN,
        StepOptions(proximal=True),
        StepOptions(corrects=True),
        StepOptions(proximal=True, corrects=True),
    ],
    ids=["plain", "proximal", "corrected", "both"],
)
def test_one_sample_a_step(kind: str, network: nn.Sequential, options: StepOptions):
    """Without momentum there is code of its own, with channels in the lanes."""
    shape, target = (3, 32, 32), TARGETS[kind]("double")
    layers = layers_of(network, shape)
    assert is_single_sample(CodeRequest(layers, shape, 1, target, "i8", options))
    assert_same_steps(Case(network, shape, 1, target, options, steps=20), 1e-12)


@pytest.mark.parametrize("batch", [1, 64])
def test_float32(batch: int):
    """As close as float32 allows; where two pooled numbers are nearly equal, rounding may decide
    which one gets the gradient."""
    assert_same_steps(Case(lenet((6, 16)), (3, 32, 32), batch, host("float"), PLAIN), 3e-6)


@pytest.mark.parametrize(("kind", "lanes"), [("AVX2", 8), ("vectors of arm64", 4)])
def test_code_has_no_longer_vectors_than_its_target(kind: str, lanes: int):
    shape, target = (3, 32, 32), TARGETS[kind]("float")
    layers = layers_of(lenet((8, 24), 2), shape)
    text = LanesProgram(CodeRequest(layers, shape, 64, target, "i8", EVERYTHING)).llvm_ir()
    assert f"<{lanes} x float>" in text and f"<{2 * lanes} x float>" not in text
