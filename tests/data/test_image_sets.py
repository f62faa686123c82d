"""The parsers of MNIST and CIFAR, on tiny files in the publishers' formats and on invalid ones."""

from __future__ import annotations

import hashlib
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cohort.cell.planned import PlannedFile, plan_file, write_plan
from cohort.core.errors import UserError
from cohort.data import store
from cohort.data.download import download
from cohort.data.parsers import PARSERS
from cohort.data.parsers.cifar import Cifar10, Cifar100, Cifar100Coarse
from cohort.data.parsers.mnist import read_idx
from cohort.data.pickles import read_pickle
from cohort.data.prepare import prepare
from tests.conftest import ROOT
from tests.data import publishers
from tests.data.picture_publishers import PICTURE_SETS
from tests.data.publishers import CLASSES, contents, idx, packed, python2_pickle, write
from tests.data.row_publishers import ROW_SETS

FACTS = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())


@pytest.mark.parametrize("dataset", CLASSES)
@pytest.mark.parametrize("form", ["packed", "unpacked"])
def test_from_a_mirror_to_the_store(
    dataset: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The declarations of config/datasets.yaml with the generated files' own checksums and
    sizes."""
    monkeypatch.chdir(tmp_path)
    wanted, offered = contents(dataset), packed(dataset) if form == "packed" else contents(dataset)
    folder = publishers.IDX_FOLDERS | publishers.CIFAR_FOLDERS
    for name, content in offered.items():
        path = Path("mirror", name if form == "packed" else f"{folder[dataset]}/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert set(FACTS[dataset]["files"]) == set(wanted)
    for name, raw in FACTS[dataset]["files"].items():
        download(
            raw | _found(wanted[name], packed(dataset)[raw["source"].rpartition("/")[2]]),
            f"resources/raw/{dataset}/{name}",
            "mirror",
        )
    settings = FACTS[dataset] | publishers.counts(dataset) | {"dataset": dataset}
    write_plan(PlannedFile("data.h5", "k0123456789ab", settings, {}, {}))
    prepare(plan_file("k0123456789ab"), "data.h5")
    for part, size in publishers.counts(dataset).items():
        split, facts = store.read("data.h5", part)
        assert split.values.shape == (size, *FACTS[dataset]["shape"])
        assert np.bincount(split.labels).tolist() == [size // CLASSES[dataset]] * CLASSES[dataset]
        assert facts["classes"] == CLASSES[dataset]


def _found(content: bytes, pack: bytes) -> dict[str, Any]:
    return {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "md5": hashlib.md5(pack).hexdigest(),
    }


def test_idx_by_hand(tmp_path: Path):
    """Two images of two rows of three pixels, written out."""
    file = tmp_path / "images"
    file.write_bytes(
        bytes.fromhex("00000803 00000002 00000002 00000003 010203 040506 070809 0a0b0c")
    )
    assert read_idx(file, 3).tolist() == [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]


def test_a_cifar_row_is_red_then_green_then_blue_row_by_row(tmp_path: Path):
    row = (np.arange(3072) % 251).astype(np.uint8)
    for name in ("train", "test"):
        (tmp_path / name).write_bytes(
            python2_pickle(
                {
                    "data": row.reshape(1, -1),
                    "fine_labels": [97],
                    "coarse_labels": [11],
                    "filenames": ["a.png"],
                }
            )
        )
    (image,), (label,) = (
        getattr(Cifar100().parse(tmp_path)[0], key) for key in ("values", "labels")
    )
    assert [image[0, 0, 1], image[0, 1, 0], image[1, 0, 0], image[2, 3, 4]] == [
        1,
        32,
        1024 % 251,
        (2048 + 3 * 32 + 4) % 251,
    ]
    assert label == 97
    assert Cifar100Coarse().parse(tmp_path)[0].labels.tolist() == [11]


def test_cifar10_batches_follow_each_other(tmp_path: Path):
    for number, name in enumerate(
        [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
    ):
        (tmp_path / name).write_bytes(
            python2_pickle({"data": np.full((1, 3072), number, dtype=np.uint8), "labels": [number]})
        )
    train, test = Cifar10().parse(tmp_path)
    assert train.values[:, 0, 0, 0].tolist() == train.labels.tolist() == [0, 1, 2, 3, 4]
    assert test.labels.tolist() == [5]


def test_a_pickle_of_current_versions_is_read_too(tmp_path: Path):
    (tmp_path / "batch").write_bytes(
        pickle.dumps({b"data": np.arange(6, dtype=np.uint8)}, protocol=4)
    )
    assert read_pickle(tmp_path / "batch")[b"data"].tolist() == [0, 1, 2, 3, 4, 5]


class Foreign:
    """A malicious pickle: unpickling it naively writes a file."""

    def __reduce__(self) -> Any:
        return Path.write_text, (Path("written"), "by a pickle")


ROWS = np.zeros((2, 3072), dtype=np.uint8)
PICKLES = {
    "a foreign class": (pickle.dumps({"data": Foreign()}), "it asks for "),
    "a command": (
        b"cos\nsystem\n(S'touch written'\ntR.",
        "it asks for os.system, which no array needs",
    ),
    "a part of what is allowed": (
        b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
        "it asks for numpy.ndarray.tofile",
    ),
    "a built-in": (b"c__builtin__\neval\n(S'1'\ntR.", "it asks for __builtin__.eval"),
    "truncated": (
        python2_pickle({"data": ROWS, "fine_labels": [0, 1]})[:-100],
        "not a pickle of arrays",
    ),
    "no pickle": (b"<html>", "not a pickle of arrays"),
    "empty": (b"", "not a pickle of arrays (Ran out of input)"),
    "more than memory": (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(L1000000000000000L\ntS'b'\ntR.",
        "not a pickle of arrays",
    ),
    "a list": (pickle.dumps([1, 2]), "holds no mapping"),
    "no images": (
        python2_pickle({"fine_labels": [0, 1]}),
        "data is not an array of bytes with 3072 in each row",
    ),
    "images of another size": (
        python2_pickle({"data": ROWS[:, 1:], "fine_labels": [0, 1]}),
        "data is not an array of bytes",
    ),
    "images of numbers": (
        python2_pickle({"data": ROWS.astype(float), "fine_labels": [0, 1]}),
        "data is not an array of bytes",
    ),
    "no labels": (python2_pickle({"data": ROWS}), "fine_labels is not a list of 2 whole numbers"),
    "too few labels": (
        python2_pickle({"data": ROWS, "fine_labels": [0]}),
        "fine_labels is not a list of 2 whole numbers",
    ),
    "labels of text": (
        python2_pickle({"data": ROWS, "fine_labels": ["0", "1"]}),
        "fine_labels is not a list of 2 whole numbers",
    ),
}


@pytest.mark.parametrize("case", PICKLES)
def test_a_pickle_that_is_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    content, sentence = PICKLES[case]
    Path("train").write_bytes(content)
    refused("cifar100", sentence)
    assert not Path("written").exists()


IMAGES, LABELS = idx(np.zeros((2, 28, 28), dtype=np.uint8)), idx(np.zeros(2, dtype=np.uint8))
IDX = {
    "truncated": (IMAGES[:-1], LABELS, "holds 1567 values, but its head names 2 x 28 x 28"),
    "too long": (IMAGES + b"x", LABELS, "holds 1569 values"),
    "labels in place of images": (LABELS, LABELS, "is not an IDX file of bytes in 3 dimensions"),
    "numbers in place of bytes": (
        b"\0\0\x0d\x03" + IMAGES[4:],
        LABELS,
        "is not an IDX file of bytes in 3 dimensions",
    ),
    "a web page": (b"<!doctype html>" * 10, LABELS, "is not an IDX file of bytes in 3 dimensions"),
    "empty": (b"", LABELS, "is not an IDX file of bytes in 3 dimensions"),
    "sizes that overflow": (
        struct.pack(">4B3I", 0, 0, 8, 3, *[2**32 - 1] * 3),
        LABELS,
        "holds 0 values, but its head names 4294967295 x",
    ),
    "fewer labels": (IMAGES, idx(np.zeros(1, dtype=np.uint8)), "train has 2 images, but 1 labels"),
}


@pytest.mark.parametrize("case", IDX)
def test_an_idx_file_that_is_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    images, labels, sentence = IDX[case]
    Path("train-images-idx3-ubyte").write_bytes(images)
    Path("train-labels-idx1-ubyte").write_bytes(labels)
    refused("mnist", sentence)


def refused(dataset: str, sentence: str) -> None:
    """Assert that preparing the data set fails with this sentence, which names the file, and leaves
    no store."""
    Path("resources/raw").mkdir(parents=True)
    Path("resources/raw", dataset).symlink_to(Path.cwd())
    write_plan(
        PlannedFile("data.h5", "k0123456789ab", FACTS[dataset] | {"dataset": dataset}, {}, {})
    )
    with pytest.raises(UserError) as caught:
        prepare(plan_file("k0123456789ab"), "data.h5")
    assert (
        str(caught.value).startswith(f"resources/raw/{dataset}")
        and sentence in str(caught.value)
        and "\n" not in str(caught.value)
    )
    assert list(Path().glob("*.h5")) == []


def test_every_data_set_that_is_downloaded_can_be_generated(tmp_path: Path):
    bundled = {
        name
        for name, facts in FACTS.items()
        for file in facts["files"].values()
        if file.get("source", "").startswith("package:")
    }
    assert set(CLASSES) | set(PICTURE_SETS) | set(ROW_SETS) == set(FACTS) - bundled
    for dataset in CLASSES:
        write(dataset, tmp_path / dataset)
        train, test = PARSERS[dataset]().parse(tmp_path / dataset)
        assert (
            len(train.labels) == 2 * len(test.labels) and len(set(train.labels)) == CLASSES[dataset]
        )
