"""Parsers read tiny files in the publishers' formats, and refuse others in one sentence."""

import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cohort.core.errors import UserError
from cohort.data import store
from cohort.data.download import download
from cohort.data.parsers.arrays import Cifar100, Cifar100Coarse
from cohort.data.prepare import prepare
from cohort.settings import PlannedFile, plan_file, write_plan
from tests.conftest import ROOT
from tests.data import picture_publishers, publishers
from tests.data.picture_publishers import MEDICAL, PICTURE_SETS, Picture, is_gray, pictures, zip_of
from tests.data.publishers import CLASSES, Foreign, packed, python2_pickle
from tests.data.row_publishers import ROW_SETS

DECLARED = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())
JPEG_ERROR = 4  # levels by which a flat color may be off after JPEG
pytestmark = pytest.mark.usefixtures("empty_folder")


def prepared(dataset: str, contents: dict[str, bytes] | None = None, **changes: Any) -> Path:
    """Prepare a data set from files like the publisher's."""
    folder = Path("resources/raw", dataset)
    publishers.write(dataset, folder)
    for name, content in (contents or {}).items():
        (folder / name).write_bytes(content)
    return store_of(dataset, publishers.counts(dataset) | changes)


def store_of(dataset: str, changes: dict[str, Any]) -> Path:
    inputs = {name: f"resources/raw/{dataset}/{name}" for name in DECLARED[dataset]["files"]}
    settings = DECLARED[dataset] | changes | {"dataset": dataset}
    write_plan(PlannedFile("data.h5", "k0123456789ab", settings, {}, inputs))
    prepare(plan_file("k0123456789ab"), "data.h5")
    return Path("data.h5")


def refusal(dataset: str, contents: dict[str, bytes], **changes: Any) -> str:
    """The sentence with which a data set with these files is refused, leaving no store."""
    with pytest.raises(UserError) as caught:
        prepared(dataset, contents, **changes)
    assert "\n" not in str(caught.value) and not Path("data.h5").exists()
    return str(caught.value)


def test_every_data_set_that_is_downloaded_can_be_generated():
    assert {*CLASSES, *PICTURE_SETS, *ROW_SETS} == set(DECLARED) - {"digits"}


@pytest.mark.parametrize("dataset", CLASSES)
def test_from_the_publishers_archives_to_the_store(dataset: str):
    """The declarations of config/datasets.yaml with the generated files' checksums and sizes."""
    Path("mirror").mkdir()
    for name, content in packed(dataset).items():
        Path("mirror", name).write_bytes(content)
    for name, content in publishers.contents(dataset).items():
        raw = DECLARED[dataset]["files"][name]
        archive = packed(dataset)[raw["source"].rpartition("/")[2]]
        raw = raw | {
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "md5": hashlib.md5(archive).hexdigest(),
        }
        download(raw, f"resources/raw/{dataset}/{name}", "mirror")
    store_of(dataset, publishers.counts(dataset))
    for part, size in publishers.counts(dataset).items():
        split, attrs = store.read("data.h5", part)
        assert split.values.shape == (size, *DECLARED[dataset]["shape"])
        assert np.bincount(split.labels).tolist() == [size // CLASSES[dataset]] * CLASSES[dataset]
        assert attrs["classes"] == CLASSES[dataset]


def test_a_cifar_row_is_red_then_green_then_blue_row_by_row():
    row = (np.arange(3072) % 251).astype(np.uint8).reshape(1, -1)
    batch = {"data": row, "fine_labels": [97], "coarse_labels": [11]}
    for name, content in (("train", python2_pickle(batch)), ("test", python2_pickle(batch))):
        Path(name).write_bytes(content)
    split = Cifar100().parse(Path())[0]
    pixels = [split.values[0][at] for at in ((0, 0, 1), (0, 1, 0), (1, 0, 0), (2, 3, 4))]
    assert pixels == [1, 32, 1024 % 251, (2048 + 3 * 32 + 4) % 251]
    assert split.labels == [97] and Cifar100Coarse().parse(Path())[0].labels == [11]


ROWS = np.zeros((2, 3072), dtype=np.uint8)
GLOBAL = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n"
PICKLES = [
    (pickle.dumps({"data": Foreign()}), "it asks for "),
    (b"cos\nsystem\n(S'touch written'\ntR.", "it asks for os.system, which no array"),
    (b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.", "it asks for numpy.ndarray.tofile"),
    (python2_pickle({"data": ROWS, "fine_labels": [0, 1]})[:-100], ""),
    (GLOBAL + b"(L1000000000000000L\ntS'b'\ntR.", ""),  # more than memory
    (python2_pickle({"fine_labels": [0, 1]}), "b'data'"),
    (python2_pickle({"data": ROWS[:, 1:], "fine_labels": [0]}), ""),
    (python2_pickle({"data": ROWS, "fine_labels": ["a", "b"]}), ""),
]


@pytest.mark.parametrize(("content", "sentence"), PICKLES)
def test_a_pickle_that_is_refused(content: bytes, sentence: str):
    message = refusal("cifar100", {"train": content})
    assert message.startswith("resources/raw/cifar100/train: cannot be read (")
    assert sentence in message and not Path("written").exists()


def expected_color(dataset: str, picture: Picture) -> tuple[int, int, int]:
    """Gray pictures, and sets of them, have the red of the color in each channel."""
    has_gray = dataset in ("cinic10", "tiny-imagenet")
    if dataset.startswith("tissue") or (has_gray and is_gray(picture)):
        return (picture.color[0],) * 3
    return picture.color


@pytest.mark.parametrize("dataset", PICTURE_SETS)
def test_every_picture_is_stored_in_its_place(dataset: str):
    """The order is that of groups, classes and names, whatever the order in the archive."""
    prepared(dataset)
    side = DECLARED[dataset]["shape"][1]
    error = 0 if dataset == "cinic10" or dataset in MEDICAL else JPEG_ERROR
    for part in ("train", "test"):
        split, attrs = store.read("data.h5", part)
        expected = pictures(dataset, part)
        groups = split.groups if split.groups is not None else np.zeros(len(expected))
        assert split.labels.tolist() == [picture.label for picture in expected]
        assert groups.tolist() == [picture.group for picture in expected]
        assert split.values.shape == (len(expected), 3, side, side)
        near = side // 8
        for pixels, picture in zip(split.values.astype(int), expected, strict=True):
            lower_left, upper_right = pixels[:, -1 - near, near], pixels[:, near, -1 - near]
            assert np.abs(lower_left - expected_color(dataset, picture)).max() <= error, picture
            assert np.abs(upper_right - 255).max() <= error, picture
        assert attrs["classes"] == PICTURE_SETS[dataset][0]
    assert store.has_validation("data.h5") == (dataset in MEDICAL)
    if dataset in MEDICAL:
        train, validation = (store.read("data.h5", part)[0] for part in ("train", "validation"))
        assert validation.labels.tolist() == train.labels[::-1].tolist()
        assert np.array_equal(validation.values, train.values[::-1])


TINY, ART = "tiny-imagenet-200", "pacs/splits/art_painting_train_kfold.txt"
LAST_DIGIT = "digits_dg/syn/val/9/00000.jpg"
NOTES = f"{TINY}/val/val_annotations.txt"
WRONG = [
    ("tiny-imagenet", f"{TINY}/wnids.txt", None, "holds no wnids.txt"),
    ("tiny-imagenet", f"{TINY}/train/n1/images/n1_0.JPEG", b"", "n1_0.JPEG: 'n1' is not a class"),
    ("tiny-imagenet", NOTES, b"val_0.JPEG n01443537\n", "val_0.JPEG n01443537: '' is not a class"),
    ("tiny-imagenet", f"{TINY}/val/images/val_7.JPEG", None, "val_7.JPEG: cannot be read ("),
    ("pacs", ART, None, "pacs.zip: holds no splits/art_painting_train_kfold.txt"),
    ("pacs", ART, b"../../etc/passwd 1\n", "etc/passwd' is not a class"),
    ("pacs", ART, b"art_painting/cow/1.jpg 1\n", "'cow' is not a class"),
    ("digits-dg", LAST_DIGIT, b"<html>", "is not a readable picture"),
    ("digits-dg", LAST_DIGIT, None, "digits-dg: test has 39 samples of"),
    ("digits-dg", "digits_dg/syn/val/12/1.jpg", b"", "'12' is not a class of this"),
]


@pytest.mark.parametrize(("dataset", "member", "content", "sentence"), WRONG)
def test_a_wrong_archive_is_reported(
    dataset: str, member: str, content: bytes | None, sentence: str
):
    maker = getattr(picture_publishers, f"{dataset.partition('-')[0]}_members")
    members = dict(maker()) | {member: content}
    (name,) = DECLARED[dataset]["files"]
    left = {path: data for path, data in members.items() if data is not None}
    assert sentence in refusal(dataset, {name: zip_of(left)})
