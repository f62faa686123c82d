"""Tiny files in the publishers' exact formats: IDX, the pickles that Python 2 wrote of CIFAR, and
both as they are packed; archives of pictures and of arrays (picture_publishers.py), texts and
tables (row_publishers.py)."""

import io
import pickle
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tests.data.picture_publishers import PICTURE_SETS, gz, picture_contents, picture_counts, tar_gz
from tests.data.row_publishers import ROW_SETS, row_contents, row_counts

CLASSES = dict.fromkeys(("mnist", "fashion-mnist", "cifar10", "cifar10-unit"), 10)
CLASSES |= {"cifar100": 100, "cifar100-coarse": 20}
IDX_FOLDERS = {"mnist": "MNIST/raw", "fashion-mnist": "FashionMNIST/raw"}
CIFAR_FOLDERS = {
    **dict.fromkeys(("cifar10", "cifar10-unit"), "cifar-10-batches-py"),
    **dict.fromkeys(("cifar100", "cifar100-coarse"), "cifar-100-python"),
}


def contents(dataset: str, seed: int = 0) -> dict[str, bytes]:
    """The files that a data set's parser reads, by name: each class twice as often for training as for testing."""
    rng = np.random.default_rng([seed, *dataset.encode()])
    if dataset in PICTURE_SETS:
        return picture_contents(dataset)
    if dataset in ROW_SETS:
        return row_contents(dataset)
    if dataset in IDX_FOLDERS:
        return _idx_files(rng)
    is_cifar10 = CIFAR_FOLDERS[dataset] == CIFAR_FOLDERS["cifar10"]
    return _cifar10_files(rng) if is_cifar10 else _cifar100_files(rng)


def write(dataset: str, folder: Path) -> None:
    """The data set's files, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents(dataset).items():
        (folder / name).write_bytes(content)


def counts(dataset: str) -> dict[str, int]:
    """How many samples each split holds."""
    if dataset in PICTURE_SETS:
        return picture_counts(dataset)
    if dataset in ROW_SETS:
        return row_counts(dataset)
    test = 100 if dataset.startswith("cifar100") else 10
    return {"train": 2 * test, "test": test}


def _idx_files(rng: np.random.Generator) -> dict[str, bytes]:
    files = {}
    for part, count in (("train", 20), ("t10k", 10)):
        images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = rng.permutation(np.arange(count) % 10).astype(np.uint8)
        files[f"{part}-images-idx3-ubyte"] = idx(images)
        files[f"{part}-labels-idx1-ubyte"] = idx(labels)
    return files


def idx(values: np.ndarray) -> bytes:
    """An array of bytes as http://yann.lecun.com/exdb/mnist describes it."""
    head = struct.pack(f">BBBB{values.ndim}I", 0, 0, 0x08, values.ndim, *values.shape)
    return head + values.tobytes()


def _cifar10_files(rng: np.random.Generator) -> dict[str, bytes]:
    labels = rng.permutation(np.arange(20) % 10).tolist()
    files = {}
    for number in range(1, 6):
        own = labels[number * 4 - 4 : number * 4]
        files[f"data_batch_{number}"] = _cifar10_batch(rng, own, number)
    return files | {"test_batch": _cifar10_batch(rng, list(range(10)), 0)}


def _cifar10_batch(rng: np.random.Generator, labels: list[int], number: int) -> bytes:
    title = f"training batch {number} of 5" if number else "testing batch 1 of 1"
    content = {"batch_label": title, "labels": labels, "data": _rows(rng, len(labels))}
    return python2_pickle(content | {"filenames": _names(len(labels))})


def _cifar100_files(rng: np.random.Generator) -> dict[str, bytes]:
    files = {}
    for name, count in (("train", 200), ("test", 100)):
        fine = rng.permutation(np.arange(count) % 100).tolist()
        content = {"filenames": _names(count), "batch_label": f"{name}ing batch 1 of 1"}
        content |= {"fine_labels": fine, "coarse_labels": [label // 5 for label in fine]}
        files[name] = python2_pickle(content | {"data": _rows(rng, count)})
    return files


def _rows(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(0, 256, (count, 3072), dtype=np.uint8)


def _names(count: int) -> list[str]:
    return [f"leptodactylus_pentadactylus_s_{number:06}.png" for number in range(count)]


class Python2Pickler(pickle._Pickler):
    """Protocol 2 with the texts of Python 2 and the names of NumPy 1, opcode by opcode as the
    publisher's files have them."""

    dispatch: ClassVar[dict[type, Any]] = dict(pickle._Pickler.dispatch)

    def save_text(self, value: str | bytes) -> None:
        content = value.encode() if isinstance(value, str) else value
        short = len(content) < 256
        self.write(
            (b"U" + bytes([len(content)]) if short else b"T" + struct.pack("<i", len(content)))
            + content
        )
        self.memoize(value)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        module = obj.__module__.replace("numpy._core", "numpy.core")
        self.write(f"c{module}\n{obj.__qualname__}\n".encode())
        self.memoize(obj)

    dispatch[str] = dispatch[bytes] = save_text


class Foreign:
    """A malicious pickle: unpickling it naively writes a file."""

    def __reduce__(self) -> Any:
        return Path.write_text, (Path("written"), "by a pickle")


def python2_pickle(content: Mapping[str, Any]) -> bytes:
    """Pickle an object as Python 2 did."""
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(dict(content))
    return file.getvalue()


def packed(dataset: str) -> dict[str, bytes]:
    """What the publisher offers, by name: a .gz for each file, or one archive with a folder."""
    if dataset in IDX_FOLDERS:
        return {f"{name}.gz": gz(content) for name, content in contents(dataset).items()}
    folder = CIFAR_FOLDERS[dataset]
    name = f"{folder.removesuffix('-batches-py').removesuffix('-python')}-python.tar.gz"
    members = {f"{folder}/{member}": content for member, content in contents(dataset).items()}
    return {name: tar_gz(members)}
