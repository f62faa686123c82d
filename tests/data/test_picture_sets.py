"""The parsers of picture files find every picture with its class, group and colors, on tiny files
in the publishers' formats."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cohort.cell.planned import PlannedFile, plan_file, write_plan
from cohort.core.errors import UserError
from cohort.data import store
from cohort.data.download import download
from cohort.data.prepare import prepare
from tests.conftest import ROOT
from tests.data.picture_publishers import (
    MEDICAL,
    PICTURE_SETS,
    Known,
    is_gray,
    known,
    picture_contents,
    picture_counts,
)

FACTS = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())
pytestmark = pytest.mark.usefixtures("empty_folder")
EXACT = {"cinic10": 0} | dict.fromkeys(MEDICAL, 0)
JPEG = 4  # levels by which a flat color may be off after JPEG


def prepared(dataset: str, contents: dict[str, bytes] | None = None, **changes: Any) -> Path:
    """Prepare a data set from a mirror, with the generated file's checksum."""
    Path("mirror").mkdir(exist_ok=True)
    inputs = {}
    for name, content in (contents or picture_contents(dataset)).items():
        (Path("mirror") / name).write_bytes(content)
        raw = {
            key: value
            for key, value in FACTS[dataset]["files"][name].items()
            if key not in ("bytes", "mirrors")
        }
        raw |= {"md5": hashlib.md5(content).hexdigest()} if "md5" in raw else {}
        inputs[name] = f"resources/raw/{dataset}/{name}"
        download(raw, inputs[name], "mirror")
    write_plan(
        PlannedFile(
            "data.h5",
            "k0123456789ab",
            FACTS[dataset] | picture_counts(dataset) | {"dataset": dataset} | changes,
            {},
            inputs,
        )
    )
    prepare(plan_file("k0123456789ab"), "data.h5")
    return Path("data.h5")


def expected_color(dataset: str, item: Known) -> tuple[int, int, int]:
    """Gray pictures, and sets of them, have the red of the color in each channel."""
    gray = dataset.startswith("tissue") or (
        dataset in ("cinic10", "tiny-imagenet") and is_gray(item)
    )
    return (item.color[0],) * 3 if gray else item.color


@pytest.mark.parametrize("dataset", PICTURE_SETS)
def test_every_picture_is_stored_in_its_place(dataset: str):
    """The order is that of groups, classes and names, whatever the order in the archive."""
    prepared(dataset)
    side = FACTS[dataset]["shape"][1]
    for part in ("train", "test"):
        split, facts = store.read("data.h5", part)
        items = known(dataset, part)
        assert split.labels.tolist() == [item.label for item in items]
        assert (split.groups.tolist() if split.groups is not None else [0] * len(items)) == [
            item.group for item in items
        ]
        assert split.values.shape == (len(items), 3, side, side)
        near = side // 8
        for pixels, item in zip(split.values.astype(int), items, strict=True):
            lower_left, upper_right = pixels[:, -1 - near, near], pixels[:, near, -1 - near]
            assert np.abs(lower_left - expected_color(dataset, item)).max() <= EXACT.get(
                dataset, JPEG
            ), item
            assert np.abs(upper_right - 255).max() <= EXACT.get(dataset, JPEG), item
        assert facts["classes"] == PICTURE_SETS[dataset][0]
    assert store.has_validation("data.h5") == (dataset in MEDICAL)
    if dataset in MEDICAL:
        train, validation = (store.read("data.h5", part)[0] for part in ("train", "validation"))
        assert validation.labels.tolist() == train.labels[::-1].tolist()
        assert np.array_equal(validation.values, train.values[::-1])


def test_moments_that_are_not_given_are_those_of_the_training_pictures():
    """Three quarters of each picture are of its color, one is white: at 28 pixels, by hand."""
    prepared("pathmnist")
    _, facts = store.read("data.h5", "test")
    colors = np.array([item.color for item in known("pathmnist", "train")], dtype=float)
    mean = (0.75 * colors.mean(axis=0) + 0.25 * 255) / 255
    square = (0.75 * (colors**2).mean(axis=0) + 0.25 * 255**2) / 255**2
    np.testing.assert_allclose(facts["mean"], mean, rtol=1e-12)
    np.testing.assert_allclose(facts["std"], np.sqrt(square - mean**2), rtol=1e-9)


def test_checksums_of_raw_files_are_recorded():
    content = picture_contents("digits-dg")["digits_dg.zip"]
    _, facts = store.read(prepared("digits-dg"), "test")
    assert facts["raw_sha256"] == f'{{"digits_dg.zip": "{hashlib.sha256(content).hexdigest()}"}}'


def test_resizing_takes_the_mean_of_what_a_pixel_covers():
    """Stripes of 0 and 200, one pixel wide: at a seventh of the size all is near 100, where the
    nearest pixel would give 0 or 200."""
    from cohort.data.pictures import resized

    stripes = np.zeros((1, 224, 224, 3), dtype=np.uint8)
    stripes[:, :, ::2] = 200
    images = resized(stripes, 32)
    assert images.shape == (1, 32, 32, 3) and images.min() > 90 and images.max() < 110


def changed(dataset: str, member: str, content: bytes | None) -> dict[str, bytes]:
    """The publisher's zip with one member changed, or left out."""
    from tests.data import picture_publishers as made

    makers = {
        "tiny-imagenet": made.tiny_members,
        "pacs": made.pacs_members,
        "digits-dg": made.digits_members,
    }
    members = dict(makers[dataset]()) | ({member: content} if content is not None else {})
    if content is None:
        del members[member]
    (name,) = FACTS[dataset]["files"]
    return {name: made.zip_of(members)}


TINY, ART = "tiny-imagenet-200", "pacs/splits/art_painting_train_kfold.txt"
WRONG = {
    "no list of classes": (
        "tiny-imagenet",
        f"{TINY}/wnids.txt",
        None,
        "tiny-imagenet-200.zip: holds no wnids.txt",
    ),
    "another class": (
        "tiny-imagenet",
        f"{TINY}/train/n1/images/n1_0.JPEG",
        b"",
        "n1_0.JPEG: 'n1' is not a class of this data set",
    ),
    "a line without a class": (
        "tiny-imagenet",
        f"{TINY}/val/val_annotations.txt",
        b"val_0.JPEG n01443537\n",
        "val_annotations.txt, line 1: is not a file and a class with a tab between them",
    ),
    "a picture that is listed, but not there": (
        "tiny-imagenet",
        f"{TINY}/val/images/val_7.JPEG",
        None,
        "tiny-imagenet-200.zip: holds no tiny-imagenet-200/val/images/val_7.JPEG",
    ),
    "no split": ("pacs", ART, None, "pacs.zip: holds no splits/art_painting_train_kfold.txt"),
    "a path that climbs in a list": (
        "pacs",
        ART,
        b"../../etc/passwd 1\n",
        "line 1: '../../etc/passwd' is not a file of art_painting",
    ),
    "an animal of another set": (
        "pacs",
        ART,
        b"art_painting/cow/1.jpg 1\n",
        "line 1: 'cow' is not a class of this data set (dog, elephant,",
    ),
    "no picture": (
        "digits-dg",
        "digits_dg/syn/val/9/00000.jpg",
        b"<html>",
        "digits_dg/syn/val/9/00000.jpg: is not a readable picture",
    ),
    "one picture less": (
        "digits-dg",
        "digits_dg/syn/val/9/00000.jpg",
        None,
        "digits-dg: test has 39 samples, config/datasets.yaml expects 40",
    ),
    "a letter": (
        "digits-dg",
        "digits_dg/syn/val/a/1.jpg",
        b"",
        "digits_dg/syn/val/a/1.jpg: 'a' is not a class of this data set (0, 1,",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_archive_is_reported_and_leaves_no_store(case: str):
    dataset, member, content, sentence = WRONG[case]
    with pytest.raises(UserError) as caught:
        prepared(dataset, changed(dataset, member, content))
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    assert not list(Path().glob("*.h5"))


@pytest.mark.parametrize("dataset", ["pacs", "digits-dg", "tiny-imagenet"])
def test_a_zip_with_and_without_a_folder_of_its_own(dataset: str):
    """Users may pack a folder's content instead of the folder."""
    import io
    import zipfile

    from tests.data.picture_publishers import zip_of

    ((name, content),) = picture_contents(dataset).items()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {member.partition("/")[2]: archive.read(member) for member in archive.namelist()}
    first = prepared(dataset).read_bytes()
    second, _ = store.read(prepared(dataset, {name: zip_of(members)}), "train")
    Path("first.h5").write_bytes(first)
    np.testing.assert_array_equal(second.values, store.read("first.h5", "train")[0].values)
