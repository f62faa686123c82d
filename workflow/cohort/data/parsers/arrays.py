"""Data sets whose files hold arrays: MNIST, CIFAR, MedMNIST, scikit-learn's digits, the user's
own."""

import pickle
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from cohort.core.errors import UserError
from cohort.data.archives import explain_broken_file, read_npz
from cohort.data.parsers.parser import Parser
from cohort.data.sampling import draw_stratified
from cohort.data.split import Blocks, Split


class Arrays(Parser):
    """Parses an .npz of whole numbers, as `cohort data add` stores it: `x_train`, `y_train`,
    `x_test` and `y_test`, labels from 0."""

    name: ClassVar[str] = "arrays"
    file: ClassVar[str] = "arrays.npz"

    def parse(self, folder: Path) -> tuple[Split, ...]:
        path, parts = folder / self.file, ("train", "test")
        pairs = [[read_npz(path, f"{kind}_{part}") for kind in "xy"] for part in parts]
        return tuple(Split(values, _whole(labels)) for values, labels in pairs)


@dataclass(frozen=True, kw_only=True)
class MedMnist(Parser):
    """Parses any set of MedMNIST+. Gray images become RGB, because the papers that use them train
    networks for color images."""

    name: ClassVar[str] = "medmnist"
    in_digest: ClassVar[bool] = False
    file: str

    @classmethod
    def of(cls, files: Sequence[str]) -> Self:
        (file,) = files
        return cls(file=file)

    def parse(self, folder: Path) -> tuple[Split, ...]:
        return tuple(_medical_split(folder / self.file, part) for part in ("train", "test", "val"))


def _medical_split(path: Path, part: str) -> Split:
    images, labels = (read_npz(path, f"{part}_{kind}") for kind in ("images", "labels"))
    if len(images.shape) not in (3, 4) or labels.shape != (images.shape[0], 1):
        raise UserError(f"{path}: {part} is not images with one label for each")

    def read() -> Iterator[np.ndarray]:
        for block in images.read():
            colored = block if block.ndim == 4 else np.repeat(block[..., np.newaxis], 3, axis=3)
            yield colored.transpose(0, 3, 1, 2)

    values = Blocks((images.shape[0], 3, *images.shape[1:3]), read)
    return Split(values, _whole(labels)[:, 0].astype(np.int64))


def _whole(array: Blocks) -> np.ndarray:
    """All blocks of an array together."""
    return np.concatenate(list(array.read()))


class Digits(Parser):
    """Parses UCI's handwritten digits, which scikit-learn bundles: 1,797 images of 8x8 pixels with
    values from 0 to 16. The file has no split: a stratified fifth is drawn for testing."""

    name: ClassVar[str] = "digits"
    test_samples: ClassVar[int] = 360

    def parse(self, folder: Path) -> tuple[Split, Split]:
        table = np.loadtxt(folder / "digits.csv.gz", delimiter=",", dtype=np.uint8)
        images, labels = table[:, :-1].reshape(-1, 1, 8, 8), table[:, -1]
        test = draw_stratified(labels, self.test_samples, "digits test split")
        train = np.setdiff1d(np.arange(len(table)), test)
        return Split(images[train], labels[train]), Split(images[test], labels[test])


class Mnist(Parser):
    """Parses MNIST: 70,000 handwritten digits of 28x28 pixels, in the publisher's split."""

    name: ClassVar[str] = "mnist"

    def parse(self, folder: Path) -> tuple[Split, ...]:
        splits = []
        for part in ("train", "t10k"):
            images = read_idx(folder / f"{part}-images-idx3-ubyte", 3)[:, np.newaxis]
            splits.append(Split(images, read_idx(folder / f"{part}-labels-idx1-ubyte", 1)))
        return tuple(splits)


class FashionMnist(Mnist):
    """Parses Fashion-MNIST: 70,000 pictures of clothes, in files like those of MNIST."""

    name: ClassVar[str] = "fashion-mnist"


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Read an IDX file of bytes: two zeros, a type, the number of dimensions, their sizes, the
    values."""
    content, begin = path.read_bytes(), 4 + 4 * dimensions
    with explain_broken_file(str(path)):
        if content[:4] != bytes([0, 0, 8, dimensions]):
            raise ValueError(f"it is not an IDX file of bytes in {dimensions} dimensions")
        shape = struct.unpack(f">{dimensions}I", content[4:begin])
        return np.frombuffer(content, np.uint8, offset=begin).reshape(shape)


class Cifar10(Parser):
    """Parses CIFAR-10: ten classes, five batches for training and one for testing."""

    name: ClassVar[str] = "cifar10"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        batches = [_batch(folder / f"data_batch_{number}", b"labels") for number in range(1, 6)]
        images = np.concatenate([batch.values for batch in batches])
        labels = np.concatenate([batch.labels for batch in batches])
        return Split(images, labels), _batch(folder / "test_batch", b"labels")


class Cifar10Unit(Cifar10):
    """Parses CIFAR-10 for networks that see its pixels as numbers from 0 to 1, not standardized, as
    Flower's niid_bench prepares it."""

    name: ClassVar[str] = "cifar10-unit"


class Cifar100(Parser):
    """Parses CIFAR-100 with its 100 fine classes."""

    name: ClassVar[str] = "cifar100"
    key: ClassVar[bytes] = b"fine_labels"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        return _batch(folder / "train", self.key), _batch(folder / "test", self.key)


class Cifar100Coarse(Cifar100):
    """Parses CIFAR-100 with its 20 coarse classes, of five fine ones each."""

    name: ClassVar[str] = "cifar100-coarse"
    key: ClassVar[bytes] = b"coarse_labels"


def _batch(path: Path, key: bytes) -> Split:
    """Read a pickle of Python 2, whose texts become bytes."""
    with explain_broken_file(str(path)), open(path, "rb") as file:
        content = ArrayUnpickler(file, encoding="bytes").load()
        return Split(content[b"data"].reshape(-1, 3, 32, 32), np.array(content[key], np.int64))


class ArrayUnpickler(pickle.Unpickler):
    """Reads pickles of arrays, and imports nothing that another pickle asks for."""

    allowed: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy", "dtype"): np.dtype,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    }

    def find_class(self, module: str, name: str) -> Any:
        """Look a name up among the allowed ones only."""
        if (module, name) not in self.allowed:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no array needs")
        return self.allowed[module, name]
