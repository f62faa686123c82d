"""Convolutions with weights of their own for each client: grouped, unfolded, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import vjp, vmap
from torch.nn.functional import conv2d, unfold

from benchmarks.contest import largest_difference
from benchmarks.gpu.report import Report
from benchmarks.gpu.timing import interleaved_seconds
from benchmarks.variants.inputs import flat
from cohort.models import MODELS
from cohort.training.job.machine import set_up
from cohort.training.trainers.stacked import CudaGraphFunction

NETWORKS = {"lenet5": (1, 32, 32), "aml-lenet": (3, 32, 32), "vgg11": (3, 32, 32)}
CLIENTS, BATCH = 10, 64
MOST = 30  # calls of each
GROUPED, UNFOLDED, LOOPED = "grouped", "unfolded", "one by one"

Convolution = Callable[[Tensor, Tensor], Tensor]


class Layer(NamedTuple):
    """The shape of a convolution without padding modes, dilation and groups."""

    network: str
    channels: tuple[int, int]
    kernel: int
    stride: int
    padding: int
    side: int

    def __str__(self) -> str:
        inside, outside = self.channels
        return f"{inside} to {outside}, {self.kernel}x{self.kernel}, {self.side}x{self.side}"

    def direct(self, weight: Tensor, images: Tensor) -> Tensor:
        """Convolve the images of one client as the network does."""
        return conv2d(images, weight, stride=self.stride, padding=self.padding)

    def unfolded(self, weight: Tensor, images: Tensor) -> Tensor:
        """Convolve by one matrix product of the kernels and all patches of all images."""
        columns = unfold(images, self.kernel, padding=self.padding, stride=self.stride)
        patches = columns.transpose(0, 1).flatten(1)
        side = (self.side + 2 * self.padding - self.kernel) // self.stride + 1
        products = weight.flatten(1) @ patches
        return products.view(len(weight), len(images), side, side).transpose(0, 1)


def measure(report: Report) -> None:
    """Time every convolution of the three networks."""
    set_up("float32", report.device)
    layers = list(dict.fromkeys(layer for name in NETWORKS for layer in layers_of(name)))
    if report.is_trial:
        layers = layers[:1]
    report.plan(len(layers))
    for layer in layers:
        with report.step(f"{layer.network}, {layer}") as until:
            _time_layer(layer, report, until)


def layers_of(network: str) -> list[Layer]:
    """The convolutions of a network, in the order in which images pass them."""
    model, layers = MODELS[network]().build(NETWORKS[network], 10), []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(layer, nn.Conv2d) and isinstance(layer.padding, tuple)
        channels, side = (layer.in_channels, layer.out_channels), inputs[0].shape[-1]
        sizes = layer.kernel_size[0], layer.stride[0], layer.padding[0], side
        layers.append(Layer(network, channels, *sizes))

    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_pre_hook(note)
    model(torch.zeros(1, *NETWORKS[network]))
    return layers


def _time_layer(layer: Layer, report: Report, until: float) -> None:
    clients, batch = (2, 2) if report.is_trial else (CLIENTS, BATCH)
    ways, difference = _ways_to_convolve(layer, clients, batch, report.device)
    taken = interleaved_seconds(ways, report.device, 1 if report.is_trial else MOST, until)
    medians = {way: 1e3 * median(seconds) for way, seconds in taken.items()}
    report.add(
        {
            "network": layer.network,
            "layer": str(layer),
            **{f"{way}, ms": found for way, found in medians.items()},
            "grouped / unfolded": medians[GROUPED] / medians[UNFOLDED],
            "difference": difference,
            "calls": len(taken[GROUPED]),
        }
    )


def _ways_to_convolve(
    layer: Layer, clients: int, batch: int, device: torch.device
) -> tuple[dict[str, Callable[[], object]], float]:
    """The three ways to convolve by name, each a CUDA graph on a GPU, and how much the results of
    the first two differ."""
    torch.manual_seed(0)
    inside, outside = layer.channels
    weights = torch.randn(clients, outside, inside, layer.kernel, layer.kernel, device=device)
    images = torch.randn(clients, batch, inside, layer.side, layer.side, device=device)
    upstream = torch.randn_like(vmap(layer.direct)(weights, images))

    def one_by_one() -> list[Tensor]:
        rows = zip(weights, images, upstream, strict=True)
        return [_with_gradients(layer.direct, *row)[0] for row in rows]

    grouped, unfolded = (
        partial(vmap(partial(_with_gradients, way)), weights, images, upstream)
        for way in (layer.direct, layer.unfolded)
    )
    difference = largest_difference(flat(unfolded()), flat(grouped()))
    ways: dict[str, Callable[[], Sequence[Tensor]]] = {GROUPED: grouped, UNFOLDED: unfolded}
    ways[LOOPED] = one_by_one
    return {name: _captured(way, device) for name, way in ways.items()}, difference


def _captured(way: Callable[[], Sequence[Tensor]], device: torch.device) -> Callable[[], object]:
    """A function that replays a CUDA graph of these calls, as the batched trainer does."""
    return partial(CudaGraphFunction(lambda _: way()[0]), torch.zeros(1, device=device))


def _with_gradients(
    convolution: Convolution, weight: Tensor, images: Tensor, upstream: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs of one client's layer, and the gradients of weights and images."""
    outputs, backward, *_ = vjp(convolution, weight, images)
    of_weight, of_images = backward(upstream)
    return outputs, of_weight, of_images
