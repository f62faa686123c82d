"""Data sets of a user: what is read of an .npz and a folder, and how mistakes are named."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cohort.core.errors import UserError
from cohort.data.parsers.arrays import Arrays, read_user_data

Read = tuple[dict[str, np.ndarray], list[str]]
LABELS = np.array([7, 5, 7, 5])


def read(path: Path, *, side: int | None = None, share: float = 0.2, seed: int = 0) -> Read:
    return read_user_data(path, side=side, share=share, seed=seed)


def npz(folder: Path, **arrays: object) -> Path:
    np.savez(folder / "x.npz", **arrays)
    return folder / "x.npz"


def test_a_table_with_a_split_is_stored_and_parsed(tmp_path: Path):
    """Whole numbers stay; 0, 0.5 and 1 are the ends and the middle of 16 bits."""
    train, test = np.array([[30, 0], [40, 0.5]]), np.array([[50, 1]])
    path = npz(tmp_path, x_train=train, y_train=["b", "a"], x_test=test, y_test=["b"])
    arrays, classes = read(path)
    assert classes == ["a", "b"]
    np.savez(tmp_path / Arrays.file, **arrays)
    splits = Arrays().parse(tmp_path)
    values = [np.concatenate(list(split.values.read())).tolist() for split in splits]
    assert values == [[[30, -32768], [40, 0]], [[50, 32767]]]
    assert [split.labels.tolist() for split in splits] == [[1, 0], [1]]


def test_numbers_of_any_type_keep_their_order(tmp_path: Path):
    """The range of these is no number of their own type."""
    for values in (np.array([-2e9, 0, 2e9], np.int32), np.array([-0.5, 0, 0.5], np.float16)):
        arrays, _ = read(npz(tmp_path, x=np.repeat(values, 9)[:, None], y=np.arange(27) % 2))
        assert {*arrays["x_train"].ravel().tolist()} == {-32768, 0, 32767}


def test_a_share_is_held_out_by_seed(tmp_path: Path):
    path = npz(tmp_path, x=np.arange(50)[:, None], y=np.arange(50) % 2)
    splits = [read(path, seed=seed)[0] for seed in (0, 0, 1)]
    first, again, other = (set(arrays["x_test"].ravel()) for arrays in splits)
    assert first == again != other and len(first) == 10
    assert sorted([*first, *splits[0]["x_train"].ravel()]) == list(range(50))


def test_images_in_an_npz(tmp_path: Path):
    """Channels last become channels first; 0 to 1 becomes 0 to 255."""
    images = np.zeros((4, 2, 2, 3))
    images[0, 1, 0, 2] = 1
    path = npz(tmp_path, x_train=images, y_train=LABELS, x_test=images, y_test=LABELS)
    arrays, classes = read(path)
    assert classes == ["5", "7"] and arrays["y_train"].tolist() == [1, 0, 1, 0]
    texts = npz(tmp_path, x_train=images, y_train=LABELS, x_test=images, y_test=["5", "7"] * 2)
    assert read(texts)[1] == classes
    assert arrays["x_train"].shape == (4, 3, 2, 2) and arrays["x_train"].max() == 255
    assert np.argwhere(arrays["x_train"]).tolist() == [[0, 2, 1, 0]]


BROKEN = {
    "no y": ({"x": np.zeros((2, 3))}, "holds x, but needs x, y or x_train"),
    "short": ({"x": np.zeros((2, 3)), "y": np.zeros(1, int)}, "for each of the 2 rows"),
    "nan": ({"x": np.array([[0.0], [np.nan]]), "y": np.arange(2)}, "x, row 1, holds a value"),
    "floats": ({"x": np.zeros((2, 3)), "y": np.zeros(2)}, "y must be a whole number or a text"),
    "pixels": ({"x": np.full((2, 2, 2), 256), "y": np.arange(2)}, "whole numbers from 0 to 255"),
    "channels": ({"x": np.zeros((2, 4, 4, 4)), "y": np.arange(2)}, "4 channels"),
    "nothing": ({}, "needs x, y or x_train"),
    "no rows": ({"x": np.zeros((0, 3)), "y": np.zeros(0, int)}, "x must be numbers"),
    "pickle": ({"x": np.array([{}]), "y": np.arange(1)}, "cannot be read (Object arrays"),
    "one class": ({"x": np.zeros((9, 3)), "y": np.zeros(9, int)}, "holds 1 classes, but at least"),
    "few": ({"x": np.zeros((2, 3)), "y": np.arange(2)}, "leaves no sample for testing"),
    "shapes": (
        {"x_train": np.zeros((2, 3)), "y_train": [0, 1], "x_test": np.ones((1, 4)), "y_test": [1]},
        "x_train has samples of shape (3,), x_test of (4,)",
    ),
    "only tested": (
        {"x_train": np.zeros((2, 3)), "y_train": [0, 0], "x_test": np.ones((1, 3)), "y_test": [1]},
        "class '1' has no training sample",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_in_an_npz_is_named(name: str, tmp_path: Path):
    arrays, sentence = BROKEN[name]
    path = npz(tmp_path, **arrays)
    with pytest.raises(UserError, match=f"^{path}: ") as error:
        read(path)
    assert sentence in str(error.value)


def pictures(folder: Path, *names: str, side: int = 4) -> None:
    for shade, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (side, side), (shade, 0, 200)).save(folder / name)


def test_a_folder_of_pictures(tmp_path: Path):
    pictures(tmp_path, "train/cat/a.png", "train/dog/b.png", "test/dog/c.png")
    pictures(tmp_path, "train/cat/._a.png", "train/.thumbnails/a.png")  # are hidden
    arrays, classes = read(tmp_path)
    assert classes == ["cat", "dog"]
    assert arrays["x_train"][:, :, 0, 0].tolist() == [[0, 0, 200], [1, 0, 200]]
    assert arrays["x_test"][:, :, 0, 0].tolist() == [[2, 0, 200]]
    assert read(tmp_path, side=2)[0]["x_test"].shape == (1, 3, 2, 2)


def test_a_mistake_in_a_folder_is_named(tmp_path: Path):
    with pytest.raises(UserError, match="holds no pictures; they must lie in a folder for each"):
        read(tmp_path)
    pictures(tmp_path, "cat/a.png", "dog/b.png")
    pictures(tmp_path, "dog/c.png", side=3)
    with pytest.raises(UserError, match=r"dog/c\.png: is a picture of 3 x 3 pixels, not square"):
        read(tmp_path)
    (tmp_path / "dog/c.png").write_bytes(b"no picture")
    with pytest.raises(UserError, match=r"dog/c\.png: is not a readable picture"):
        read(tmp_path)
    Image.new("I;16", (3, 3)).save(tmp_path / "dog/c.png")
    with pytest.raises(UserError, match=r"readable picture \(its gray has more than 8 bits\)"):
        read(tmp_path)
    with pytest.raises(UserError, match=r"c\.png: is neither an \.npz nor a folder of pictures"):
        read(tmp_path / "dog/c.png")
