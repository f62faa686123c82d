"""What a selector or a need must not return ends the run in one sentence, without a record."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.workflow.conftest import Project, copy_of

SELECTOR = '''
"""A selector whose every answer can be wrong from the third round on."""

from dataclasses import dataclass

import numpy as np

from cohort.core.components import parameter
from cohort.core.metric import Metric
from cohort.selection.selector import Allocating, Filtering, MetricRecording, Screening, Weighing
from cohort.selection.selector import Selector


@dataclass(frozen=True, kw_only=True)
class Wrong(Selector, Screening, Allocating, Filtering, MetricRecording, Weighing):
    name = "wrong"
    metrics = {"doubt": Metric("Doubt")}
    needs = frozenset({"label_counts", "rumor"})
    where: str = parameter("", help="the method that answers wrongly")
    answer: str = parameter("", help="its answer, as Python")

    def _of(self, method, state, right):
        if self.where != method or state is not None and state["round"] < 3:
            return right
        return eval(self.answer, {"np": np, "right": right})

    def begin(self, view, rng):
        return self._of("begin", None, {"round": np.array(1)})

    def observe(self, state, cohort, reports, view):
        return self._of("observe", state, {"round": state["round"] + 1})

    def draw_pool(self, candidates, view, rng):
        return self._of("draw_pool", None, candidates[:-1])

    def select(self, state, candidates, view, rng):
        return self._of("select", state, candidates[: view.cohort])

    def quotas(self, cohort, view):
        return self._of("quotas", None, view.label_counts[cohort])

    def keep(self, reports, sizes):
        return self._of("keep", None, sizes > 0)

    def measure(self, state, candidates, cohort, view):
        return self._of("measure", state, {"doubt": 0.5})

    def probabilities(self, state, candidates, view):
        return self._of("probabilities", state, np.full(len(candidates), 1 / len(candidates)))
'''
NEED = '''
"""A need that depends on how many clients there are."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs import Need


@dataclass(frozen=True, kw_only=True)
class Rumor(Need):
    name = "rumor"
    gathered = "before"

    def measure(self, context):
        return np.zeros(ROWS)
'''
WRONG = [
    ("select", "np.arange(8)", "select returned 8 clients for a cohort of 3"),
    ("select", "[0, 0]", "select returned [0, 0], in which client 0 is twice"),
    ("select", "[0.0, 1.0]", "select returned [0.0, 1.0], not a row of client numbers"),
    ("select", "right > 0", "select returned [False, True, True], not a row of client numbers"),
    ("select", "[[0, 1]]", "select returned [0, 1], not a row of client numbers"),
    ("select", "[[0], [0, 1]]", "select returned [[0], [0, 1]], not an array"),
    ("select", "None", "select returned [None], not a row of client numbers"),
    ("select", "[]", "select returned no client"),
    ("select", "[-1, 2]", "select returned [-1, 2], but client -1 is not a candidate"),
    ("select", "[0, 99]", "select returned [0, 99], but client 99 is not a candidate"),
    ("measure", "{'trust': 1.0}", "measure returned 'trust', which the selector does not declare"),
    ("measure", "{'doubt': np.nan}", "measure returned nan as doubt, not a finite number"),
    ("measure", "{'doubt': [1, 2]}", "measure returned [1, 2] as doubt, not a number"),
    ("measure", "1.0", "measure returned 1.0, not metrics by name"),
    ("probabilities", "[0.5]", "probabilities returned an array of shape (1,), not (9,)"),
    ("probabilities", "-right", "not finite numbers from 0 up"),
    ("observe", "[1]", "observe returned [1], not arrays by name"),
    ("observe", "{'round': None}", "observe returned None as round, not an array of numbers"),
]
AT_ONCE = [
    ("draw_pool", "[0, 0]", "round 1: draw_pool returned [0, 0], in which client 0 is twice"),
    (
        "draw_pool",
        "[0, 99]",
        "round 1: draw_pool returned [0, 99], but client 99 is not a candidate",
    ),
    ("quotas", "-right", "not whole numbers from 0 up"),
    ("quotas", "right / 2", "not whole numbers from 0 up"),
    ("quotas", "right[:1]", "round 1: quotas returned an array of shape (1, 10), not (3, 10)"),
    ("keep", "[0]", "round 1: keep returned an array of shape (1,), not (3,)"),
    ("keep", "[0, 1, 1]", "round 1: keep returned [0, 1, 1], not true or false for each update"),
    ("begin", "None", "round 0: begin returned None, not arrays by name"),
]


EVERY = [*WRONG, *AT_ONCE]
RUN = """
import contextlib, io, json, sys
from cohort.cell.planned import write_plan
from cohort.commands.cli import main
from cohort.commands.run import make_inputs
from cohort.core.paths import plan_file
from cohort.plan import load

said = {}
plan = load()
for cell in plan.cells.values():
    strategy, output, end = cell.plain_settings()["strategy"], io.StringIO(), None
    if sys.argv[1] in ("", strategy):
        write_plan(cell.planned())
        with contextlib.redirect_stdout(output):
            make_inputs(plan, cell)
            try:
                main(["run", str(plan_file(cell.digest))])
            except SystemExit as ended:
                end = str(ended)
        said[strategy] = end
print(json.dumps(said))
"""


def answers(project: Project, strategy: str = "") -> dict[str, str | None]:
    """How `cohort run` ends for each strategy, or for one; None if it trains the cell."""
    environment = os.environ | {"PYTHONPATH": str(project.root / "workflow")}
    command = [sys.executable, "-c", RUN, strategy]
    done = subprocess.run(
        command, cwd=project.root, env=environment, text=True, capture_output=True, check=True
    )
    printed: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return printed


@pytest.fixture(scope="module")
def project(fresh_once: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose strategies `wrong0`, `wrong1`, ... each answer something else."""
    made = copy_of(fresh_once, tmp_path_factory.mktemp("wrong") / "project")
    for kind, file, text in (
        ("selection", "wrong.py", SELECTOR),
        ("needs", "rumor.py", NEED.replace("ROWS", "len(context.clients)")),
    ):
        (made.root / "my" / kind).mkdir(parents=True, exist_ok=True)
        (made.root / "my" / kind / file).write_text(text)
    strategies = made.root / "config/strategies.yaml"
    entries = "".join(
        f"\nwrong{index}:\n  title: Wrong {index}\n"
        f'  selector: {{name: wrong, where: {where}, answer: "{answer}"}}\n'
        for index, (where, answer, _) in enumerate([*EVERY, ("none", "", "")])
    )
    strategies.write_text(strategies.read_text() + entries)
    study = made.study()
    names = [f"wrong{index}" for index in range(len(EVERY) + 1)]
    axes = {"partition": ["iid-overlap0.2x2"], "strategy": names, "J": ["J1"], "seed": [0]}
    study["experiments"] = {"one": {"axes": axes}}
    for part in ("figures", "tables", "claims"):
        study.pop(part, None)
    made.write(study)
    return made


@pytest.fixture(scope="module")
def said(project: Project) -> dict[str, str | None]:
    return answers(project)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(EVERY)))
def test_one_sentence_and_no_record(
    project: Project, said: dict[str, str | None], place: int
) -> None:
    sentence, strategy = EVERY[place][2], f"wrong{place}"
    result = said[strategy]
    assert result is not None and f"strategy '{strategy}', round " in result
    assert ("round 3: " if place < len(WRONG) else "") in result
    assert sentence in result
    assert strategy not in [record.parent.name for record in project.records()]


def test_right_answers_are_recorded_and_a_wrong_need_is_not(
    project: Project, said: dict[str, str | None]
) -> None:
    strategy = f"wrong{len(EVERY)}"
    assert said[strategy] is None
    (record,) = project.records()
    record.unlink()
    need = project.root / "my/needs/rumor.py"
    need.write_text(NEED.replace("ROWS", "2"))
    sentence = "round 1: need 'rumor' returned an array of shape (2,)"
    assert sentence in (answers(project, strategy)[strategy] or "")
    assert not project.records()
