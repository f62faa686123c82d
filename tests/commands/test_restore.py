"""`cohort restore` of what a web server offers, and while cells are trained."""

import functools
import http.server
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cohort.commands import restore as command
from cohort.core.files import lock
from cohort.core.paths import DRIVER_LOCK, state_folder
from cohort.plan import Plan
from cohort.records.record import read
from cohort.results.release.folder import write_release
from cohort.training.job.lease import LEASE
from tests.commands.conftest import finish
from tests.conftest import ROOT
from tests.data.test_download import dripping
from tests.workflow.conftest import wait_for

Output = Callable[..., str]


@pytest.fixture
def release(plan: Plan) -> Path:
    """The release of the six cells, in the folder `offered` of a project without records."""
    for file in Path("config/studies").iterdir():
        if file.stem != "six":  # planning all takes seconds
            file.unlink()
    records = [read(finish(cell)) for cell in plan.cells.values()]
    write_release(Path("offered/six"), "six", records)
    shutil.rmtree("results")
    return Path("offered/six")


@pytest.fixture
def address(release: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a web server that offers the release."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=release.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_what_is_no_release_is_named_by_its_address(
    address: str, release: Path, output_of: Output, monkeypatch: pytest.MonkeyPatch
):
    def error(source: str = address) -> str:
        return output_of("restore", "six", "--from", source, fails=True).splitlines()[-1]

    assert "http://[bad/six/manifest.json: could not be fetched in 1 try" in error("http://[bad")
    table = (release / "curves.parquet").read_bytes()
    (release / "curves.parquet").write_bytes(b"x" + table[1:])
    assert error().startswith(f"error: {address}/six/curves.parquet has another SHA-256 than")
    (release / "curves.parquet").write_bytes(table + b"x")
    assert f"six/curves.parquet: more than {len(table)} bytes came" in error()
    (release / "manifest.json").write_text("<!DOCTYPE html><html>Not found</html>")
    text = error()
    assert text.startswith(f"error: {address}/six/manifest.json: cannot be read as the manifest")
    assert "cohort-release" not in text
    monkeypatch.setattr(command, "MANIFEST_BYTES", 20)
    assert "six/manifest.json: more than 20 bytes came" in error()


def test_no_folder_stays_after_sigterm(release: Path, tmp_path: Path):
    """A job's time limit may end the fetching of a release."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {"PYTHONPATH": str(ROOT / "workflow"), "TMPDIR": str(temporary)}
    program = [sys.executable, "-c", "from cohort.commands.cli import main; main()"]
    with dripping(b"HTTP/1.0 200 OK\r\n\r\n", 1000) as url:
        source = url.rpartition("/")[0]
        restoring = subprocess.Popen(
            [*program, "restore", "six", "--from", source],
            env=os.environ | environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(lambda: list(temporary.rglob("manifest.json")))
        restoring.send_signal(signal.SIGTERM)
        assert restoring.communicate(timeout=20)[1] == "interrupted\n"
    assert restoring.returncode == 1 and list(temporary.iterdir()) == []


def test_nothing_is_restored_while_a_driver_is_at_work(release: Path, output_of: Output):
    restored = ("restore", "six", "--from", "offered")
    with lock(DRIVER_LOCK):
        text = output_of(*restored, fails=True)
    assert text.startswith("error: another snakemake") and "is at work in this directory" in text
    assert not Path("results/cells").exists()
    assert "6 runs restored" in output_of(*restored)


def test_a_cell_in_training_is_not_restored(plan: Plan, release: Path, output_of: Output):
    cell = next(iter(plan.cells.values()))
    with lock(state_folder(cell.path) / LEASE):
        text = output_of("restore", "six", "--from", "offered")
    assert (
        text == f"{release}: 5 runs restored; 1 run that a process here is training, not restored\n"
    )
    assert not Path(cell.path).exists()
    (state_folder(cell.path) / LEASE).unlink()
    assert "1 run restored; 5 runs here already" in output_of("restore", "six", "--from", "offered")
    assert list(Path("results").rglob("*.state")) == []


def test_another_release_is_named_by_runs_that_are_the_same(
    plan: Plan, release: Path, output_of: Output
):
    """A record whose run differs keeps the name of the release it came from."""
    shutil.copytree("offered", "others")
    first, *rest = [read(finish(cell)) for cell in plan.cells.values()]
    first.history.metrics["test_accuracy"][-1] = (10, 0.25)
    write_release(Path("others/six"), "six", [first, *rest])
    shutil.rmtree("results")
    output_of("restore", "six", "--from", "offered")
    assert "5 runs here already, bit by bit" in output_of("restore", "six", "--from", "others")
    sources = [read(cell.path).header["restored"] for cell in plan.cells.values()]
    names = [[source["release"] for source in several] for several in sources]
    assert names == [["offered/six"], *[["offered/six", "others/six"]] * 5]
