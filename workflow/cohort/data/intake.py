"""Read what a user offers as a data set: an .npz, or a folder of pictures. A mistake is a UserError
that names the file."""

from pathlib import Path
from typing import Any

import numpy as np

from cohort.core.errors import UserError, suggest
from cohort.data.archives import explain_broken_file
from cohort.data.parsers.pictures import PICTURES, decode_picture, size_of
from cohort.data.sampling import draw_part

SPLITS = ("train", "test")
CODES = 2**16  # values of a column, which is stored in 16 bits


def read_user_data(
    path: Path, *, side: int | None, share: float, seed: int
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Read a user's data set: `x_train`, `y_train`, `x_test` and `y_test`, with labels from 0, and
    the names of the classes. Pictures are resized to `side`; without a split, a `share` is held out
    for testing, drawn by `seed`."""
    if not path.is_dir() and path.suffix != ".npz":
        raise UserError(f"{path}: is neither an .npz nor a folder of pictures")
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
            raise UserError(f"{path}: holds no array '{name}'{suggest(name, arrays)}")
    for x, y in pairs:
        values, names = arrays[x], arrays[y]
        if values.dtype.kind not in "iuf" or values.ndim not in (2, 3, 4) or not values.size:
            raise UserError(f"{path}: {x} must be numbers: rows and columns, or images")
        if names.shape != values.shape[:1] or names.dtype.kind not in "iuU":
            raise UserError(
                f"{path}: {y} must be a whole number or a text for each of the {len(values)} rows "
                f"of {x}"
            )
        if len(rows := np.argwhere(~np.isfinite(values))):
            raise UserError(f"{path}: {x}, row {rows[0, 0]}, holds a value that is not a number")
    values = np.concatenate([arrays[x] for x, _ in pairs])
    names = np.concatenate([arrays[y] for _, y in pairs])
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
    limits = np.iinfo(np.int16)
    low, high = values.min(axis=0), values.max(axis=0)
    whole = (values == np.round(values)).all(axis=0) & (low >= limits.min) & (high <= limits.max)
    width = np.where(high > low, high - low, 1)
    steps = np.round((values - low) / width * (CODES - 1)) + limits.min
    return np.where(whole, values, steps).astype(np.int16)


def _read_folder(path: Path, side: int | None) -> tuple[np.ndarray, Any, np.ndarray | None]:
    """Read pictures in a folder for each class, perhaps below folders `train` and `test`: their
    pixels, class names, and which are for testing if the folders say."""
    is_split = all((path / part).is_dir() for part in SPLITS)
    parts = [path / part for part in SPLITS] if is_split else [path]
    files = [file for part in parts for file in sorted(part.glob("*/*"))]
    files = [file for file in files if file.name.lower().endswith(PICTURES)]
    if not files:
        raise UserError(f"{path}: holds no pictures; they must lie in a folder for each class")
    resize = side is not None
    if side is None:
        side, height = size_of(files[0])
        if side != height:
            raise UserError(f"{files[0]}: is not square; resize pictures with --side")
    pictures = [decode_picture(file.read_bytes(), side, str(file), resize=resize) for file in files]
    test = np.array([file.is_relative_to(path / "test") for file in files])
    return np.stack(pictures), [file.parent.name for file in files], test if is_split else None
