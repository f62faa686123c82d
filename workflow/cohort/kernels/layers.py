"""Layers that compute all clients at once, by the kernels, where a network is called under
`torch.vmap` over its weights and inputs."""

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.func import functional_call, vmap

from cohort.kernels import convolution
from cohort.kernels.convolution import Shape

ERROR = 0.03  # of a gradient relative to its norm: so much may a unit change that rounding switches
EXACT = "float32"


def with_kernels(network: nn.Module, precision: str = EXACT) -> nn.Module:
    """A copy of a network, with parameters of the same names, whose convolutions and linear layers
    call the kernels; it must be called under `vmap`, in float32. Multiplications are as accurate as
    float32, or in `tf32` or `bfloat16`."""
    network = copy.deepcopy(network)
    for module in list(network.modules()):
        if isinstance(module, nn.Sequential):
            _fuse(module)
    for module in network.modules():
        if _has_kernel(module):
            module.forward = partial(_forward, module, precision)
    return network


def check(network: nn.Module, layers: nn.Module, inputs: Tensor) -> str:
    """What is wrong with the `layers` that `with_kernels` made of a network, on this device: empty
    if they give its gradients, here of the sum of its squared outputs, for two clients."""
    weights = {
        name: torch.stack([own, 0.9 * own]).detach().requires_grad_()
        for name, own in network.named_parameters()
    }
    inputs = torch.stack([inputs, inputs.flip(0)])
    gradients = []
    try:
        for module in (network, layers):
            outputs = vmap(partial(functional_call, module))(weights, (inputs,))
            loss = outputs.square().sum()
            gradients.append(torch.autograd.grad(loss, list(weights.values())))
    except Exception as error:  # whatever a compiler may raise on a card that it does not know
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    for name, expected, own in zip(weights, *gradients, strict=True):
        distance = float((own - expected).norm() / expected.norm().clamp(min=1e-30))
        if not distance < ERROR:
            return f"the gradient of {name} is off by {distance:.1e}"
    return ""


def _has_kernel(module: nn.Module) -> bool:
    """Whether a layer is of those that the kernels compute."""
    if type(module) is nn.Linear:
        return True
    if type(module) is not nn.Conv2d or isinstance(module.padding, str):
        return False
    alike = all(len(set(pair)) == 1 for pair in (module.stride, module.padding))
    plain = module.groups == 1 and module.dilation == (1, 1) and module.padding_mode == "zeros"
    return alike and plain


def _fuse(sequence: nn.Sequential) -> None:
    """Have each convolution or linear layer do the ReLU behind it, and the 2x2 max pooling before
    or behind that."""
    names = list(sequence._modules)
    for name, *followers in zip(names, names[1:], [*names[2:], ""], strict=False):
        layer = sequence.get_submodule(name)
        if not _has_kernel(layer):
            continue
        kinds = [_kind(sequence, follower) for follower in followers]
        vars(layer)["pools"] = isinstance(layer, nn.Conv2d) and sorted(kinds) == ["pool", "relu"]
        vars(layer)["rectifies"] = vars(layer)["pools"] or kinds[0] == "relu"
        fused = vars(layer)["rectifies"] + vars(layer)["pools"]
        for follower in followers[:fused]:
            sequence._modules[follower] = nn.Identity()


def _kind(sequence: nn.Sequential, name: str) -> str:
    layer = sequence._modules.get(name)
    if isinstance(layer, nn.ReLU):
        return "relu"
    if not isinstance(layer, nn.MaxPool2d):
        return ""
    sides = layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode
    return "pool" if sides == (2, 2, 0, 1, False) else ""


def _forward(layer: Any, precision: str, inputs: Tensor) -> Tensor:
    """The results of one client's layer, which `_Layer` computes for all clients."""
    stride, padding = (
        (1, 0) if isinstance(layer, nn.Linear) else (layer.stride[0], layer.padding[0])
    )
    flags = vars(layer).get("rectifies", False), vars(layer).get("pools", False)
    given = inputs.float(), layer.weight, layer.bias, stride, padding, precision, *flags
    results: Tensor = _Layer.apply(*given)
    return results


class _Layer(Function):
    """One client's layer; only its rule for `vmap` exists."""

    @staticmethod
    def forward(*_: Any) -> Tensor:
        raise NotImplementedError("a network with kernels must be called under torch.vmap")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, inputs: Tensor, weights: Tensor, bias: Tensor | None, stride: int,
        padding: int, precision: str, rectifies: bool, pools: bool,
    ) -> tuple[Tensor, int]:  # fmt: skip
        first, second, third, *_ = in_dims
        inputs = _with_clients(inputs, first, info.batch_size)
        weights = _with_clients(weights, second, info.batch_size)
        bias = None if bias is None else _with_clients(bias, third, info.batch_size)
        is_linear = weights.dim() == 3
        if is_linear:  # a pixel for each vector
            sizes, inputs = inputs.shape, inputs.reshape(len(inputs), -1, 1, 1, inputs.shape[-1])
            weights = weights[:, :, None, None]
        else:
            inputs, weights = inputs.movedim(2, -1), weights.movedim(2, -1)
        if not weights[0].is_contiguous():
            weights = weights.contiguous()
        inputs, bias = inputs.contiguous(), None if bias is None else bias.contiguous()
        _, outputs, rows, columns, channels = weights.shape
        batch, height, width = inputs.shape[1:4]
        shape = Shape(batch, height, width, channels, outputs, rows, columns, stride, padding)
        if precision == EXACT:
            precision = convolution.float32_products(shape)
        results = _Convolution.apply(inputs, weights, bias, shape, precision, rectifies, pools)
        return results.view(*sizes[:-1], outputs) if is_linear else results.movedim(-1, 2), 0


def _with_clients(tensor: Tensor, dim: int | None, clients: int) -> Tensor:
    return tensor.expand(clients, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


class _Convolution(Function):
    """A convolution of images (client, sample, row, column, channel) with bias, ReLU or pooling."""

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weights: Tensor, bias: Tensor | None, shape: Shape,
        precision: str, rectifies: bool, pools: bool,
    ) -> Tensor:  # fmt: skip
        ctx.shape, ctx.precision, ctx.pools = shape, precision, pools
        given = images, weights, bias, shape, precision, rectifies, pools
        results, winners = convolution.convolve(*given)
        kept = (results, winners) if rectifies or pools else (None, None)
        ctx.save_for_backward(images, weights, *kept)
        return results

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        images, weights, results, winners = ctx.saved_tensors
        gradients, of_images = gradients.contiguous(), None
        if results is not None:
            given = gradients, results, winners, ctx.shape, ctx.pools
            gradients = convolution.activation_gradient(*given)
        if ctx.needs_input_grad[0]:
            of_images = convolution.input_gradient(gradients, weights, ctx.shape, ctx.precision)
        both = images, gradients
        of_weights, of_bias = convolution.weight_gradients(*both, ctx.shape, ctx.precision)
        kept = of_bias if ctx.needs_input_grad[2] else None
        return of_images, of_weights, kept, None, None, None, None
