"""Read what a user offers as a data set: an .npz, a folder of pictures, or a CSV table. A mistake
is a UserError that names the file and the row."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cohort.core.errors import UserError, refusal, suggest
from cohort.core.lazy import lazy
from cohort.core.randomness import generator
from cohort.data.pictures import decode_picture

if TYPE_CHECKING:
    from PIL import Image
else:
    Image = lazy("PIL.Image")

PICTURES = (".png", ".jpg", ".jpeg")
CODES = 2**16  # values of a column, which is stored in 16 bits
SPLITS = ("train", "test")


@dataclass(frozen=True)
class RawSamples:
    """The samples of a user's data set as they were read: the class name of each, and which of them
    are for testing, if the files say."""

    kind: str
    values: np.ndarray
    labels: Sequence[Any]
    test: np.ndarray | None


@dataclass(frozen=True)
class DatasetArrays:
    """A user's data set as Cohort stores it, with the names of its classes by label."""

    kind: str
    scale: int
    classes: list[str]
    parts: dict[str, np.ndarray]


def read_user_data(
    path: Path, *, label: str, side: int | None, share: float, seed: int
) -> DatasetArrays:
    """Read a user's data set from an .npz, a .csv or a folder of pictures. `label` is the column of
    a CSV that holds the classes, `side` the size that pictures are resized to. Without a split, a
    `share` is held out for testing, drawn by `seed`."""
    if path.is_dir():
        intake = _read_folder(path, side)
    elif path.suffix == ".csv":
        intake = _read_csv(path, label)
    elif path.suffix == ".npz":
        intake = _read_npz(path)
    else:
        raise UserError(f"{path}: is not a .npz, a .csv or a folder of pictures")
    classes = sorted(set(intake.labels), key=_numbers_first)
    number = {name: index for index, name in enumerate(classes)}
    labels = np.array([number[name] for name in intake.labels], dtype=np.int64)
    test = intake.test
    if test is None:
        order = generator(seed, "test split").permutation(len(labels))
        test = np.isin(np.arange(len(labels)), order[: round(share * len(labels))])
    _check_classes(path, classes, labels, test)
    parts: dict[str, np.ndarray] = {}
    for name, mask in zip(SPLITS, (~test, test), strict=True):
        parts |= {f"x_{name}": intake.values[mask], f"y_{name}": labels[mask]}
    return DatasetArrays(
        intake.kind, 255 if intake.kind == "images" else 1, list(map(str, classes)), parts
    )


def _check_classes(path: Path, classes: list[Any], labels: np.ndarray, test: np.ndarray) -> None:
    if len(classes) < 2:
        raise UserError(f"{path}: holds {len(classes)} classes, but at least 2 are needed")
    if not test.any():
        raise UserError(f"{path}: leaves no sample for testing; hold out a larger share (--test)")
    for label, name in enumerate(classes):
        if label not in labels[~test]:
            raise UserError(f"{path}: class '{name}' has no training sample")


def _numbers_first(name: Any) -> tuple[bool, Any]:
    """Sort key: names that are numbers come first, by value, then all others, as text."""
    try:
        return False, float(name)
    except ValueError:
        return True, name


def _read_npz(path: Path) -> RawSamples:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        if refusal(error):  # the disk's fault, not the file's
            raise
        raise UserError(f"{path}: cannot be read as an .npz ({error})") from None
    names = [("x", "y")] if "x" in arrays else [(f"x_{part}", f"y_{part}") for part in SPLITS]
    if not arrays:
        raise UserError(f"{path}: holds no arrays, but needs x and y, or one of each per split")
    for name in (name for pair in names for name in pair):
        if name not in arrays:
            raise UserError(f"{path}: holds no array '{name}'{suggest(name, arrays)}")
    for x, y in names:
        _check_rows(path, x, y, arrays)
    values = np.concatenate([arrays[x] for x, _ in names])
    labels = np.concatenate([arrays[y] for _, y in names])
    sizes = [len(arrays[y]) for _, y in names]
    test = np.repeat([False, True], sizes) if len(sizes) == 2 else None
    if values.ndim == 2:
        return RawSamples("table", to_int16(values), labels.tolist(), test)
    return RawSamples("images", _pixels(path, values), labels.tolist(), test)


def _check_rows(path: Path, x: str, y: str, arrays: dict[str, np.ndarray]) -> None:
    values, labels = arrays[x], arrays[y]
    if labels.ndim != 1 or len(labels) != len(values):
        raise UserError(f"{path}: {y} must be one label for each of the {len(values)} rows of {x}")
    if not values.size:
        raise UserError(f"{path}: {x} is empty: {' x '.join(map(str, values.shape))} values")
    if labels.dtype.kind not in "iuU":
        raise UserError(f"{path}: {y} is of {labels.dtype}, but must be whole numbers or texts")
    if values.dtype.kind not in "iuf" or values.ndim not in (2, 3, 4):
        raise UserError(
            f"{path}: {x} is of {values.dtype} and {values.ndim} dimensions, but must be numbers: "
            "rows and columns, or images"
        )
    wrong = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
    if wrong.any():
        raise UserError(
            f"{path}: {x}, row {int(wrong.argmax())}, holds a value that is not a number"
        )


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


def _read_folder(path: Path, side: int | None) -> RawSamples:
    """Read pictures in a folder for each class, perhaps below folders `train` and `test`."""
    is_split = all((path / part).is_dir() for part in SPLITS)
    pictures = []
    for part in SPLITS if is_split else (".",):
        for folder in sorted(child for child in (path / part).iterdir() if child.is_dir()):
            files = sorted(child for child in folder.iterdir() if child.suffix.lower() in PICTURES)
            pictures += [(file, folder.name, part == "test") for file in files]
    if not pictures:
        raise UserError(f"{path}: holds no pictures; they must lie in a folder for each class")
    if side is None:
        side = _picture_side(pictures[0][0])
        resize = False
    else:
        resize = True
    values = [
        decode_picture(file.read_bytes(), side, str(file), resize=resize) for file, _, _ in pictures
    ]
    _, labels, test = zip(*pictures, strict=True)
    return RawSamples("images", np.stack(values), labels, np.array(test) if is_split else None)


def _picture_side(file: Path) -> int:
    try:
        with Image.open(file, formats=("PNG", "JPEG")) as image:
            width, height = image.size
    except OSError as error:
        if refusal(error):
            raise
        raise UserError(f"{file}: is not a readable picture ({error})") from None
    if width != height:
        raise UserError(f"{file}: has {width} x {height} pixels; resize to a square with --side")
    return int(width)


def _read_csv(path: Path, label: str) -> RawSamples:
    """Read a table with a header; a column `split` may say `train` or `test`."""
    with open(path, encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines)
        header = next(reader, [])
        if label not in header:
            raise UserError(f"{path}: has no column '{label}'{suggest(label, header)} (--label)")
        rows = [(reader.line_num, row) for row in reader if row]
    columns = [name for name in header if name not in (label, "split")]
    values, labels, test = [], [], []
    for line, texts in rows:
        if len(texts) != len(header):
            raise UserError(f"{path}, line {line}: has {len(texts)} columns, not {len(header)}")
        row = dict(zip(header, texts, strict=True))
        values.append([_number(row[name], f"{path}, line {line}: {name}") for name in columns])
        labels.append(row[label])
        if row.get("split", "train") not in SPLITS:
            raise UserError(f"{path}, line {line}: split is '{row['split']}', not train or test")
        test.append(row.get("split") == "test")
    if not rows or not columns:
        raise UserError(f"{path}: holds no {'columns beside the label' if rows else 'rows'}")
    is_split = np.array(test) if "split" in header else None
    return RawSamples("table", to_int16(np.array(values)), labels, is_split)


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise UserError(f"{where} is '{text}', which is not a number")
    return value


def to_int16(values: np.ndarray) -> np.ndarray:
    """Convert columns to 16-bit numbers. Whole numbers that fit stay; others become 65,536 equal
    steps from a column's lowest to its highest value, which standardization takes back."""
    limits = np.iinfo(np.int16)
    low, high = values.min(axis=0), values.max(axis=0)
    whole = (values == np.round(values)).all(axis=0) & (low >= limits.min) & (high <= limits.max)
    width = np.where(high > low, high - low, 1)
    steps = np.round((values - low) / width * (CODES - 1)) + limits.min
    return np.where(whole, values, steps).astype(np.int16)


def list_classes(classes: Iterable[str]) -> str:
    """The class names as text for an entry's title, at most ten of them."""
    listed = list(classes)
    return ", ".join(listed[:10]) + (", ..." if len(listed) > 10 else "")
