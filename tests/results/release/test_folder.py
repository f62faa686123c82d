"""A release holds everything that records hold, always as the same bytes, and nothing damaged is read."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from cohort.core.errors import UserError
from cohort.core.files import sha256
from cohort.core.sealed_json import write_sealed
from cohort.results.release import folder
from cohort.results.release.folder import (
    read_manifest,
    read_release,
    release_folders,
    write_release,
)
from tests.results.release.runs import assert_same, random_record

RECORDS = [random_record(seed) for seed in range(12)]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    write_release(tmp_path / "study", "study", RECORDS)
    return tmp_path / "study"


def test_records_come_back_to_the_last_bit(release: Path):
    for before, after in zip(RECORDS, read_release(release), strict=True):
        assert_same(before, after)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_order_of_runs_changes_no_byte(tmp_path: Path, release: Path):
    shuffled = random.Random(0).sample(RECORDS, len(RECORDS))
    write_release(tmp_path / "again", "study", shuffled)
    assert contents(tmp_path / "again") == contents(release)


def test_an_interrupted_export_leaves_a_release(release: Path, monkeypatch: pytest.MonkeyPatch):
    (release / "NOTES").write_text("ours")

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(folder, "write_text", killed)
        write_release(release, "study", RECORDS[:3])
    assert len(read_release(release)) == len(RECORDS)
    write_release(release, "study", RECORDS[:2])
    assert len(read_release(release)) == 2 and (release / "NOTES").read_text() == "ours"
    assert [path.name for path in release.parent.iterdir()] == ["study"]


def test_what_a_killed_export_leaves_is_no_release(release: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(release.parent)
    for name in ("mine", ".mine-x1"):
        shutil.copytree(release, Path("resources/released", name))
    assert list(release_folders(())) == ["mine"]


def test_tables_read_as_documented(release: Path):
    """Settings are columns of plain types where a study's cells agree in them, JSON elsewhere."""
    runs = parquet.read_table(release / "runs.parquet").to_pandas()
    assert runs["lr"][1] == 0.05 and runs["rounds_played"][4] == 2
    assert runs["evaluate_every"][1] == "2" and json.loads(runs["selector"][1])["buffer"] == 0.5
    curves = parquet.read_table(release / "curves.parquet").to_pandas()
    here = curves.query("digest == 'k000000000001' and metric == 'train_loss'")
    assert (
        list(zip(here["round"], here["value"], strict=True))
        == RECORDS[1].history.metrics["train_loss"]
    )


def _rewritten(folder: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change a table and state the checksum of the new file."""
    file = folder / f"{name}.parquet"
    parquet.write_table(change(parquet.read_table(file)), file)
    files = read_manifest(folder)["files"]
    files[file.name] = {"rows": parquet.read_metadata(file).num_rows, "sha256": sha256(file)}
    _manifest(folder, files=files)


def _manifest(folder: Path, **changes: object) -> None:
    """Change the manifest, and state its new checksum."""
    write_sealed(folder / "manifest.json", read_manifest(folder) | changes)


def _curves(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], object]:
    return lambda folder: _rewritten(folder, "curves", change)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "is not a release": lambda folder: (folder / "manifest.json").unlink(),
    "format: 1 was expected": lambda folder: _manifest(folder, format=2),
    "is not the manifest of a release": lambda folder: _manifest(folder, format="1"),
    "cannot be read": lambda folder: (folder / "manifest.json").write_text("{"),
    "is missing": lambda folder: (folder / "curves.parquet").unlink(),
    "another SHA-256": lambda folder: (folder / "curves.parquet").write_bytes(b"others"),
    'the runs of a release .*"digest"': _curves(lambda table: table.drop_columns(["digest"])),
    "the runs of a release .*is not the name": _curves(
        lambda table: table.set_column(2, "metric", pa.array(["../x"] * len(table)))
    ),
}


@pytest.mark.parametrize("sentence", DAMAGES)
def test_a_damaged_release_is_refused(release: Path, sentence: str):
    DAMAGES[sentence](release)
    with pytest.raises(UserError, match=sentence) as error:
        read_release(release)
    assert "\n" not in str(error.value)


def test_no_flipped_bit_is_read(release: Path):
    """Of every file, manifest included, unless the text that it changes means nothing."""
    rng = random.Random(1)
    intact = {file: file.read_bytes() for file in sorted(release.iterdir())}
    for file, content in intact.items():
        for _ in range(40):
            position, bit = rng.randrange(len(content)), rng.randrange(8)
            changed = bytearray(content)
            changed[position] ^= 1 << bit
            file.write_bytes(changed)
            try:
                records = read_release(release)
            except UserError:
                pass
            else:
                assert file.name == "manifest.json"
                for before, after in zip(RECORDS, records, strict=True):
                    assert_same(before, after)
        file.write_bytes(content)
