"""`cohort.load`: the same frames from records and from releases, with documented columns; and what
`cohort export` writes for other programs, read by a decoder of its own."""

from __future__ import annotations

import dataclasses
import json
import re
import runpy
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cohort
from cohort.cell.settings import Settings
from cohort.commands.cli import main
from cohort.core.errors import UserError
from cohort.plan import load
from cohort.records.record import read
from cohort.results.intervals import paired_differences
from cohort.results.release.events import crc32c
from cohort.results.release.frames import RunFrames
from tests.conftest import ROOT

RELEASES = str(ROOT / "resources/released")
PAGE = (ROOT / "docs/records.md").read_text()


@pytest.fixture
def demo(project: Path) -> None:
    """A project in which the demo's released runs are restored."""
    main(["restore", "demo", "--from", RELEASES])


def frames_of(data: RunFrames) -> dict[str, pd.DataFrame]:
    return {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}


def test_records_and_releases_give_the_same_frames(demo: None):
    restored, released = cohort.load("demo"), cohort.load("demo", source=RELEASES)
    for name, frame in frames_of(released).items():
        pd.testing.assert_frame_equal(getattr(restored, name)[list(frame)], frame)
    assert set(restored.runs) - set(released.runs) == {"restored"}
    record = read(next(Path("results/cells").rglob("fedentopt/seed1-*.h5")))
    accuracy = restored.metric("test_accuracy")
    rows = accuracy[accuracy["digest"] == record.header["digest"]]
    assert list(zip(rows["round"], rows["value"], strict=True)) == [
        *record.history.metrics["test_accuracy"]
    ]
    assert {*rows["strategy"]} == {"fedentopt"} and {*rows["seed"]} == {1}
    assert set(cohort.load("demo", only="strategy=loss,seed=0").runs["strategy"]) == {"loss"}
    with pytest.raises(
        UserError,
        match='no finished run at scale smoke; train it first, or load its release with source="r',
    ):
        cohort.load("demo", scale="smoke")
    with pytest.raises(UserError, match="there is no study 'dem'; did you mean 'demo'"):
        cohort.load("dem")


@pytest.mark.parametrize("study", ["demo", "fedentopt", "ucb"])
def test_every_column_is_documented(study: str):
    for frame in frames_of(cohort.load(study, source=RELEASES)).values():
        columns = {re.sub("^version_.*", "version_{package}", name) for name in frame}
        columns -= {field.name for field in dataclasses.fields(Settings)}  # described there
        assert {name for name in columns if f"`{name}`" not in PAGE} == set()


def test_importing_cohort_imports_nothing_heavy():
    code = "import sys, cohort; cohort.load; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "workflow")},
    )
    assert not {"numpy", "pandas", "yaml", "cohort.plan"} & set(done.stdout.split())


def test_the_notebook_runs_and_its_interval_is_that_of_cohort(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(ROOT)
    notebook = json.loads((ROOT / "examples/runs_in_pandas.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells)
    script = tmp_path / "notebook.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in cells))
    names = runpy.run_path(str(script))
    rows = names["last"]
    rows = rows[(rows["partition"] == "dir-0.1") & (rows["J"] == "J4")]
    ours, theirs = (
        rows[rows["strategy"] == name].set_index("seed")["value"]
        for name in ("fedentopt", "fedavg")
    )
    sample = paired_differences(dict(ours), dict(theirs)).scaled(100)
    low, high = sample.interval()
    text = f"{sample.mean:+.2f} ({low:+.2f} to {high:+.2f}, 3 seeds)"
    assert names["interval"](ours - theirs) == text


def test_csv_files_hold_the_frames(demo: None):
    main(["export", "demo", "--format", "csv", "--to", "out"])
    data, folder = cohort.load("demo"), Path("out/demo")
    curves = pd.read_csv(folder / "curves.csv")
    assert np.array_equal(curves["value"], data.curves["value"])
    loss = curves[(curves["strategy"] == "loss") & (curves["metric"] == "test_loss")]
    assert len(loss) == 12 * 50 and set(loss["seed"]) == {0, 1, 2}
    cohorts = pd.read_csv(folder / "cohorts.csv")["cohort"].map(json.loads)
    assert cohorts.tolist() == [row.tolist() for row in data.cohorts["cohort"]]
    assert {file.stem for file in folder.iterdir()} == {
        name for name, frame in frames_of(data).items() if len(frame)
    }


def test_event_files_hold_every_value(demo: None):
    """Checked against the check value of CRC-32C and the layout of TensorFlow's records."""
    assert crc32c(b"123456789") == 0xE3069283
    main(["export", "--only", "seed=2", "--format", "tensorboard", "--to", "tb"])
    cells = [cell for cell in load().cells.values() if cell.settings.seed == 2]
    files = sorted(Path("tb/demo").rglob("events.out.tfevents.*"))
    assert len(files) == len(cells) == 12
    for cell in cells:
        relative = Path(cell.path).relative_to("results/cells").with_suffix("")
        (file,) = Path("tb/demo", relative).iterdir()
        history = read(cell.path).history
        expected = {
            (f"{group}/{name}", round): np.float32(value)
            for group in ("metrics", "cost")
            for name, pairs in getattr(history, group).items()
            for round, value in pairs
        }
        assert dict(scalars(file.read_bytes())) == expected


def scalars(content: bytes) -> Iterator[tuple[tuple[str, int], np.float32]]:
    """The tag, step and value of each scalar in an event file."""
    while content:
        (size,) = struct.unpack("<Q", content[:8])
        event, content = dict_of(content[12 : 12 + size]), content[16 + size :]
        for summary in event.get(5, []):
            for value in dict_of(summary)[1]:
                parts = dict_of(value)
                yield (parts[1][0].decode(), event[2][0]), np.frombuffer(parts[2][0], "<f4")[0]


def dict_of(message: bytes) -> dict[int, list]:
    """The fields of a message of protocol buffers."""
    fields: dict[int, list] = {}
    while message:
        key, message = varint(message)
        if key & 7 == 0:
            value, message = varint(message)
        else:
            size, message = (4, message) if key & 7 == 5 else varint(message)
            value, message = message[:size], message[size:]
        fields.setdefault(key >> 3, []).append(value)
    return fields


def varint(data: bytes) -> tuple[int, bytes]:
    end = next(position for position, byte in enumerate(data) if byte < 128) + 1
    return sum((byte & 127) << 7 * place for place, byte in enumerate(data[:end])), data[end:]
