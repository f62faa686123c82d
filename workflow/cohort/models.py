"""The networks."""

from __future__ import annotations

import functools
import importlib
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import Catalog, Component
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from torch import Tensor, library, nn
else:
    library = lazy("torch.library")
    nn = lazy("torch.nn")

Shape = tuple[int, ...]


class Model(Component):
    """A network that can be built for any samples whose shape passes `check`.

    Planning imports every model, and must not import torch: use `cohort.core.lazy` for it.
    """

    kinds: ClassVar[tuple[str, ...]] = ("images",)
    """The kinds of samples it takes: images, text, table."""
    batch_norm: ClassVar[bool] = False
    """Whether the network has batch normalization layers."""
    min_side: ClassVar[int] = 0
    """The fewest pixels of each side of its images; 0 if any samples will do."""

    def check(self, shape: Shape) -> None:
        """Raise ValueError if the model cannot take samples of this shape."""
        if self.min_side and (len(shape) != 3 or min(shape[1:]) < self.min_side):
            pixels = f"{self.min_side}x{self.min_side} pixels"
            raise ValueError(f"needs images of at least {pixels}, not samples of shape {shape}")

    def build(self, shape: Shape, classes: int) -> nn.Module:
        """Build the network, its initial weights drawn from torch's current generator."""
        raise NotImplementedError


def from_torchvision(module: str) -> Any:
    """Import `torchvision.{module}`. With a torch that its operators were not built for, this fails
    where two of them are described; declaring them is enough, because Cohort never calls them."""
    try:
        return importlib.import_module(f"torchvision.{module}")
    except RuntimeError:
        _declare_operators()
        return importlib.import_module(f"torchvision.{module}")


@functools.cache  # keeps the library alive, and with it what it declares
def _declare_operators() -> library.Library:
    declared = library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        declared.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return declared


def torchvision_model(name: str, classes: int) -> nn.Module:
    """Build a network of torchvision with its initial weights."""
    return from_torchvision("models").get_model(name, weights=None, num_classes=classes)


def residual(*layers: nn.Module, stride: int = 1, new_channels: int = 0) -> nn.Module:
    """Build a module that adds its inputs to the outputs of `layers`. If these subsample by
    `stride` and add `new_channels` channels, the shortcut subsamples too and is padded with
    channels of zeros, half in front and half behind (option A of He et al., 2016)."""

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(*layers)

        def forward(self, images: Tensor) -> Tensor:
            taken, new = images[:, :, ::stride, ::stride], new_channels // 2
            shortcut = nn.functional.pad(taken, (0, 0, 0, 0, new, new)) if new else taken
            return self.layers(images) + shortcut

    return Residual()


def dense(*widths: int) -> list[nn.Module]:
    """Linear layers from each width to the next, with a ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return layers[:-1]


class SmallMLP(Model):
    """A multilayer perceptron with one hidden layer of 64 units."""

    name = "small-mlp"
    kinds = ("images", "table")

    def build(self, shape: Shape, classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), *dense(math.prod(shape), 64, classes))


class SmallCNN(Model):
    """3x3 convolutions of 16 and 32 channels, each followed by max pooling, and a linear layer."""

    name = "small-cnn"
    min_side = 4

    def build(self, shape: Shape, classes: int) -> nn.Module:
        depth, height, width = shape
        layers: list[nn.Module] = []
        for before, after in pairwise((depth, 16, 32)):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        features = 32 * (height // 4) * (width // 4)
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(features, classes))


class LeNet(Model):
    """Base of the LeNets, which differ in their widths and padding. They take any number of
    channels and any image that pooling does not use up."""

    kernel: ClassVar[int] = 5
    channels: ClassVar[tuple[int, int]]
    hidden: ClassVar[tuple[int, int]]
    padding: ClassVar[int]

    def build(self, shape: Shape, classes: int) -> nn.Module:
        layers: list[nn.Module] = []
        for before, after in pairwise((shape[0], *self.channels)):
            layers.append(nn.Conv2d(before, after, self.kernel, padding=self.padding))
            layers += [nn.MaxPool2d(2), nn.ReLU()]
        (height, width), growth = shape[1:], 2 * self.padding - self.kernel + 1
        for _ in self.channels:
            height, width = (height + growth) // 2, (width + growth) // 2
        features = self.channels[-1] * height * width
        return nn.Sequential(*layers, nn.Flatten(), *dense(features, *self.hidden, classes))


class LeNet5(LeNet):
    """LeNet-5 of FedEntOpt, NIID-Bench and PECO, unpadded: 6 and 16 channels, 120 and 84 units."""

    name = "lenet5"
    min_side = 16
    channels = (6, 16)
    hidden = (120, 84)
    padding = 0


class AmlLeNet(LeNet):
    """AML's network for CIFAR-100, padded to keep sizes: twice 64 channels, 384 and 192 units."""

    name = "aml-lenet"
    min_side = 4
    channels = (64, 64)
    hidden = (384, 192)
    padding = 2


class StratifyCNN(Model):
    """Stratify's CNN: 3x3 convolutions of 32, 64 and 128 channels, the last two followed by max
    pooling, and 256 units. 2,193,226 parameters for CIFAR-10, 1,701,130 for MNIST.

    Padding is as much an assumption as the widths: without it there would be about one million
    parameters, not two, and images of fewer than 12 pixels would be used up.
    """

    name = "stratify-cnn"
    min_side = 4

    def build(self, shape: Shape, classes: int) -> nn.Module:
        depth, height, width = shape
        layers = [nn.Conv2d(depth, 32, 3, padding=1), nn.ReLU()]
        for before, after in pairwise((32, 64, 128)):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.MaxPool2d(2), nn.ReLU()]
        features = 128 * (height // 4) * (width // 4)
        return nn.Sequential(*layers, nn.Flatten(), *dense(features, 256, classes))


class StratifyMLP(Model):
    """Stratify's MLP, of 128 and 64 hidden units. 15,426 parameters for COVTYPE's two classes."""

    name = "stratify-mlp"
    kinds = ("table",)

    def build(self, shape: Shape, classes: int) -> nn.Module:
        return nn.Sequential(*dense(*shape, 128, 64, classes))


VGG11_BLOCKS = ((64,), (128,), (256, 256), (512, 512), (512, 512))


class Vgg11(Model):
    """VGG-11 of FedEntOpt: configuration A, one linear layer. 9,225,610 parameters for CIFAR-10."""

    name: ClassVar[str] = "vgg11"

    def check(self, shape: Shape) -> None:
        min_side = 2 ** len(VGG11_BLOCKS)  # pixels that the poolings reduce to one
        if len(shape) != 3 or {side // min_side for side in shape[1:]} != {1}:
            sides = f"{min_side}x{min_side} to {2 * min_side - 1}x{2 * min_side - 1}"
            raise ValueError(f"needs images of {sides} pixels, not samples of shape {shape}")

    def build(self, shape: Shape, classes: int) -> nn.Module:
        layers: list[nn.Module] = []
        before = shape[0]
        for block in VGG11_BLOCKS:
            for after in block:
                layers += [_convolution(before, after), nn.ReLU()]
                before = after
            layers.insert(-1, nn.MaxPool2d(2))
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before, classes))


def _convolution(before: int, after: int) -> nn.Module:
    """A 3x3 convolution with the initial weights of NIID-Bench's VGG. With PyTorch's smaller ones
    all images look alike after eight layers without normalization."""
    convolution = nn.Conv2d(before, after, 3, padding=1)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    nn.init.zeros_(convolution.get_parameter("bias"))
    return convolution


class ResNet18(Model):
    """ResNet-18 with the usual first layer for CIFAR: a 3x3 convolution of stride 1 instead of a
    7x7 one of stride 2, and no max pooling. 11,173,962 parameters for CIFAR-10."""

    name = "resnet18"
    batch_norm = True
    min_side = 8  # three halvings leave a pixel

    def build(self, shape: Shape, classes: int) -> nn.Module:
        network = torchvision_model(self.name, classes)
        first = nn.Conv2d(shape[0], 64, 3, padding=1, bias=False)
        nn.init.kaiming_normal_(first.weight, mode="fan_out", nonlinearity="relu")
        network.conv1, network.maxpool = first, nn.Identity()
        return network


class ResNet9(Model):
    """Stratify's ResNet-9 with batch normalization: 6,575,370 parameters for CIFAR-10."""

    name = "resnet9"
    batch_norm = True
    min_side = 8  # three halvings leave a pixel

    def build(self, shape: Shape, classes: int) -> nn.Module:
        depth, height, width = shape
        return nn.Sequential(
            *self._convolution(depth, 64),
            *self._convolution(64, 128, pools=True),
            residual(*self._convolution(128, 128), *self._convolution(128, 128)),
            *self._convolution(128, 256, pools=True),
            *self._convolution(256, 512, pools=True),
            residual(*self._convolution(512, 512), *self._convolution(512, 512)),
            nn.MaxPool2d((height // 8, width // 8)),  # leaves one pixel
            nn.Flatten(),
            nn.Linear(512, classes),
        )

    def normalization(self, channels: int) -> list[nn.Module]:
        """The normalization layers between a convolution and its ReLU."""
        return [nn.BatchNorm2d(channels)]

    def _convolution(self, before: int, after: int, pools: bool = False) -> list[nn.Module]:
        pooling = [nn.MaxPool2d(2)] if pools else []
        layers = [nn.Conv2d(before, after, 3, padding=1), *self.normalization(after)]
        return [*layers, *pooling, nn.ReLU()]


class ResNet9GroupNorm(ResNet9):
    """ResNet-9 with group normalization, in 32 groups of channels; it has as many parameters."""

    name = "resnet9-gn"
    batch_norm = False

    def normalization(self, channels: int) -> list[nn.Module]:
        return [nn.GroupNorm(32, channels)]


class ResNet9Plain(ResNet9):
    """ResNet-9 without normalization. 6,570,890 parameters for CIFAR-10."""

    name = "resnet9-plain"
    batch_norm = False

    def normalization(self, channels: int) -> list[nn.Module]:
        return []


STAGES = (16, 32, 64)  # channels; the second and the third stage halve the images
BLOCKS = 3  # in a stage


class ResNet20(Model):
    """ResNet-20 of FedTAN, with batch normalization and shortcuts without weights, initialized as
    in its authors' code. 269,722 parameters for CIFAR-10."""

    name = "resnet20"
    batch_norm = True
    min_side = 4

    def build(self, shape: Shape, classes: int) -> nn.Module:
        layers = [*_normalized(shape[0], STAGES[0]), nn.ReLU()]
        before = STAGES[0]
        for after in STAGES:
            for _ in range(BLOCKS):
                layers += [_block(before, after), nn.ReLU()]
                before = after
        pooling = nn.AdaptiveAvgPool2d(1)
        network = nn.Sequential(*layers, pooling, nn.Flatten(), nn.Linear(before, classes))
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight)
        return network


def _block(before: int, after: int) -> nn.Module:
    """A residual block, which halves the images where it widens."""
    stride = 2 if after > before else 1
    layers = [*_normalized(before, after, stride), nn.ReLU(), *_normalized(after, after)]
    return residual(*layers, stride=stride, new_channels=after - before)


def _normalized(before: int, after: int, stride: int = 1) -> list[nn.Module]:
    """A 3x3 convolution with batch normalization."""
    return [nn.Conv2d(before, after, 3, stride, padding=1, bias=False), nn.BatchNorm2d(after)]


class EfficientNetB0(Model):
    """The smallest EfficientNet. 4,019,077 parameters for the nine classes of PathMNIST."""

    name = "efficientnet-b0"
    batch_norm = True

    def check(self, shape: Shape) -> None:
        if len(shape) != 3 or shape[0] != 3:
            raise ValueError(f"needs images with three color channels, not samples of {shape}")

    def build(self, shape: Shape, classes: int) -> nn.Module:
        return torchvision_model(self.name.replace("-", "_"), classes)


class EfficientNetB3(EfficientNetB0):
    """EfficientNet-B3, wider and deeper. 10,710,065 parameters for PathMNIST's nine classes."""

    name: ClassVar[str] = "efficientnet-b3"


class CharLstm(Model):
    """The character LSTM of AML's federated runs: one layer of 128 units on embeddings of size
    32, 95,824 parameters for 80 characters."""

    name = "char-lstm"
    kinds = ("text",)
    embedding: ClassVar[int] = 32
    hidden: ClassVar[int] = 128
    layers: ClassVar[int] = 1
    dropout: ClassVar[float] = 0.0
    padding: ClassVar[int | None] = 0  # the number that stands for no character

    def build(self, shape: Shape, classes: int) -> nn.Module:
        class Network(nn.Module):
            """Takes the characters of a text as numbers; scores the one that follows."""

            def __init__(self, model: CharLstm):
                super().__init__()
                self.embedding = nn.Embedding(classes, model.embedding, padding_idx=model.padding)
                sizes = model.embedding, model.hidden, model.layers
                self.lstm = nn.LSTM(*sizes, batch_first=True, dropout=model.dropout)
                self.linear = nn.Linear(model.hidden, classes)

            def forward(self, characters: Tensor) -> Tensor:
                steps, _ = self.lstm(self.embedding(characters))
                return self.linear(steps[:, -1])

        return Network(self)


class CharLstmTwo(CharLstm):
    """The character LSTM with two layers and dropout; AML's paper leaves their sizes open."""

    name = "char-lstm-two"
    layers = 2
    dropout = 0.1


class CharLstmCentral(CharLstm):
    """The character LSTM that AML trains centrally: two layers of 256 units with dropout on
    embeddings of size 8, 819,655 parameters for 79 characters."""

    name = "char-lstm-central"
    embedding = 8
    hidden = 256
    layers = 2
    dropout = 0.1
    padding = None


MODELS = Catalog("cohort.models", Model, (
    AmlLeNet, CharLstm, CharLstmCentral, CharLstmTwo, EfficientNetB0, EfficientNetB3, LeNet5,
    ResNet18, ResNet20, ResNet9, ResNet9GroupNorm, ResNet9Plain, SmallCNN, SmallMLP,
    StratifyCNN, StratifyMLP, Vgg11,
))  # fmt: skip
