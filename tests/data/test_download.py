"""The download stage: a file is there with the right checksum or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cohort.data.download import download
from cohort.errors import UserError

SOURCE = "package:sklearn/datasets/data/digits.csv.gz"
RIGHT = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_bundled_file_arrives_whole(tmp_path: Path):
    target = tmp_path / "raw" / "digits.csv.gz"
    download(SOURCE, RIGHT, target)
    assert hashlib.sha256(target.read_bytes()).hexdigest() == RIGHT
    assert files(tmp_path) == [target]


def test_a_wrong_checksum_is_one_sentence_and_leaves_nothing(tmp_path: Path):
    with pytest.raises(UserError) as caught:
        download(SOURCE, "0" * 64, tmp_path / "raw" / "digits.csv.gz")
    assert str(caught.value) == f"{SOURCE}: SHA-256 is {RIGHT}, config/datasets.yaml expects {'0' * 64}"
    assert files(tmp_path) == []


def test_a_wrong_checksum_leaves_the_file_of_before(tmp_path: Path):
    target = tmp_path / "digits.csv.gz"
    target.write_text("of before")
    with pytest.raises(UserError):
        download(SOURCE, "0" * 64, target)
    assert target.read_text() == "of before"
    assert files(tmp_path) == [target]


MISSING = {"package:sklearn/datasets/data/nothing.csv": "package sklearn", "package:no_such_package/a.csv": "package no_such_package"}


@pytest.mark.parametrize("source", MISSING)
def test_a_missing_file_is_one_sentence_and_leaves_nothing(source: str, tmp_path: Path):
    with pytest.raises(UserError) as caught:
        download(source, RIGHT, tmp_path / "a.csv")
    message = str(caught.value)
    assert message.startswith(f"{source}: ")
    assert MISSING[source] in message
    assert "\n" not in message
    assert files(tmp_path) == []
