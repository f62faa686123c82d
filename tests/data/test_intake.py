"""Data sets of a user: what is read of an .npz, a table and a folder, and how mistakes are named."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cohort.core.errors import FileAccessError, UserError, explain_errors
from cohort.data.intake import DatasetArrays, read_user_data, to_int16
from cohort.data.parsers.arrays import Arrays as Parser


def taken(path: Path, **options: object) -> DatasetArrays:
    usual = {"label": "label", "side": None, "share": 0.2, "seed": 0}
    return read_user_data(path, **(usual | options))  # type: ignore[arg-type]


def table(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_table_with_a_split(tmp_path: Path):
    """Whole numbers stay; 0, 0.5 and 1 are the ends and the middle of 16 bits."""
    text = "age,kind,share,split\n30,b,0,train\n40,a,0.5,train\n50,b,1,test\n"
    dataset = taken(table(tmp_path / "people.csv", text), label="kind")
    assert (dataset.kind, dataset.classes) == ("table", ["a", "b"])
    assert dataset.parts["x_train"].tolist() == [[30, -32768], [40, 0]]
    assert dataset.parts["x_test"].tolist() == [[50, 32767]]
    assert dataset.parts["y_train"].tolist() == [1, 0] and dataset.parts["y_test"].tolist() == [1]


def test_a_share_is_held_out_by_seed(tmp_path: Path):
    text = "x,label\n" + "".join(f"{number},{number % 2}\n" for number in range(50))
    path = table(tmp_path / "numbers.csv", text)
    splits = [taken(path, seed=seed).parts for seed in (0, 0, 1)]
    first, again, other = (set(parts["x_test"].ravel()) for parts in splits)
    assert first == again != other and len(first) == 10
    assert sorted([*first, *splits[0]["x_train"].ravel()]) == list(range(50))


def test_codes_keep_the_order_and_standardize_alike():
    values = np.random.default_rng(0).normal(size=(500, 2)) * [1e-6, 1e6]
    codes = to_int16(values).astype(float)
    for column in range(2):
        one, other = (
            (part[:, column] - part[:, column].mean()) / part[:, column].std()
            for part in (values, codes)
        )
        assert np.abs(one - other).max() < 1e-4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n", "has no column 'label'"),
        ("a,label\n1,x\nold,y\n", "line 3: a is 'old', which is not a number"),
        ("a,label\n1,x\n,y\n", "line 3: a is '', which is not a number"),
        ("a,label\n1,x,4\n", "line 2: has 3 columns, not 2"),
        ("a,label,split\n1,x,train\n1,y,dev\n", "line 3: split is 'dev', not train or test"),
        ("a,label,split\n1,x,train\n1,y,test\n", "class 'y' has no training sample"),
        ("a,label\n1,x\n2,x\n", "holds 1 classes, but at least 2 are needed"),
        ("a,label\n", "holds no rows"),
        ("a,label\n1,x\n2,y\n", "leaves no sample for testing"),
    ],
)
def test_a_mistake_in_a_table_names_the_file_and_the_line(text: str, sentence: str, tmp_path: Path):
    with pytest.raises(UserError) as error:
        taken(table(tmp_path / "table.csv", text))
    assert "table.csv" in str(error.value) and sentence in str(error.value)


def test_images_in_an_npz(tmp_path: Path):
    """Channels last become channels first; 0 to 1 becomes 0 to 255."""
    images = np.zeros((4, 2, 2, 3))
    images[0, 1, 0, 2] = 1
    labels = np.array([7, 5, 7, 5])
    np.savez(tmp_path / "x.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    dataset = taken(tmp_path / "x.npz")
    assert (dataset.kind, dataset.scale, dataset.classes) == ("images", 255, ["5", "7"])
    assert dataset.parts["x_train"].shape == (4, 3, 2, 2)
    assert np.argwhere(dataset.parts["x_train"]).tolist() == [[0, 2, 1, 0]]
    assert dataset.parts["x_train"].max() == 255 and dataset.parts["y_train"].tolist() == [
        1,
        0,
        1,
        0,
    ]


BROKEN = {
    "no y": ({"x": np.zeros((2, 3))}, "holds no array 'y'"),
    "short": ({"x": np.zeros((2, 3)), "y": np.zeros(1, int)}, "one label for each of the 2 rows"),
    "nan": ({"x": np.array([[0.0], [np.nan]]), "y": np.arange(2)}, "x, row 1, holds a value"),
    "floats": ({"x": np.zeros((2, 3)), "y": np.zeros(2)}, "y is of float64, but must be whole"),
    "pixels": ({"x": np.full((2, 2, 2), 256), "y": np.arange(2)}, "whole numbers from 0 to 255"),
    "channels": ({"x": np.zeros((2, 4, 4, 4)), "y": np.arange(2)}, "4 channels"),
    "nothing": ({}, "holds no arrays, but needs x and y"),
    "no rows": ({"x": np.zeros((0, 3)), "y": np.zeros(0, int)}, "x is empty: 0 x 3 values"),
    "no columns": ({"x": np.zeros((2, 0)), "y": np.arange(2)}, "x is empty: 2 x 0 values"),
    "pickle": ({"x": np.array([{}]), "y": np.arange(1)}, "cannot be read as an .npz"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_in_an_npz_is_named(name: str, tmp_path: Path):
    arrays, sentence = BROKEN[name]
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(UserError) as error:
        taken(tmp_path / "x.npz")
    assert "x.npz" in str(error.value) and sentence in str(error.value)


def test_an_empty_file_and_one_that_may_not_be_read(tmp_path: Path, monkeypatch):
    """Root may read everything, so the system's answer is imitated."""
    file = tmp_path / "x.npz"
    file.touch()
    with pytest.raises(UserError, match=r"x\.npz: cannot be read as an \.npz"):
        taken(file)

    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr(np, "load", refuse)
    with (
        pytest.raises(FileAccessError, match=r"x\.npz: permission is denied; change"),
        explain_errors(),
    ):
        taken(file)


def pictures(folder: Path, *names: str, side: int = 4) -> None:
    for shade, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (side, side), (shade, 0, 200)).save(folder / name)


def test_a_folder_of_pictures(tmp_path: Path):
    pictures(tmp_path, "train/cat/a.png", "train/dog/b.png", "test/dog/c.png")
    dataset = taken(tmp_path)
    assert dataset.classes == ["cat", "dog"]
    assert dataset.parts["x_train"][:, :, 0, 0].tolist() == [[0, 0, 200], [1, 0, 200]]
    assert dataset.parts["x_test"][:, :, 0, 0].tolist() == [[2, 0, 200]]
    assert taken(tmp_path, side=2).parts["x_test"].shape == (1, 3, 2, 2)


def test_a_broken_or_smaller_picture_is_named(tmp_path: Path):
    pictures(tmp_path, "cat/a.png", "dog/b.png")
    pictures(tmp_path, "dog/c.png", side=3)
    with pytest.raises(UserError, match=r"dog/c\.png: is a picture of 3 x 3 pixels, 4 x 4 are"):
        taken(tmp_path)
    (tmp_path / "dog/c.png").write_bytes(b"no picture")
    with pytest.raises(UserError, match=r"dog/c\.png: is not a readable picture"):
        taken(tmp_path)


def test_the_parser_reads_what_was_stored(tmp_path: Path):
    path = table(tmp_path / "t.csv", "a,label,split\n1,x,train\n2,y,train\n3,x,test\n")
    np.savez(tmp_path / "arrays.npz", **taken(path).parts)
    train, test = Parser().parse(tmp_path)
    assert np.concatenate(list(train.values.read())).tolist() == [[1], [2]]
    assert train.labels.tolist() == [0, 1] and test.labels.tolist() == [0]
