"""Networks drawn at random, and a literal training loop in PyTorch's float64 to compare with."""

import copy
from dataclasses import dataclass, field

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cohort.native.compiler import Batches, Inputs, Kernel
from cohort.native.emitter import Target
from cohort.native.layers import layers_of, sample_shape
from cohort.native.program import CodeRequest, StepOptions

RATES = {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.01, "mu": 0.1, "clip": 0.5}
MEAN, STD = 110.0, 60.0


@st.composite
def networks(draw: st.DrawFn) -> tuple[nn.Sequential, tuple[int, int, int]]:
    """Convolutions of any channels, kernels and padding, some with ReLU and pooling, and linear
    layers; and the shape of their images."""
    channels, height, width = draw(st.integers(1, 3)), *(draw(st.integers(5, 19)) for _ in "hw")
    shape = channels, height, width
    layers: list[nn.Module] = []
    for _ in range(draw(st.integers(0, 3))):
        kernel = draw(st.integers(1, min(5, height, width)))
        padding = draw(st.integers(0, kernel - 1))
        after = draw(st.integers(1, 19))
        layers.append(nn.Conv2d(channels, after, kernel, padding=padding))
        channels = after
        height, width = (side + 2 * padding - kernel + 1 for side in (height, width))
        extra = draw(st.permutations([nn.ReLU(), nn.MaxPool2d(2)]))
        for layer in extra[: draw(st.integers(0, 2))]:
            if isinstance(layer, nn.ReLU) or min(height, width) > 1:
                layers.append(layer)
                if isinstance(layer, nn.MaxPool2d):
                    height, width = height // 2, width // 2
    features = channels * height * width
    layers.append(nn.Flatten())
    for _ in range(draw(st.integers(0, 2))):
        after = draw(st.integers(1, 40))
        layers += [nn.Linear(features, after), nn.ReLU()]
        features = after
    layers.append(nn.Linear(features, draw(st.integers(2, 21))))
    return nn.Sequential(*layers), shape


@dataclass
class Case:
    """Steps of some batches on random images, from the same weights in native code and PyTorch."""

    network: nn.Sequential
    shape: tuple[int, ...]
    batch: int
    target: Target
    options: StepOptions
    steps: int = 4
    seed: int = 0
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.start = copy.deepcopy(self.network)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            for layer in self.start:
                if isinstance(layer, nn.Conv2d | nn.Linear):
                    layer.reset_parameters()
        self.start = self.start.double()
        self.classes = int(list(self.start.parameters())[-1].numel())
        count = 2 * self.batch + 3
        self.images = rng.integers(0, 256, (count, *self.shape)).astype(np.uint8)
        labels = rng.integers(0, self.classes, count)
        sizes = [self.batch, max(1, self.batch * 2 // 3)] * self.steps
        self.counts = np.array(sizes[: self.steps])
        self.chosen = np.concatenate([rng.permutation(count)[:size] for size in self.counts])
        self.labels = labels[self.chosen]
        self.correction = [rng.normal(size=tuple(p.shape)) * 0.01 for p in self.start.parameters()]
        self.scale, self.shift = rng.uniform(0.5, 1, self.classes), rng.normal(size=self.classes)

    def expected(self) -> np.ndarray:
        """The weights after plain PyTorch's steps."""
        network, options = copy.deepcopy(self.start), self.options
        momentum = RATES["momentum"] * options.momentum
        optimizer = torch.optim.SGD(
            network.parameters(),
            lr=RATES["lr"],
            momentum=momentum,
            weight_decay=RATES["weight_decay"] * options.weight_decay,
        )
        ends = np.cumsum(self.counts)
        for begin, end in zip(ends - self.counts, ends, strict=True):
            optimizer.zero_grad()
            loss = self._loss(network, slice(begin, end))
            self.losses.append(float(loss.detach()))
            loss.backward()
            if options.clips:
                nn.utils.clip_grad_norm_(network.parameters(), RATES["clip"])
            optimizer.step()
            if options.corrects:
                with torch.no_grad():
                    for parameter, move in zip(network.parameters(), self.correction, strict=True):
                        parameter.add_(torch.from_numpy(move), alpha=RATES["lr"])
        return _flat(network)

    def actual(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights and the losses by native code."""
        kernel = self._kernel(self.batch, self.options)
        kernel.fill("weights", _flat(self.start))
        kernel.fill("anchor", _flat(self.start))
        kernel.fill("correction", np.concatenate([part.reshape(-1) for part in self.correction]))
        if self.options.calibrates:
            kernel.calibrate(self.scale, self.shift)
        batches = Batches(self.chosen, self.counts, kernel.program.width)
        losses = kernel.train(self._inputs(), self.labels, batches, RATES)
        return kernel.view("weights").copy(), losses

    def outputs(self) -> tuple[np.ndarray, np.ndarray]:
        """The outputs for all images in reverse order, by PyTorch and by native code."""
        kernel = self._kernel(64, None)
        kernel.fill("weights", _flat(self.start))
        order = np.arange(len(self.images))[::-1]
        with torch.no_grad():
            expected = self.start(self._standardized(order)).numpy()
        return expected, kernel.outputs(self._inputs(), order)

    def _kernel(self, batch: int, options: StepOptions | None) -> Kernel:
        layers, shape = layers_of(self.network, self.shape), sample_shape(self.shape)
        return Kernel(CodeRequest(layers, shape, batch, self.target, "i8", options))

    def _inputs(self) -> Inputs:
        size, dtype = int(np.prod(self.shape)), self.target.dtype
        return Inputs(self.images, np.full(size, 1 / STD, dtype), np.full(size, -MEAN / STD, dtype))

    def _standardized(self, rows: np.ndarray) -> Tensor:
        return (torch.from_numpy(self.images[rows].astype(np.float64)) - MEAN) / STD

    def _loss(self, network: nn.Sequential, rows: slice) -> Tensor:
        outputs = network(self._standardized(self.chosen[rows]))
        if self.options.calibrates:
            *_, bias = network.parameters()
            scale, shift = torch.from_numpy(self.scale), torch.from_numpy(self.shift)
            outputs = scale * (outputs - bias) + bias + shift
        loss = cross_entropy(outputs, torch.from_numpy(self.labels[rows]))
        if self.options.proximal:
            pairs = zip(network.parameters(), self.start.parameters(), strict=True)
            distance = torch.stack([((now - then.detach()) ** 2).sum() for now, then in pairs])
            loss = loss + RATES["mu"] / 2 * distance.sum()
        return loss


def _flat(network: nn.Module) -> np.ndarray:
    parts = [parameter.detach().reshape(-1) for parameter in network.parameters()]
    return torch.cat(parts).numpy()
