"""VGG-11: eight 3x3 convolutions in five blocks, each of which ends with pooling, and one linear layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from cohort.models.model import Model, Shape

if TYPE_CHECKING:
    from torch import nn

BLOCKS = ((64,), (128,), (256, 256), (512, 512), (512, 512))
SIDE = 2 ** len(BLOCKS)  # pixels of which the poolings leave one
FEATURES = BLOCKS[-1][-1]


class Convolution(NamedTuple):
    """Its channels before and after, the pixels that it keeps, and those that the pooling behind it leaves: none where there is none."""

    before: int
    after: int
    pixels: int
    pooled: int


@dataclass(frozen=True, kw_only=True)
class Vgg11(Model):
    """Configuration A with a single linear layer: VGG-11 of FedEntOpt. 9,225,610 parameters for CIFAR-10."""

    name: ClassVar[str] = "vgg11"
    normalized: ClassVar[bool] = False

    def check(self, shape: Shape) -> None:
        if len(shape) != 3 or {side // SIDE for side in shape[1:]} != {1}:
            raise ValueError(
                f"needs images of {SIDE}x{SIDE} to {2 * SIDE - 1}x{2 * SIDE - 1} pixels, "
                f"of which its {len(BLOCKS)} poolings leave one, not samples of shape {shape}"
            )

    def multiply_adds(self, shape: Shape, classes: int) -> int:
        return (
            sum(9 * before * after * pixels for before, after, pixels, _ in _convolutions(shape))
            + FEATURES * classes
        )

    def weights(self, shape: Shape, classes: int) -> int:
        of_channel = 1 + 2 * self.normalized
        return (
            sum((9 * before + of_channel) * after for before, after, _, _ in _convolutions(shape))
            + (FEATURES + 1) * classes
        )

    def outputs(self, shape: Shape) -> int:
        """Of each convolution, of its normalization, of its pooling and of its ReLU, which comes last."""
        whole = 1 + self.normalized
        return sum(
            after * (whole * pixels + (2 * pooled or pixels))
            for _, after, pixels, pooled in _convolutions(shape)
        )

    def build(self, shape: Shape, classes: int) -> nn.Module:
        from torch import nn

        layers: list[nn.Module] = []
        for before, after, _, pooled in _convolutions(shape):
            convolution = nn.Conv2d(before, after, 3, padding=1)
            # As NIID-Bench's VGG does. With PyTorch's own, smaller weights all images look alike after eight layers without normalization.
            nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(convolution.get_parameter("bias"))
            layers.append(convolution)
            if self.normalized:
                layers.append(nn.BatchNorm2d(after))
            if pooled:
                layers.append(nn.MaxPool2d(2))
            layers.append(nn.ReLU())
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(FEATURES, classes))


@dataclass(frozen=True, kw_only=True)
class Vgg11Normalized(Vgg11):
    """The same with batch normalization after each convolution. 9,231,114 parameters for CIFAR-10."""

    name: ClassVar[str] = "vgg11-bn"
    normalized: ClassVar[bool] = True


def _convolutions(shape: Shape) -> Iterator[Convolution]:
    depth, height, width = shape
    for block in BLOCKS:
        for place, channels in enumerate(block, start=1):
            yield Convolution(
                depth,
                channels,
                height * width,
                (height // 2) * (width // 2) if place == len(block) else 0,
            )
            depth = channels
        height, width = height // 2, width // 2
