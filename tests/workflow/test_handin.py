"""A hand-in: a selector and its runs, from a stranger's project to the check of its maintainers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from cohort.core.files import write_text
from cohort.records.record import Record, read
from cohort.results.release.folder import read_release, write_release
from tests.conftest import ROOT
from tests.workflow.commands import cohort, files
from tests.workflow.conftest import Project, copy_of, made_once
from tests.workflow.test_docs import blocks, write

pytestmark = pytest.mark.slow

STUDY = {"title": "Mine", "experiments": {"two": {"extends": "tiny.two", "strategy": ["+turns"]}}}
TURNS, FEDAVG = "/turns/seed", "/fedavg/seed0"
RUNS = 3  # two of the stranger's selector, and FedAvg's with seed 0 once more


@pytest.fixture(scope="session")
def handed_in_once(fresh_once: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project of a stranger, whose folder `handin` is handed in."""

    def hand_in(folder: Path) -> None:
        stranger = copy_of(fresh_once, folder)
        write(stranger, "selection/turns.py", blocks("python")[0])
        write(stranger, "strategies.yaml", blocks("yaml")[1])
        write(stranger, "studies/mine.yaml", yaml.safe_dump(STUDY))
        write(stranger, "availability/phones.csv", "device,start,end\n")
        with (stranger.root / "my/availability/phones.csv").open("ab") as table:
            table.write("Zürich,0,1\n".encode("latin-1"))  # handed in as it is
        status = json.loads(cohort(stranger, "status", "mine", "--json").stdout)
        for cell in (cell["path"] for cell in status["unfinished"]):
            if TURNS in cell or FEDAVG in cell:
                assert cohort(stranger, "run", cell).returncode == 0
        done = cohort(stranger, "export", "my", "--to", "handin")
        assert f"handin/mine: {RUNS} of 4 runs" in done.stdout, done.stderr

    return made_once(tmp_path_factory, "handed-in", hand_in)


@pytest.fixture
def handin(handed_in_once: Project, tmp_path: Path) -> Path:
    """A copy of the folder that was handed in."""
    return Path(shutil.copytree(handed_in_once.root / "handin", tmp_path / "handin"))


@pytest.fixture
def ours(finished: Project) -> Project:
    """The maintainers' project, with a release of the tiny study."""
    assert cohort(finished, "export", "tiny").returncode == 0
    return finished


def forge(handin: Path, part: str, change: Callable[[Record], object]) -> None:
    """Change the runs whose path has this part, and write the release with checksums that fit."""

    def changed() -> Iterator[Record]:
        for run in read_release(handin / "mine"):
            settings = run.header["settings"]
            if part in f"/{settings['strategy']}/seed{settings['seed']}":
                change(run)
            yield run

    write_release(handin / "mine", "mine", list(changed()))


def halve_client_losses(run: Record) -> None:
    run.clients["loss"] = run.clients["loss"] / 2


def halve_losses(run: Record) -> None:
    losses = run.history.metrics["train_loss"]
    losses[:] = [(round, value / 2) for round, value in losses]


def test_a_hand_in_is_complete_and_reproduced(handin: Path, ours: Project):
    for name in ("selection/turns.py", "strategies.yaml", "studies/mine.yaml"):
        assert (handin / "my" / name).exists()
    assert (handin / "my/availability/phones.csv").exists()
    code = (handin / "my").rename(handin.parent / "code")
    (handin / "my").symlink_to(code)
    before, theirs = files(ours), sorted(handin.rglob("*"))
    done = cohort(ours, "verify", "--from", str(handin), "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "its code is executed: my/selection/turns.py\n" in done.stdout
    assert done.stdout.count("the same to the last bit") == 2  # FedAvg's run is one of ours
    assert done.stdout.endswith("2 of 2 runs trained again, as handed in\n")
    assert files(ours) == before and sorted(handin.rglob("*")) == theirs


def test_what_was_accepted_is_drawn_with_its_origin(handin: Path, ours: Project):
    """Also where it was released again with our runs, and restored from there."""
    shutil.copytree(handin / "my", ours.root / "my", dirs_exist_ok=True)
    origin = f"{handin}/mine"
    done = cohort(ours, "restore", "mine", "--from", str(handin))
    assert f"{origin}: 2 runs restored; 1 run here already" in done.stdout, done.stderr
    for name in (origin, f"resources/released/mine (there from {origin})"):
        (page,) = cohort(ours, "draw", "mine").stdout.split()
        sentence = f"Restored from {name}: 2 of 4 finished runs (turns)."
        assert sentence in (ours.root / page).read_text()
        assert cohort(ours, "export", "mine").returncode == 0
        for record in (ours.root / "results/cells").rglob("turns/*.h5"):
            record.unlink()
        assert "2 runs restored" in cohort(ours, "restore", "mine").stdout


def test_invented_numbers_are_found_by_training(handin: Path, ours: Project):
    """Here of clients; how other numbers may differ is in test_verify."""
    forge(handin, TURNS, halve_client_losses)
    done = cohort(ours, "verify", "--from", str(handin), "1")
    assert done.returncode == 1
    assert "what is recorded of clients, classes or costs differs" in done.stdout
    assert "a second run is not the same, and nothing" in done.stderr


def test_a_run_that_disagrees_with_ours_is_named(handin: Path, ours: Project):
    forge(handin, FEDAVG, halve_losses)
    digest = next(path for path in ours.records() if "/J3/fedavg/seed0" in str(path)).stem[6:]
    done = cohort(ours, "verify", "--from", str(handin), "1")
    assert done.returncode == 1 and "training it again" not in done.stdout
    assert f"mine: run {digest}, compared with ours, is not the same" in done.stderr


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("strategies.yaml", "stride: 3", "stride: 1", "is of no study here: its settings or"),
        ("selection/turns.py", "stride: int", "science = 2\n    stride: int", "is of no study her"),
        ("selection/turns.py", "a cohort are", "it goes", "was made by another my/selection/turns"),
    ],
)
def test_a_run_of_another_selector_is_named(
    file: str, old: str, new: str, sentence: str, handin: Path, ours: Project
):
    text = (handin / "my" / file).read_text()
    assert old in text
    write_text(handin / "my" / file, text.replace(old, new))
    done = cohort(ours, "verify", "--from", str(handin), "1")
    assert done.returncode == 1 and "training it again" not in done.stdout
    digests = {run.header["digest"] for run in read_release(handin / "mine")}
    assert sentence in done.stderr and any(f"run {key} " in done.stderr for key in digests)


def test_what_is_not_handed_in(handed_in_once: Project, handin: Path, tmp_path: Path):
    """Runs that others trained, and those of an earlier version of a file."""
    stranger = copy_of(handed_in_once, tmp_path / "stranger")
    fedavg = next(path for path in stranger.records() if FEDAVG in str(path))
    fedavg.unlink()
    assert cohort(stranger, "restore", "mine", "--from", "handin").returncode == 0
    assert read(fedavg).header["restored"]
    assert "a folder of its own" in cohort(stranger, "export", "my", "--to", "handin").stderr
    done = cohort(stranger, "export", "my", "--to", "again")
    assert "again/mine: 2 of 4 runs" in done.stdout
    stranger.replace("my/selection/turns.py", "a cohort are", "it goes")
    done = cohort(stranger, "export", "my", "--to", "more")
    assert "another my/selection/turns.py made 2 runs: raise" in done.stderr
    assert not (stranger.root / "more").exists()
    assert "is no hand-in" in cohort(stranger, "verify", "--from", "my", "1").stderr
    assert "'all' is not a number" in cohort(stranger, "verify", "--from", "again", "all").stderr


def test_the_check_of_a_pull_request(tmp_path: Path):
    """It verifies the new and the changed folder, not the one that is as it was, and fails with
    them; the code of a stranger gets no secrets."""
    workflow = yaml.load((ROOT / ".github/workflows/hand-in.yml").read_text(), yaml.BaseLoader)
    assert list(workflow["on"]) == ["pull_request"]
    assert workflow["permissions"] == {"contents": "read"}
    folders = {"resources": {"old": "1", "changed": "1"}}
    folders["theirs/resources"] = {"old": "1", "changed": "2", "new folder": "1"}
    for root, texts in folders.items():
        for name, text in texts.items():
            write_text(tmp_path / root / "handed_in" / name / "runs", text)
    write_text(tmp_path / ".venv/bin/cohort", '#!/bin/sh\necho "$3 $4"\nexit $STATUS\n')
    (tmp_path / ".venv/bin/cohort").chmod(0o755)
    script = ["bash", "-e", "-c", workflow["jobs"]["verify"]["steps"][-1]["run"]]
    for status, names in ((0, ["changed", "new folder"]), (1, ["changed"])):
        environment = os.environ | {"STATUS": str(status)}
        done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True)
        lines = [f"theirs/resources/handed_in/{name}/ 5" for name in names]
        assert (done.returncode, done.stdout.splitlines()) == (status, lines)
