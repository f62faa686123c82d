"""Networks that take padded batches, so that the batches of all clients have one size. Batch
normalization leaves the padding out, and random layers multiply by factors that are drawn
beforehand, for each client as if it were alone."""

import copy
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

BATCH = "batch"  # the attribute of a network with what its layers must know of the current batch
Normalize = Callable[..., tuple[Tensor, Tensor, Tensor]]
RandomCall = tuple[nn.Module, tuple[int, ...], torch.dtype]
"""A call of a random layer: the layer, and shape and type of the factors of a sample."""


def is_normalization(layer: nn.Module) -> bool:
    """Whether a layer is batch normalization with running statistics."""
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
    return type(layer) in kinds and layer.running_mean is not None and layer.momentum is not None


def is_random(layer: nn.Module) -> bool:
    """Whether a layer multiplies its inputs by random factors that do not depend on these."""
    is_depth = type(layer).__module__ == "torchvision.ops.stochastic_depth"
    return type(layer) is nn.Dropout or (is_depth and layer.mode == "row")


def with_padding(network: nn.Module) -> nn.Module:
    """A copy of a network for `call`, with parameters and buffers of the same names; the network
    itself, if none of its layers is concerned."""
    if not any(is_normalization(layer) or is_random(layer) for layer in network.modules()):
        return network
    network, batch = copy.deepcopy(network), SimpleNamespace()
    vars(network)[BATCH] = batch
    for layer in network.modules():
        if is_normalization(layer):
            vars(layer)["forward"] = partial(normalize, layer, batch, by_moments)
        elif is_random(layer):
            vars(layer)["forward"] = partial(_multiply, batch)
        elif getattr(layer, "inplace", False):
            vars(layer)["inplace"] = False  # kernels put out views
    return network


def call(
    network: nn.Module, state: dict[str, Tensor], inputs: Tensor, counted: Tensor, *factors: Tensor
) -> Tensor:
    """The outputs for a client's batch, with these parameters and buffers, of which running
    statistics are moved; under `torch.vmap`. `counted` says which samples count, `factors` are
    those of the random layers in the order of their calls."""
    if batch := vars(network).get(BATCH):
        batch.counted, batch.factors = counted, iter(factors)
    return functional_call(network, state, (inputs,))


def normalize(layer: Any, batch: Any, by: Normalize, images: Tensor) -> Tensor:
    """Batch normalization as in PyTorch, of a batch with several samples that count; of others by
    the running statistics (PyTorch would use a single sample's own if it has several pixels)."""
    counted, running = batch.counted, (layer.running_mean, layer.running_var)
    results, *moments = by(images, layer.weight, layer.bias, *running, counted, layer.eps)
    number = counted.sum().to(moments[1]) * images[0, 0].numel()
    is_tracked = counted.sum() > 1
    with torch.no_grad():
        means, variances = moments[0], moments[1] * (number / (number - 1).clamp(min=1))
        for tensor, new in zip(running, (means, variances), strict=True):
            tensor.copy_(torch.where(is_tracked, tensor.lerp(new, layer.momentum), tensor))
        layer.num_batches_tracked.add_(is_tracked)
    return results


def by_moments(
    images: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor,
    running_var: Tensor, counted: Tensor, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Normalize images by the moments of those that count, or by the running statistics if fewer
    than two do; return them with these moments."""
    channels, sides = (1, -1, *[1] * (images.dim() - 2)), [0, *range(2, images.dim())]
    exact = images.to(running_mean.dtype)  # autocast may have rounded the images
    is_counted = counted.view(-1, *[1] * (images.dim() - 1))
    number = (counted.sum() * images[0, 0].numel()).clamp(min=1)
    mean = exact.where(is_counted, 0).sum(sides) / number
    distances = (exact - mean.view(channels)).where(is_counted, 0)
    variance = distances.square().sum(sides) / number
    has_moments = counted.sum() > 1
    center = torch.where(has_moments, mean, running_mean).view(channels)
    factor = (torch.where(has_moments, variance, running_var) + eps).rsqrt().view(channels)
    results = (exact - center) * factor
    if weight is not None and bias is not None:
        results = results * weight.view(channels) + bias.view(channels)
    return results.to(images.dtype), mean.detach(), variance.detach()


def _multiply(batch: Any, inputs: Tensor) -> Tensor:
    return inputs * next(batch.factors).to(inputs.dtype)


def random_calls(network: nn.Module, inputs: Tensor) -> list[RandomCall]:
    """The calls of random layers for these inputs, in their order."""
    calls: list[RandomCall] = []

    def note(layer: nn.Module, args: tuple[Tensor, ...]) -> None:
        shape = args[0].shape[1:]  # or a factor for a whole sample
        is_whole = type(layer) is not nn.Dropout
        calls.append((layer, (1,) * len(shape) if is_whole else shape, args[0].dtype))

    layers = [layer for layer in network.modules() if is_random(layer)]
    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    if hooks:
        network.eval()
        with torch.no_grad():
            network(inputs)
    for hook in hooks:
        hook.remove()
    return calls


def draw(calls: list[RandomCall], size: int, device: torch.device) -> list[Tensor]:
    """The factors of each call for a batch of so many samples, drawn by torch's generator as the
    layers do that in plain PyTorch."""
    inputs = (torch.ones(size, *shape, dtype=dtype, device=device) for _, shape, dtype in calls)
    return [layer.train()(ones) for (layer, *_), ones in zip(calls, inputs, strict=True)]
