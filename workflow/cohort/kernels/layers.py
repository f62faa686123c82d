"""Layers that compute all clients at once, by the kernels, where a network is called under
`torch.vmap` over its weights and inputs."""

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.func import vmap

from cohort.kernels import channelwise, convolution, padding

EXACT = "float32"
# largest error of a gradient relative to its norm: rounding may switch a unit on or off
ERRORS = {EXACT: 0.03, "tf32": 0.03, "bfloat16": 0.1}
MIN_NORM = 1e-3  # of the whole gradient's, for relative errors: a smaller one may be rounding


def with_kernels(network: nn.Module, precision: str = EXACT) -> nn.Module:
    """A copy of a network for `padding.call`, with parameters and buffers of the same names, whose
    convolutions, linear layers and batch normalizations call the kernels; it must be called under
    `vmap`, in float32. Multiplications are as accurate as float32, or in `tf32` or `bfloat16`."""
    network = copy.deepcopy(padding.with_padding(network))
    batch = vars(network).get(padding.BATCH)
    for module in list(network.modules()):
        if isinstance(module, nn.Sequential):
            _fuse(module)
    for module in network.modules():
        if _has_kernel(module):
            forward = partial(_forward, module, precision)
        elif type(module) is nn.BatchNorm2d and module.affine and padding.is_normalization(module):
            forward = partial(padding.normalize, module, batch, _BatchNormalization.apply)
        elif isinstance(module, nn.AdaptiveAvgPool2d) and module.output_size in (1, (1, 1)):
            forward = partial(torch.mean, dim=(2, 3), keepdim=True)  # which `vmap` batches
        else:
            continue
        vars(module)["forward"] = forward
    return network


def check(network: nn.Module, layers: nn.Module, inputs: Tensor, precision: str = EXACT) -> str:
    """Compare `layers`, made by `with_kernels`, with the network itself on this device: gradients
    of the sum of squared outputs, and running statistics, for two clients, of which one has a
    padded sample. Return what differs, or an empty string."""
    names = [name for name, _ in network.named_parameters()]
    factors = padding.draw(padding.random_calls(network, inputs[:1]), len(inputs), inputs.device)
    counted = torch.ones(2, len(inputs), dtype=torch.bool, device=inputs.device)
    counted[1, -1] = False
    args = torch.stack([inputs, inputs.flip(0)]), counted, *(torch.stack([f, f]) for f in factors)
    results = []
    try:
        for module in (padding.with_padding(network), layers):
            state = network.state_dict()
            rows = {name: torch.stack([row, (0.9 * row).to(row)]) for name, row in state.items()}
            leaves = [rows[name].requires_grad_() for name in names]
            is_rough = module is layers and precision == "bfloat16"
            with torch.autocast(inputs.device.type, torch.bfloat16, enabled=is_rough):
                outputs = vmap(partial(padding.call, module))(rows, *args)
            gradients = torch.autograd.grad(outputs.float().square().sum(), leaves)
            results.append(rows | dict(zip(names, gradients, strict=True)))
    except Exception as error:  # whatever a compiler may raise on a card that it does not know
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    total = sum(float(results[0][name].square().sum()) for name in names) ** 0.5
    for name, expected in results[0].items():
        kind, min_norm = ("the gradient of ", MIN_NORM * total) if name in names else ("", 1e-30)
        distance = float((results[1][name] - expected).double().norm())
        distance /= max(float(expected.double().norm()), min_norm)
        if not distance < ERRORS[precision]:
            return f"{kind}{name} is off by {distance:.1e}"
    return ""


def _has_kernel(module: nn.Module) -> bool:
    """Whether a layer is of those that the kernels compute."""
    if type(module) is nn.Linear:
        return True
    if type(module) is not nn.Conv2d or isinstance(module.padding, str):
        return False
    alike = all(len(set(pair)) == 1 for pair in (module.stride, module.padding))
    plain = module.dilation == (1, 1) and module.padding_mode == "zeros"
    depthwise = module.groups == module.in_channels == module.out_channels and module.bias is None
    return alike and plain and (module.groups == 1 or depthwise)


def _fuse(sequence: nn.Sequential) -> None:
    """Fuse each convolution or linear layer with the ReLU, and 2x2 max pooling, behind it."""
    names = list(sequence._modules)
    for name, *followers in zip(names, names[1:], [*names[2:], ""], strict=False):
        layer = sequence.get_submodule(name)
        if not _has_kernel(layer) or (isinstance(layer, nn.Conv2d) and layer.groups > 1):
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
    is_linear = isinstance(layer, nn.Linear)
    stride, padding = (1, 0) if is_linear else (layer.stride[0], layer.padding[0])
    flags = vars(layer).get("rectifies", False), vars(layer).get("pools", False)
    args = inputs.float(), layer.weight, layer.bias, stride, padding, precision, *flags
    return _Layer.apply(*args)


class _PerClient(Function):
    """Base of functions of one client's layer, which exist only as a `vmap` rule over clients."""

    @staticmethod
    def forward(*_: Any) -> Tensor:
        raise NotImplementedError("a network with kernels must be called under torch.vmap")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...


class _Layer(_PerClient):
    """A convolution or linear layer."""

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
        lengths = *inputs.shape[1:], *weights.shape[1:4], stride, padding
        shape = convolution.Shape(*lengths)
        if shape.channels != weights.shape[-1]:
            results = _Depthwise.apply(inputs, weights.squeeze(-1), shape)
            return results.movedim(-1, 2), 0
        if precision == EXACT:
            precision = convolution.float32_precision(shape)
        results = _Convolution.apply(inputs, weights, bias, shape, precision, rectifies, pools)
        return results.view(*sizes[:-1], shape.outputs) if is_linear else results.movedim(-1, 2), 0


class _BatchNormalization(_PerClient):
    """Batch normalization of the unpadded samples, with results as from `padding.by_moments`."""

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, images: Tensor, *args: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        *rows, eps = args
        images = _with_clients(images, in_dims[0], info.batch_size).movedim(2, -1).float()
        pairs = zip(rows, in_dims[1:-1], strict=True)
        rows = [_with_clients(*pair, info.batch_size).contiguous() for pair in pairs]
        results, *moments = _Normalization.apply(images.contiguous(), *rows, eps)
        return (results.movedim(-1, 2), *moments), (0, 0, 0)


def _with_clients(tensor: Tensor, dim: int | None, clients: int) -> Tensor:
    return tensor.expand(clients, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


class _Convolution(Function):
    """A convolution of images (client, sample, row, column, channel) with bias, ReLU or pooling."""

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weights: Tensor, bias: Tensor | None, shape: convolution.Shape,
        precision: str, rectifies: bool, pools: bool,
    ) -> Tensor:  # fmt: skip
        ctx.shape, ctx.precision, ctx.pools = shape, precision, pools
        args = images, weights, bias, shape, precision, rectifies, pools
        results, winners = convolution.convolve(*args)
        saved = (results, winners) if rectifies or pools else (None, None)
        ctx.save_for_backward(images, weights, *saved)
        return results

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        images, weights, results, winners = ctx.saved_tensors
        gradients, of_images = gradients.contiguous(), None
        if results is not None:
            args = gradients, results, winners, ctx.shape, ctx.pools
            gradients = convolution.activation_gradient(*args)
        if ctx.needs_input_grad[0]:
            of_images = convolution.input_gradient(gradients, weights, ctx.shape, ctx.precision)
        pair = images, gradients
        of_weights, of_bias = convolution.weight_gradients(*pair, ctx.shape, ctx.precision)
        bias_gradient = of_bias if ctx.needs_input_grad[2] else None
        return of_images, of_weights, bias_gradient, None, None, None, None


class _Depthwise(Function):
    """A depthwise convolution of images (client, sample, row, column, channel)."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weights: Tensor, shape: convolution.Shape) -> Tensor:
        ctx.shape = shape
        ctx.save_for_backward(images, weights)
        return channelwise.filter_channels(images, weights, shape, backward=False)

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        images, weights = ctx.saved_tensors
        gradients = gradients.contiguous()
        of_images = channelwise.filter_channels(gradients, weights, ctx.shape, backward=True)
        return of_images, channelwise.filter_gradient(images, gradients, ctx.shape), None


class _Normalization(Function):
    """Batch normalization of images (client, sample, row, column, channel), by the moments of the
    samples that count or, if fewer than two do, by the running ones; also returns these."""

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weights: Tensor, bias: Tensor, running_means: Tensor,
        running_variances: Tensor, counted: Tensor, eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        counted = counted.view(torch.int8)
        means, variances = channelwise.moments(images, counted)
        has_moments = counted.sum(dim=1, keepdim=True) > 1
        centers = torch.where(has_moments, means, running_means)
        factors = (torch.where(has_moments, variances, running_variances) + eps).rsqrt()
        ctx.save_for_backward(images, counted, centers, factors, weights, has_moments)
        ctx.mark_non_differentiable(means, variances)
        return channelwise.scale(images, centers, factors * weights, bias), means, variances

    @staticmethod
    def backward(ctx: Any, gradients: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        args = *ctx.saved_tensors, gradients.contiguous()
        return *channelwise.normalization_gradients(*args), None, None, None, None
