"""A strategy of the user in a fresh clone: found by planning and by training processes, compared
with others, and none of Git's business."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter

import pytest

from cohort.commands.verify import compare
from cohort.core.files import sha256
from cohort.data.shards import read as shards_of
from cohort.records.record import read
from tests.conftest import ROOT
from tests.workflow.commands import cohort, fails
from tests.workflow.conftest import Project
from tests.workflow.test_docs import blocks, write

BROKEN = {
    "turns = (\n": "my/selection/turns.py, line 1: '(' was never closed",
    "import nothing_of_that_name\n": "turns.py, line 1: ModuleNotFoundError: No module named",
    "import sys\nsys.exit(0)\n": "turns.py, line 2: importing it ends Python (sys.exit)",
    "x = 1\nx = x / 0\n": "my/selection/turns.py, line 2: ZeroDivisionError: division by zero",
}
OWN = """from dataclasses import dataclass
from cohort.core.components import parameter
from cohort.core.metric import Metric
from cohort.selection.selector import MetricRecording, Selector
@dataclass(frozen=True, kw_only=True)
class Own(Selector{base}):
    name = "turns"
    {body}
    def select(self, state, candidates, view, rng):
        return candidates[:1]
"""
BROKEN |= {
    OWN.format(base=base, body=body): sentence
    for base, body, sentence in (
        (", MetricRecording", "", "turns.py: Own lacks the method measure"),
        ("", "rate: tuple = (0, 1)", "Own has a parameter of a type that no config has: <class 't"),
        ("", "rate: int = parameter(9, maximum=8)", "Own: the default of rate: 9 is greater than"),
        ("", "rate: int = parameter(9, maximun=8)", "'maximun' is no keyword of JSON Schema"),
        ("", "metrics = {'own': Metric('Own')}", "only a selector that extends MetricRecording"),
        ("", "metrics = {'own': Metric('Own', by='client')}\n    measure = None", "Metric by r"),
    )
} | {OWN.format(base="", body="").replace("select(", "selct("): "Own lacks the method select"}


@pytest.fixture
def clone(fresh: Project) -> Project:
    """The tiny project as a clone, with the page's selector in `my`."""
    shutil.copy(ROOT / ".gitignore", fresh.root)
    write(fresh, "README.md", (ROOT / "my/README.md").read_text())
    for command in ("init -q", "add -A", "-c user.name=t -c user.email=t@t commit -qm clone"):
        subprocess.run(["git", *command.split()], cwd=fresh.root, check=True)
    write(fresh, "selection/turns.py", blocks("python")[0])
    write(fresh, "strategies.yaml", "\n".join(blocks("yaml")[:2]))
    return fresh


@pytest.mark.slow
def test_a_strategy_is_tried_beside_the_others(clone: Project):
    """Six cells, those of the tiny study among them, once; then a table, a verdict, a figure."""
    done = cohort(clone, "try", "turns", "--on", "tiny.fig1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "turns: 2 missing" in done.stdout and "fedavg: 2 missing" in done.stdout
    shown = [line.split()[0] for line in done.stdout.splitlines() if "one seed)" in line]
    assert shown == ["FedEntOpt", "Turns"] * 2
    (drawn,) = re.findall(r"^drawn: (\S+),", done.stdout, re.MULTILINE)
    assert (clone.root / drawn).exists()
    assert len(clone.records()) == 6
    assert clone.planned("tiny_fig1").get("train", 0) == 0

    again = cohort(clone, "try", "--on", "tiny.tab1", "--dry-run")
    assert " done\n" in again.stdout and "missing" not in again.stdout, again.stderr
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=clone.root, capture_output=True, text=True, check=True
    )
    assert status.stdout == ""


@pytest.mark.slow
def test_an_exception_names_strategy_round_file_and_line(clone: Project):
    """On the terminal in one sentence; the log of the job has the traceback too."""
    file, wrong = clone.root / "my/selection/turns.py", "return candidates[positions]"
    clone.replace("my/selection/turns.py", "return candidates[positions % len(candidates)]", wrong)
    line = next(number for number, text in enumerate(file.open(), start=1) if wrong in text)
    cohort(clone, "try", "turns", "--on", "tiny.fig1", "--only", "partition=iid,strategy=turns")
    (log,) = (clone.root / "results/logs/train").rglob("turns/*.log")
    *before, last_line = log.read_text().splitlines()
    location = rf"strategy 'turns', round \d: my/selection/turns\.py, line {line}, in \w+: "
    assert re.match(f"error: {location}", last_line)
    assert "IndexError: index 12 is out of bounds for axis 0 with size 10" in last_line
    assert "Traceback (most recent call last):" in before


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file_is_one_sentence(text: str, clone: Project):
    write(clone, "selection/turns.py", text)
    fails(clone, BROKEN[text], "status")


@pytest.mark.slow
def test_a_cell_is_trained_without_the_components_of_others(finished: Project):
    """By `cohort run` and `cohort verify` as by Snakemake, whose job made the record: a file that
    changes something of all selectors when it is imported changes no other strategy's numbers."""
    path = next(path for path in finished.records() if path.parent.name == "fedavg")
    cell, before = str(path.relative_to(finished.root)), read(path)
    write(
        finished,
        "selection/first.py",
        "from cohort.selection.simple import Random\n"
        "Random.select = lambda self, state, candidates, view, rng: candidates[: view.cohort]\n",
    )
    verified = cohort(finished, "verify", cell)
    assert "the same to the last bit" in verified.stdout, verified.stdout + verified.stderr
    path.unlink()
    trained = cohort(finished, "run", cell)
    assert trained.returncode == 0, trained.stderr
    after = read(path)
    assert compare(before.history, after.history, None) == ([], [])
    assert "my" not in after.header["provenance"]


def test_a_component_with_a_built_in_name_is_refused(clone: Project):
    text = blocks("python")[0].replace('= "turns"', '= "random"')
    write(clone, "selection/turns.py", text)
    fails(clone, "'random' is the name of cohort.selection.simple.Random already", "status")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("try turn --on tiny.fig1", "there is no strategy 'turn'; did you mean 'turns'?"),
        ("try turns --on tiny.fig9", "tiny has no figure or table 'fig9'"),
        ("try --on tiny", "tiny has no figure or table ''"),
        ("data add digits my", "there is a data set 'digits' already"),
        ("data add Own my", "'Own' must be a name of small letters, digits and -"),
        ("data add own nowhere", "nowhere: is neither an .npz nor a folder of pictures"),
        ("data add own own.npz --side 8", "own.npz: --side resizes a folder of pictures, not "),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments: str, sentence: str, clone: Project):
    fails(clone, sentence, *arguments.split())


EDIT = ("self.stride * np.arange", "1 + self.stride * np.arange")
TRIED = """title: Turns on tiny.one
experiments: {one: {extends: tiny.one, strategy: [+turns]}}
"""
"""The study of `cohort try turns --on tiny.fig1`."""
DEALT = """title: Dealt like cards
settings:
  {dataset: digits, model: softmax, partition: cards, clients: 4, cohort: 2, rounds: 2, J: J2,
   batch: 8, lr: 0.1, seed: 0}
experiments: {one: {axes: {strategy: [fedavg]}}}
tables: {final: {experiment: one, metric: test_accuracy, rows: [strategy]}}
"""
PAIR = """

class _Pair(nn.Module):
    def forward(self, outputs):
        return outputs, outputs
"""
ANOTHER = "another my/selection/turns.py made "


@pytest.mark.slow
def test_records_of_an_edited_strategy_are_named_and_trained_again(clone: Project):
    """The two of the strategy, and no other; other commands and Snakemake name them too."""
    tried, study = ("try", "turns", "--on", "tiny.fig1"), "try_turns_tiny_one"
    assert cohort(clone, *tried).returncode == 0
    before = {path: sha256(path) for path in clone.records()}
    turns = [path for path in before if path.parent.name == "turns"]
    digest = turns[0].stem.rpartition("-")[2]
    for command in (["status", study], ["show", digest]):
        assert ANOTHER not in cohort(clone, *command).stdout

    clone.replace("my/selection/turns.py", *EDIT)
    assert (
        f"{ANOTHER}2 runs: raise its `science` version, or delete"
        in cohort(clone, *tried, "-n").stdout
    )
    listed = json.loads(cohort(clone, "status", study, "--json").stdout)["made_by_another"]
    assert {clone.root / path for path in listed} == set(turns)
    assert f"{ANOTHER}2 runs" in clone.snakemake(study)  # it draws them, and says so
    assert f"{ANOTHER}1 run: raise" in cohort(clone, "show", digest).stdout
    verified = cohort(clone, "verify", digest)
    assert verified.returncode == 0 and "cohorts differ" in verified.stdout, verified.stderr
    assert "the record was made by another my/selection/turns.py" in verified.stdout

    for path in turns:
        path.unlink()
    done = cohort(clone, *tried)
    assert done.returncode == 0 and ANOTHER not in done.stdout, done.stderr
    assert {path for path in before if sha256(path) != before[path]} == set(turns)
    assert ANOTHER not in cohort(clone, "status", study).stdout


@pytest.mark.slow
def test_an_edited_partition_deals_anew_only_for_cells_that_are_missing(clone: Project):
    """Records of its older version stay, and are named; a model is checked before round 1."""
    for file in ("models/softmax.py", "partition/schemes/cards.py"):
        write(clone, file, (ROOT / "tests/workflow/one_of_each" / file).read_text())
    write(clone, "studies/dealt.yaml", DEALT)
    clone.replace("my/models/softmax.py", ", classes)", ", classes - 3)")
    assert "of shape (2, 7), not float of shape (2, 10)" in clone.snakemake("dealt", fails=True)
    clone.replace("my/models/softmax.py", ", classes - 3)", ", classes), _Pair()")
    with (clone.root / "my/models/softmax.py").open("a") as file:
        file.write(PAIR)
    assert "model 'softmax' returned (tensor(" in clone.snakemake("dealt", fails=True)
    tied = ", classes), *[nn.Linear(classes, classes)] * 2"
    clone.replace("my/models/softmax.py", ", classes), _Pair()", tied)
    assert "not separate weights" in clone.snakemake("dealt", fails=True)
    clone.replace("my/models/softmax.py", tied, ", classes, bias=False)")
    assert "not as last parameter the bias of the out" in clone.snakemake("dealt", fails=True)
    clone.replace("my/models/softmax.py", ", bias=False)", ")")
    clone.snakemake("dealt")
    shards = clone.root / "results/shards/digits/cards"
    (before,) = shards.glob("*.h5")

    clone.replace("my/partition/schemes/cards.py", "np.arange(client,", "-1 - np.arange(client,")
    assert "another my/partition/schemes/cards.py made 1 run: raise" in clone.snakemake("dealt")
    assert [*shards.glob("*.h5")] == [before]
    for record in clone.records():
        record.unlink()
    wrong = clone.snakemake("dealt", fails=True)
    assert "partition cards of digits: deal gave client 0 numbers from -1437 to -1, but" in wrong
    clone.replace("my/partition/schemes/cards.py", "-1 - np.", "len(pool.labels) - 1 - np.")
    assert "another" not in clone.snakemake("dealt")
    (after,) = {*shards.glob("*.h5")} - {before}
    dealt = [shards_of(file).indices[0].tolist() for file in (before, after)]
    assert dealt[1] == [1436 - sample for sample in dealt[0]]


@pytest.mark.slow
def test_a_run_that_an_edit_interrupted_is_named(clone: Project):
    """A checkpoint, and the record of a run whose two sessions had different files."""
    write(clone, "studies/try_turns_tiny_one.yaml", TRIED)
    status = json.loads(cohort(clone, "status", "try_turns_tiny_one", "--json").stdout)
    cell = next(entry["path"] for entry in status["unfinished"] if "/turns/" in entry["path"])
    assert cohort(clone, "run", "--until", "2", "--", cell).returncode == 0
    clone.replace("my/selection/turns.py", *EDIT)
    assert f"{ANOTHER}1 run: raise" in cohort(clone, "show", cell).stdout
    assert cohort(clone, "run", cell).returncode == 0
    assert f"{ANOTHER}1 run: raise" in cohort(clone, "show", cell).stdout


def test_a_study_that_cannot_be_is_not_written(clone: Project):
    """A broken study would stop every command that reads all studies."""
    write(clone, "studies/try_turns_tiny_one.yaml", TRIED)
    fails(
        clone,
        "mine cannot be tried on try_turns_tiny_one.fig1: my/studies/try_mine_try_turns_tiny_one_one"
        ".yaml: experiments.one.extends is 'try_turns_tiny_one.one', which extends tiny.one itself",
        *("try", "mine", "--on", "try_turns_tiny_one.fig1"),
    )


def test_a_claim_is_judged_without_any_run(fresh: Project):
    """By the numbers that the slides print, in a line each with totals, and as JSON."""
    lines = cohort(fresh, "check", "ucb").stdout.splitlines()
    claims = json.loads(cohort(fresh, "check", "ucb", "--json").stdout)["claims"]
    assert [line.split()[0] for line in lines[1:-3]] == [claim["claim"] for claim in claims]
    totals = Counter(claim["paper"] for claim in claims)
    assert all(f"{count} {verdict}" in lines[-2] for verdict, count in totals.items())
    refuted = sorted(claim["claim"] for claim in claims if claim["paper"] == "not held")
    assert lines[-1] == f"the paper contradicts itself: {', '.join(refuted)}"
    assert not (fresh.root / "results/cells").exists()
