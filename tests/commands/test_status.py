"""`cohort status` of cells in every state, against counts and hours worked out by hand."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from cohort.commands import shared
from cohort.commands.status import statuses, unique_cells
from cohort.core.files import try_lock
from cohort.core.paths import RELEASED, state_folder, train_log
from cohort.pipeline import cell_states as states
from cohort.plan import Plan, load
from cohort.records.record import read, write
from cohort.training.cell import Cell
from tests.commands.conftest import STUDY, finish, output_of, replan
from tests.conftest import ROOT


def log(cell: Cell, text: str) -> None:
    file = train_log(cell.path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("--- 2026-01-01 00:00:00\nerror: OSError('of an earlier attempt')\n" + text)


def save(cell: Cell, round: int) -> None:
    """A checkpoint of which only the header is right."""
    folder = state_folder(cell.path)
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {"facts": json.dumps({"digest": cell.digest, "round": round})}
    save_file({"x": np.zeros(3)}, folder / "checkpoint.safetensors", metadata)


@pytest.fixture
def every_state(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Done, running, stopped, failed, missing, missing; each cell is estimated at 100 seconds."""
    monkeypatch.setattr(states.cost, "round_seconds", lambda settings, info: 100.0)
    done, running, stopped, failed, *_ = plan.cells.values()
    finish(done, seconds=5.0)
    session = "--- 2026-01-01 00:10:00\nstart at round 0: somewhere\n"
    save(running, 6)
    line = "k1  round {}/10  test accuracy 0.5  loss 1.0  0.25 rounds/s  12 s left\n"
    log(running, session + "".join(map(line.format, (4, 5, 7))))
    held = try_lock(state_folder(running.path) / "lease")
    save(stopped, 4)
    (state_folder(stopped.path) / "lease").touch()
    log(stopped, f"{session}error: stopped at a checkpoint: round 4/10, by signal SIGTERM\n")
    log(failed, f"{session}error: OSError('no memory')\n")
    monkeypatch.setattr(plan, "held", held, raising=False)  # until the test ends
    return plan


def test_counts_rounds_reasons_and_hours(every_state: Plan):
    """Left are 30 s of the running cell, 60 of the stopped one, 300 of the three others and 2 for each start: 400 s. The finished cell took 50 s of its 100."""
    _, running, stopped, failed, *_ = every_state.cells.values()
    lines = output_of("status").splitlines()
    assert lines[0].split() == ["experiment", "done", "running", "stopped", "failed", "missing"]
    assert lines[1].split() == ["six.one", "1", "1", "1", "1", "2"]
    name = "digits/small-mlp/iid/J2"
    assert lines[2] == f"running 7/10  0.25 rounds/s  {name}/fedavg/seed1-{running.digest}"
    assert lines[3] == f"stopped 4/10  {name}/fedavg/seed2-{stopped.digest}"
    assert lines[4] == "left: about 3 min 25 s at the pace of the cells done on a CPU"
    assert lines[5:] == [
        "",
        f"failed: {failed.path}",
        "  error: OSError('no memory')",
        f"  more: less {train_log(failed.path)}",
    ]


def test_json_has_the_same(every_state: Plan):
    printed = json.loads(output_of("status", "--json"))
    (experiment,) = printed["experiments"]
    assert experiment == {
        **{"study": "six", "experiment": "one", "cells": 6, "done": 1, "diverged": 0},
        **{"running": 1, "stopped": 1, "failed": 1, "waiting": 0, "missing": 2},
    }
    reached = [(cell["state"], cell["round"]) for cell in printed["unfinished"]]
    assert reached == [("running", 7), ("stopped", 4), ("failed", 0), *[("missing", 0)] * 2]
    assert printed["hours_left"] == pytest.approx({"": 400 / 3600, "a CPU": 205 / 3600})
    cost = json.loads(output_of("status", "--cost", "--json"))
    assert (cost["experiments"][0]["cells"], cost["missing"]) == (6, 5)


def test_each_network_at_its_own_pace(every_state: Plan):
    """50 s of 100 with `lenet5` on a CPU, 20 with the others: so 35 of 100 for a network that was
    not trained there. Left are 30, 60 and three times 100 s, and 2 for each start."""
    networks = "lenet5", "lenet5", "vgg11", "small-mlp", "small-mlp", "small-mlp"
    cells = []
    for cell, model in zip(every_state.cells.values(), networks, strict=True):
        settings = replace(cell.settings, model=model)
        cells.append(replace(states.status_of(cell, {}), cell=replace(cell, settings=settings)))
    cells.append(replace(cells[0], cell=cells[3].cell, seconds=20.0))
    core = 32 + 62 + 3 * 102
    paces = 0.5 * 30 + 0.35 * 60 + 0.2 * 300 + 5 * 2
    hours = states.hours_left(every_state, cells)
    assert hours == pytest.approx({"": core / 3600, "a CPU": paces / 3600})


@pytest.mark.slow
def test_options_stand_for_keys_of_the_config_in_every_command(plan: Plan):
    """Two seeds of one strategy are two cells; --scale smoke would have one seed of each."""
    short = ["--seeds", "2", "--only", "strategy=loss", "--scale", "reduced"]
    long = ["--config", "seeds=2", "only=strategy=loss", "scale=reduced"]
    for command in (["status"], ["status", "six", "six"], ["status", "--cost"]):
        assert output_of(*command, *short) == output_of(*command, *long)
    counted = json.loads(output_of("status", *short, "--json"))
    assert (counted["scale"], counted["experiments"][0]["missing"]) == ("reduced", 2)
    dry = output_of("try", "--on", "six.tab1", *short, "-n").splitlines()
    assert "left: about 4 s of one CPU core" in dry
    assert dry[-1] == "$ snakemake six_tab1 --config scale=reduced only=strategy=loss seeds=2"
    assert "six.tab1 at scale smoke" in output_of("show", "six.tab1", "--scale", "smoke")
    for command, sentence in {
        "status sex": "there is no study 'sex'; did you mean 'six'?",
        "check six": "six has no claims",
        "check nine.best": "there is no study 'nine'",
        "check ucb.best": "ucb has no claim 'best'",
    }.items():
        assert sentence in output_of(*command.split(), fails=True)


def test_killed_cells_fail_and_invalid_records_too(plan: Plan):
    killed, damaged, stopped, *_ = plan.cells.values()
    log(stopped, "--- 2026-01-01 00:10:00\nerror: stopped before it was done; start again\n")
    assert states.status_of(stopped, {}).state == "missing"
    save(killed, 3)
    (state_folder(killed.path) / "lease").touch()
    log(killed, "--- 2026-01-01 00:10:00\nround 3/10  not evaluated yet\n")
    path = finish(damaged)
    path.write_bytes(path.read_bytes()[:700])
    first, second = (states.status_of(planned, {}) for planned in (killed, damaged))
    assert (first.state, first.round) == ("failed", 3)
    assert first.reason.startswith("strategy 'fedavg' was killed after: round")
    assert second.state == "failed" and "cannot be read as a record" in second.reason


def test_a_cell_of_cohort_run_that_ended_without_a_log_has_stopped(plan: Plan):
    first, second, *_ = plan.cells.values()
    save(first, 3)
    for cell in (first, second):
        state_folder(cell.path).mkdir(parents=True, exist_ok=True)
        (state_folder(cell.path) / "lease").touch()
    assert [states.status_of(cell, {}).state for cell in (first, second)] == ["stopped", "failed"]


@pytest.mark.slow
def test_cells_that_wait_for_data_say_for_which(project: Path):
    study = STUDY | {"settings": STUDY["settings"] | {"model": "small-cnn"}, "tables": {}}
    del study["settings"]["dataset"]
    axes = STUDY["experiments"]["one"]["axes"] | {"dataset": ["cifar10", "pacs"]}
    study["experiments"] = {"one": {"axes": axes}}
    Path("config/studies/six.yaml").write_text(yaml.safe_dump(study))
    lines = [line.split() for line in output_of("status", "six").splitlines()]
    assert [line[1:] for line in lines[:2]] == [["done", "waiting", "missing"], ["0", "6", "6"]]
    waiting = json.loads(output_of("status", "six", "--json"))["unfinished"][6:]
    assert {cell["state"] for cell in waiting} == {"waiting"}
    assert waiting[0]["reason"].startswith("pacs is behind a login (https://")
    shown = output_of("show", waiting[0]["digest"])
    assert shown.count("but it waits: pacs is behind a login") == 1
    study["experiments"]["one"]["axes"] = axes | {"dataset": ["pacs"]}
    study["tables"] = STUDY["tables"]
    Path("config/studies/six.yaml").write_text(yaml.safe_dump(study))
    shown = output_of("show", "six.tab1", fails=True)
    assert shown.startswith("error: 'six.tab1' waits: six.one: 6 of 6 cells skipped: pacs is")
    assert "has no figure or table 'ab1'" in output_of("show", "six.ab1", fails=True)
    plan = load({"studies": "six", "only": "dataset=pacs"})
    assert [cell.state for cell in unique_cells(statuses(plan))] == ["waiting"] * 6


def test_tables_fit_into_80_columns_and_colors_are_for_terminals(monkeypatch: pytest.MonkeyPatch):
    rows = [["a/" * 60 + "end", 1, 20_000], ["b", 0, 3]]
    lines = list(shared.table(["name", "done", "missing"], rows))
    assert max(map(len, lines)) == 80
    assert lines[1].startswith("…") and lines[1].endswith("a/end     1    20000")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert shared.paint("1", "done") == "\x1b[32m1\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert shared.paint("1", "done") == "1"
    assert list(map(len, shared.prose("word " * 20).splitlines())) == [79, 19]


def test_restored_runs_are_no_measure_of_this_machine(plan: Plan):
    """Nor are those of several devices: neither says how long a core took."""
    first, second, *_ = plan.cells.values()
    restored = read(finish(first, seconds=900.0))
    header = restored.header | {"restored": [{"release": "theirs"}]}
    write(first.path, replace(restored, header=header))
    before = json.loads(output_of("status", "--json"))["hours_left"]
    finish(second, seconds=900.0, devices=["a CPU", "another CPU"])
    after = json.loads(output_of("status", "--json"))["hours_left"]
    assert before.keys() == after.keys() == {""}
    assert after[""] == pytest.approx(before[""] * 4 / 5, rel=1e-3)


@pytest.mark.parametrize(
    "command", ["status demo", "status --cost demo", "try --on demo.fig1 -n", "show demo.fig1"]
)
def test_released_runs_of_missing_cells_are_counted(command: str, project: Path):
    """With a fourth seed, 36 of 48: those that ship with Cohort. A damaged release has none."""
    line = "36 of 48 missing cells are released: cohort restore demo --seeds 4"
    assert line in output_of(*command.split(), "--seeds", "4").splitlines()
    own = shutil.copytree(ROOT / RELEASED / "demo", project / RELEASED / "demo")
    (own / "runs.parquet").write_bytes(b"no Parquet")
    assert "released" not in output_of(*command.split())


def test_draw_of_a_study_whose_cells_all_wait(plan: Plan):
    """The page says why no cell can run."""
    replan(dataset="pacs", model="small-cnn")
    page = Path(output_of("draw", "six").strip())
    assert "pacs is behind a login" in page.read_text()
