"""Data sets whose files hold arrays: MNIST, CIFAR, MedMNIST, scikit-learn's digits, and the user's
own, which may begin as a folder of pictures."""

import pickle
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cohort.core.errors import UserError
from cohort.data.parsers.pictures import PICTURES, decode_picture
from cohort.data.raw import explain_broken_file, read_npz
from cohort.data.sampling import draw_part, draw_stratified
from cohort.data.split import Blocks, Parser, Split

SPLITS = ("train", "test")


class Arrays(Parser):
    """Parses an .npz of whole numbers, as `cohort data add` stores it: `x_train`, `y_train`,
    `x_test` and `y_test`, labels from 0."""

    name: ClassVar[str] = "arrays"
    file: ClassVar[str] = "arrays.npz"

    def parse(self, folder: Path) -> tuple[Split, ...]:
        path = folder / self.file
        pairs = [(read_npz(path, f"x_{part}"), read_npz(path, f"y_{part}")) for part in SPLITS]
        return tuple(Split(values, _whole(labels)) for values, labels in pairs)


def read_user_data(
    path: Path, *, side: int | None, share: float, seed: int
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Read a user's data set: `x_train`, `y_train`, `x_test` and `y_test`, with labels from 0, and
    the names of the classes. Pictures are resized to `side`; without a split, a `share` is held out
    for testing, drawn by `seed`."""
    if not path.is_dir() and path.suffix != ".npz":
        raise UserError(f"{path}: is neither an .npz nor a folder of pictures")
    if side and not path.is_dir():
        raise UserError(f"{path}: --side resizes a folder of pictures, not the arrays of an .npz")
    values, names, test = _read_folder(path, side) if path.is_dir() else _read_npz(path)
    if test is None:
        test = draw_part(len(names), share, "test split", seed)
    classes, labels = np.unique(names, return_inverse=True)
    if len(classes) < 2:
        raise UserError(f"{path}: holds {len(classes)} classes, but at least 2 are needed")
    if not test.any():
        raise UserError(f"{path}: leaves no sample for testing; hold out a larger share (--test)")
    if lacking := [str(classes[label]) for label in set(labels) - set(labels[~test])]:
        raise UserError(f"{path}: class '{lacking[0]}' has no training sample")
    arrays = {"x_train": values[~test], "y_train": labels[~test]}
    return arrays | {"x_test": values[test], "y_test": labels[test]}, classes.astype(str).tolist()


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Values, class names, and which samples are for testing if the file says."""
    with explain_broken_file(str(path)), np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    pairs = [("x", "y")] if "x" in arrays else [(f"x_{part}", f"y_{part}") for part in SPLITS]
    for name in (name for pair in pairs for name in pair):
        if name not in arrays:
            raise UserError(f"{path}: holds {', '.join(arrays)}, but needs x, y or x_train, ...")
    for x, y in pairs:
        values, names = arrays[x], arrays[y]
        if values.dtype.kind not in "iuf" or values.ndim not in (2, 3, 4) or not values.size:
            raise UserError(f"{path}: {x} must be numbers: rows and columns, or images")
        if names.shape != values.shape[:1] or names.dtype.kind not in "iuU":
            wanted = f"a whole number or a text for each of the {len(values)} rows of {x}"
            raise UserError(f"{path}: {y} must be {wanted}")
        if len(rows := np.argwhere(~np.isfinite(values))):
            raise UserError(f"{path}: {x}, row {rows[0, 0]}, holds a value that is not a number")
    shapes = [arrays[x].shape[1:] for x, _ in pairs]
    if len({*shapes}) > 1:
        raise UserError(f"{path}: x_train has samples of shape {shapes[0]}, x_test of {shapes[1]}")
    values = np.concatenate([arrays[x] for x, _ in pairs])
    kind = "U" if "U" in {arrays[y].dtype.kind for _, y in pairs} else np.int64
    names = np.concatenate([arrays[y].astype(kind) for _, y in pairs])
    test = np.arange(len(names)) >= len(arrays["y_train"]) if len(pairs) == 2 else None
    return to_int16(values) if values.ndim == 2 else _pixels(path, values), names, test


def _pixels(path: Path, values: np.ndarray) -> np.ndarray:
    """Convert images to bytes, channels first; numbers from 0 to 1 become 0 to 255."""
    if values.ndim == 3:
        values = values[:, np.newaxis]
    elif values.shape[1] not in (1, 3):
        values = values.transpose(0, 3, 1, 2)
    if values.shape[1] not in (1, 3):
        raise UserError(f"{path}: images have {values.shape[1]} channels, but must have 1 or 3")
    low, high = values.min(), values.max()
    if values.dtype.kind == "f" and low >= 0 and high <= 1:
        values = np.round(255 * values)
    elif low < 0 or high > 255 or (values != np.round(values)).any():
        raise UserError(f"{path}: pixels must be whole numbers from 0 to 255, or from 0 to 1")
    return np.ascontiguousarray(values, dtype=np.uint8)


def to_int16(values: np.ndarray) -> np.ndarray:
    """Convert columns to 16-bit numbers. Whole numbers that fit stay; others become 65,536 equal
    steps from a column's lowest to its highest value, which standardization takes back."""
    limits, values = np.iinfo(np.int16), values.astype(np.float64)
    low, high = values.min(axis=0), values.max(axis=0)
    whole = (values == np.round(values)).all(axis=0) & (low >= limits.min) & (high <= limits.max)
    width = np.where(high > low, high - low, 1)
    steps = np.round((values - low) / width * (limits.max - limits.min)) + limits.min
    return np.where(whole, values, steps).astype(np.int16)


def _read_folder(path: Path, side: int | None) -> tuple[np.ndarray, Any, np.ndarray | None]:
    """Read pictures in a folder for each class, perhaps below folders `train` and `test`: their
    pixels, class names, and which are for testing if the folders say."""
    is_split = all((path / part).is_dir() for part in SPLITS)
    parts = [path / part for part in SPLITS] if is_split else [path]
    files = [file for part in parts for file in sorted(part.glob("*/*"))]
    files = [file for file in files if file.name.lower().endswith(PICTURES)]
    # hidden are folders of thumbnails, and macOS's copies of attributes
    files = [file for file in files if "/." not in f"/{file.parent.name}/{file.name}"]
    if not files:
        raise UserError(f"{path}: holds no pictures; they must lie in a folder for each class")
    pictures = [decode_picture(file.read_bytes(), str(file), side) for file in files]
    for file, (_, height, width) in zip(files, map(np.shape, pictures), strict=True):
        if not width == height == pictures[0].shape[1]:
            size = f"{width} x {height} pixels, not square or not as large as {files[0].name}"
            raise UserError(f"{file}: is a picture of {size}; resize all with --side")
    test = np.array([file.is_relative_to(path / "test") for file in files])
    return np.stack(pictures), [file.parent.name for file in files], test if is_split else None


class MedMnist(Parser):
    """Parses any set of MedMNIST+. Gray images become RGB, as in the papers that use them."""

    name: ClassVar[str] = "medmnist"
    in_digest: ClassVar[bool] = False

    def parse(self, folder: Path) -> tuple[Split, ...]:
        (path,) = folder.glob("*.npz")
        return tuple(_medical_split(path, part) for part in ("train", "test", "val"))


def _medical_split(path: Path, part: str) -> Split:
    images, labels = (read_npz(path, f"{part}_{kind}") for kind in ("images", "labels"))

    def read() -> Iterator[np.ndarray]:
        for block in images.read():
            colored = block if block.ndim == 4 else np.repeat(block[..., np.newaxis], 3, axis=3)
            yield colored.transpose(0, 3, 1, 2)

    if labels.shape[1:] != (1,):
        raise UserError(f"{path}: {part}_labels has several labels for each image")
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
    """Read an IDX file of bytes: 0, 0, type, number of dimensions, their sizes, the values."""
    content, begin = path.read_bytes(), 4 + 4 * dimensions
    with explain_broken_file(str(path)):
        if content[:4] != bytes((0, 0, 8, dimensions)):
            raise ValueError(f"it is not an IDX file of bytes with {dimensions} dimensions")
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
