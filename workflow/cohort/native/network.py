"""Networks as machine code: compile one for a batch and processor, train it, predict with it."""

import threading
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from cohort.data.augmentations import Augmentation
from cohort.data.samples import Samples
from cohort.native.augment import BYTES, AugmentPlan, to_instructions
from cohort.native.compiler import EVALUATED, Batches, Inputs, Kernel
from cohort.native.emitter import Target, has_fma, host
from cohort.native.layers import Layer, Unsupported, layers_of, sample_shape
from cohort.native.program import CodeRequest, StepOptions

__all__ = ["NativeNetwork", "Unsupported", "flatten", "predict", "supported_layers"]

SCALARS = {torch.float32: "float", torch.float64: "double"}
Weights = Mapping[str, Tensor]
_kernels = threading.local()


class NativeNetwork:
    """Compiled code that trains a network on batches of at most `batch` samples, with its memory:
    `begin` sets the weights and the optimizer; `train` takes steps. `dtype` is the type of weights
    and losses, `size` the number of weights. Raises Unsupported if there is no such code."""

    def __init__(self, model: nn.Module, samples: Samples, batch: int, augmentation: Augmentation):
        self.model, self.samples, self.batch = model, samples, batch
        self.layers, self.target = supported_layers(model, samples), _target(model)
        self.dtype, self.labels = self.target.dtype, samples.labels.numpy()
        self.size, self.classes = self.layers[-1].end, self.layers[-1].outer
        self.shape = sample_shape(samples.values.shape[1:])
        self.augmentation, self.augment, scale = augmentation, None, 0.0
        if augmentation.numbers:  # the code scales before it augments
            scale = 1.0
            self.augment = AugmentPlan.of(augmentation, self.shape, self.target.lanes)
        self.inputs = _inputs(samples, samples.values, self.dtype, scale)
        self._kernels: dict[StepOptions, Kernel] = {}

    def begin(
        self,
        weights: Weights,
        sgd: Mapping[str, float],
        anchor: Weights,
        correction: Weights | None = None,
        logit_scale: Tensor | None = None,
        logit_shift: Tensor | None = None,
    ) -> None:
        """Start at these weights, with no velocity. After each step they move by the learning rate
        times the correction. The loss is that of the logits scale * (output - bias) + bias + shift.
        `sgd` has hyperparameters of SGD as in torch.optim (STEP_NUMBERS), on a mean cross-entropy
        plus `mu` / 2 times the squared distance of the weights to an anchor. `clip` bounds a
        gradient's norm, unless 0."""
        self.sgd = sgd
        options = StepOptions(
            momentum=sgd["momentum"] != 0,
            weight_decay=sgd["weight_decay"] != 0,
            proximal=sgd["mu"] != 0,
            pulls_hard=sgd["lr"] * sgd["mu"] > 0.5,
            clips=bool(sgd["clip"]),
            corrects=bool(correction),
            calibrates=logit_scale is not None or logit_shift is not None,
        )
        if options not in self._kernels:
            is_augmented_by_pytorch = self.augmentation.numbers and self.augment is None
            stored = not is_augmented_by_pytorch and self.inputs.is_bytes
            network = self.layers, self.shape, self.batch, self.target
            kind = BYTES if stored else self.target.scalar
            self._kernels[options] = Kernel(CodeRequest(*network, kind, options, self.augment))
        self._kernel = kernel = self._kernels[options]
        kernel.fill("weights", flatten(weights, self.model))
        if sgd["momentum"]:
            kernel.arrays["velocity"].fill(0)
        if sgd["mu"]:
            kernel.fill("anchor", flatten(anchor, self.model))
        if correction:
            kernel.fill("correction", flatten(correction, self.model))
        kernel.calibrate(logit_scale, logit_shift)

    def train(
        self,
        indices: np.ndarray,
        counts: np.ndarray,
        *,
        draws: np.ndarray | None = None,
        images: Tensor | None = None,
    ) -> np.ndarray:
        """Take a step on each batch and return the mean loss of each (batch). `indices` (sample)
        are those of all batches, one batch after another, `counts` (batch) says how many samples
        each has. Where samples are augmented, `draws` (sample, number) are the random numbers for
        it, or, if `augment` is None, `images` the augmented samples."""
        assert self.samples.scale is not None
        numbers = dict(self.sgd) | {"factor": 1 / self.samples.scale}
        labels, inputs, augmented = self.labels[indices], self.inputs, None
        if images is not None:
            inputs = _inputs(self.samples, images, self.dtype, scale=1.0)
            indices = np.arange(len(indices))
        if draws is not None:
            changes = self.augmentation.parameters(draws)
            assert changes is not None
            augmented = to_instructions(changes, self.dtype)
        batches = Batches(indices, counts, self._kernel.program.width)
        return self._kernel.train(inputs, labels, batches, numbers, augmented)

    def weights(self) -> np.ndarray:
        """All weights as one array (weight), in the order of `flatten`."""
        return self._kernel.view("weights")


def predict(model: nn.Module, weights: Weights, samples: Samples, indices: Tensor) -> Tensor | None:
    """A network's outputs in evaluation (sample, class) for the samples with these indices, with
    these weights; None if there is no native code for the network or the samples."""
    try:
        layers = supported_layers(model, samples)
    except Unsupported:
        return None
    target, values, rows = _target(model), samples.values, indices.numpy()
    if values.dtype != torch.uint8:  # numbers are converted, so take only those that are needed
        values, rows = values[indices], np.arange(len(indices))
    inputs = _inputs(samples, values, target.dtype)
    shape = sample_shape(samples.values.shape[1:])
    kind = BYTES if inputs.is_bytes else target.scalar
    request = CodeRequest(layers, shape, EVALUATED, target, kind, None)
    if request not in vars(_kernels).setdefault("by_request", {}):  # made once for each thread
        _kernels.by_request = {request: Kernel(request)}
    kernel = _kernels.by_request[request]
    kernel.fill("weights", flatten(weights, model))
    return torch.from_numpy(kernel.outputs(inputs, rows))


def flatten(weights: Weights, model: nn.Module) -> np.ndarray:
    """Concatenate the weights of all parameters in the network's order into one array (weight)."""
    return torch.cat([weights[name].reshape(-1) for name, _ in model.named_parameters()]).numpy()


def unflatten(rows: np.ndarray, model: nn.Module) -> dict[str, Tensor]:
    """Views of flat weights (network, weight) by parameter: each (network, *parameter)."""
    parameters = dict(model.named_parameters())
    sizes = [parameter.numel() for parameter in parameters.values()]
    pairs = zip(parameters.items(), torch.from_numpy(rows).split(sizes, dim=1), strict=True)
    return {name: part.view(-1, *parameter.shape) for (name, parameter), part in pairs}


def supported_layers(model: nn.Module, samples: Samples) -> tuple[Layer, ...]:
    """The layers of a network for these samples; Unsupported if there is no code for them."""
    parameters = list(model.parameters())
    if not parameters or parameters[0].device.type != "cpu":
        raise Unsupported("this device")
    if parameters[0].dtype not in SCALARS or torch.is_autocast_enabled("cpu"):
        raise Unsupported("this precision")
    if samples.scale is None:
        raise Unsupported("text")
    layers = layers_of(model, samples.values.shape[1:])
    if not has_fma():
        raise Unsupported("processors without fused multiply-add")
    return layers


def _target(model: nn.Module) -> Target:
    """This processor, in the type of a network's weights."""
    return host(SCALARS[next(model.parameters()).dtype])


def _inputs(samples: Samples, values: Tensor, dtype: np.dtype, scale: float = 0.0) -> Inputs:
    """Inputs of native code: `values` (sample, number), which it divides by a scale, that of the
    samples unless given, and standardizes by their mean and deviation."""
    scale = scale or samples.scale or 1.0
    numbers, shape = values.contiguous().numpy(), tuple(values.shape[1:])
    moments = samples.std, samples.mean
    std, mean = (tensor.double().expand(shape).reshape(-1).numpy() for tensor in moments)
    if numbers.dtype != np.uint8:
        numbers = np.ascontiguousarray(numbers, dtype)
    kind = np.dtype("f8") if samples.mean.dtype == torch.float64 else np.dtype("f4")
    return Inputs(numbers, (1 / scale / std).astype(kind), (-mean / std).astype(kind))
