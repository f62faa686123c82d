"""PyTorch networks and samples, as the generator and the code see them."""

from __future__ import annotations

import threading

import numpy as np
import torch
from torch import Tensor, nn

from cohort.data.samples import Samples
from cohort.training.native.kernel import EVALUATED, Inputs, Kernel, Request, code_for
from cohort.training.native.stages import Shape, Stage, Unsupported, sample_shape, stages_of
from cohort.training.native.target import Target, has_fma, host
from cohort.training.updates import Weights

SCALARS = {torch.float32: "float", torch.float64: "double"}


def network_stages(model: nn.Module, samples: Samples) -> tuple[Stage, ...]:
    """The stages of a network for these samples. Unsupported says what has no native code."""
    parameters = list(model.parameters())
    if not parameters or parameters[0].device.type != "cpu":
        raise Unsupported("this device")
    if parameters[0].dtype not in SCALARS or torch.is_autocast_enabled("cpu"):
        raise Unsupported("this precision")
    if samples.scale is None:
        raise Unsupported("text")
    stages = stages_of(model, samples.values.shape[1:])
    if not has_fma():
        raise Unsupported("processors without fused multiply-add")
    return tuple(stages)


def target_for(model: nn.Module) -> Target:
    """This processor, in the type of a network's weights."""
    return host(SCALARS[next(model.parameters()).dtype])


def raw_inputs(samples: Samples, dtype: np.dtype) -> Inputs:
    """All samples as they are in memory or in the file, to be scaled and standardized."""
    assert samples.scale is not None
    return _inputs(samples, _values(samples, dtype), 1 / samples.scale)


def scaled_inputs(samples: Samples, values: Tensor | None, dtype: np.dtype) -> Inputs:
    """These values, which are scaled already, to be standardized; all samples if None."""
    given = _values(samples, dtype) if values is None else values.contiguous().numpy()
    return _inputs(samples, given, 1.0)


def _values(samples: Samples, dtype: np.dtype) -> np.ndarray:
    values = samples.values.numpy()
    return np.ascontiguousarray(values, values.dtype if values.dtype == np.uint8 else dtype)


def flat(weights: Weights, model: nn.Module) -> np.ndarray:
    """Weights in the order of the network's parameters, as one array."""
    rows = [weights[name].reshape(-1) for name, _ in model.named_parameters()]
    joined: np.ndarray = torch.cat(rows).numpy()
    return joined


def outputs_of(
    model: nn.Module, weights: Weights, samples: Samples, indices: Tensor
) -> Tensor | None:
    """A network's outputs in evaluation, with these weights, by native code; None if there is no
    such code."""
    try:
        stages = network_stages(model, samples)
    except Unsupported:
        return None
    target = target_for(model)
    inputs = raw_inputs(samples, target.dtype)
    kernel = _evaluator(stages, sample_shape(samples.values.shape[1:]), target, inputs.kind)
    kernel.fill("weights", flat(weights, model))
    return torch.from_numpy(kernel.outputs(inputs, indices.numpy()))


_kernels = threading.local()


def _evaluator(stages: tuple[Stage, ...], shape: Shape, target: Target, kind: str) -> Kernel:
    """The kernel that evaluates a network; each thread has its own."""
    key = stages, shape, EVALUATED, target, kind
    if key not in vars(_kernels).setdefault("by_key", {}):
        _kernels.by_key = {key: Kernel(code_for(Request(*key, None)))}
    kernel: Kernel = _kernels.by_key[key]
    return kernel


def _inputs(samples: Samples, values: np.ndarray, factor: float) -> Inputs:
    """Inputs whose numbers are multiplied by a factor and then standardized."""
    shape = tuple(values.shape[1:])
    std, mean = (
        tensor.double().expand(shape).reshape(-1).numpy() for tensor in (samples.std, samples.mean)
    )
    dtype = np.dtype("f8") if samples.mean.dtype == torch.float64 else np.dtype("f4")
    return Inputs(values, (factor / std).astype(dtype), (-mean / std).astype(dtype))
