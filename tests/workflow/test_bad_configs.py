"""Mistakes in the config: one clear sentence, a non-zero exit, no traceback of ours, no job started."""

from __future__ import annotations

import re

import pytest

from cohort.core.errors import UserError
from cohort.pipeline.stages import targets
from cohort.plan import load
from cohort.plan.loading import RULES
from cohort.plan.yaml_files import parse_override
from tests.conftest import ROOT
from tests.workflow.conftest import Project

STUDY, STRATEGIES = "config/studies/tiny.yaml", "config/strategies.yaml"
FIGURE = ("columns: partition", "columns: partitions", "fig1 names 'partitions', which is not")
BROKEN = ("title: Tiny", "title: [Tiny", "tiny.yaml, line")
LR = "lr: 0.05"
SLOW = "participation: deadline-0.1\n  client_devices: lognormal-0.1"
IN_THE_STUDY = [
    *(FIGURE, BROKEN),
    (LR, f"{LR}\n  lr: 0.5", "tiny.yaml, line 9: key 'lr' stands twice in one mapping"),
    (LR, f"{LR}\n  holdout: 0.99", "holdout: 0.99 is greater than the maximum of 0.9"),
    (LR, f"{LR}\n  participation: deadline-9", "by simulated time: set client_devices"),
    (LR, f"{LR}\n  {SLOW}", "'deadline-0.1': nobody can meet it: the fastest takes at least"),
    (LR, f"{LR}\n  availability: markof-4-4", "'markof-4-4' is not known; did you mean 'ma"),
    (LR, f"{LR}\n  availability: trace-phones", "trace-TABLE-CHECKSUM, table being a word"),
    (LR, f"{LR}\n  availability: trace-t-0", "there is no file my/availability/t.csv"),
    ("rounds: 4", "rounds: 1000000000", "1000000000 is greater than the maximum of 1000000"),
    ("reserve: 60", "reserve: 400", "reserve is 400, but digits has only 360 test samples"),
    ("reserve: 60", "validation: 1437", "validation is 1437, but digits has only 1437 trai"),
    ("evaluate_every: 2", "evaluate_every: 1 until 10", "'1 until 10' does not match"),
    ("  cohort: 3\n", "", "experiments.one: no value for 'cohort'"),
    ("columns: strategy", "columns: strategy\n    paper: TableI", "no resources/paper_values"),
]
IN_STRATEGIES = [
    ("fedentopt:", "fed entopt:", "strategies.yaml: the file: 'fed entopt' does not"),
    ("buffer: 0.5", "bufer: 0.5", "fedentopt.selector has an unknown key 'bufer'; did"),
    ("buffer: 0.5", "buffer: 1.5", "1.5 is greater than or equal to the maximum of 1"),
    ("buffer: 0.5", "buffer: 0.9", "leaves fewer than the 3 of a cohort"),
]
EDITS = [
    *((STUDY, *edit) for edit in IN_THE_STUDY),
    *((STRATEGIES, *edit) for edit in IN_STRATEGIES),
]
LIST = ("scale=[full]", "scale: ['full'] is not of type 'string'")
OVERRIDES = [
    LIST,
    ("studies=tinny", "studies is 'tinny', which is not known; did you mean 'tiny'?"),
    ("studies=[tiny,demo]", "studies[1] is 'demo', which is not known"),
    ("tiny", "--config tiny: must be KEY=VALUE; put others before --config"),
    ("checkpoint_seconds=.nan", "checkpoint_seconds: nan is not of type 'number'"),
    ("scale=[[[", "--config scale=[[[: the value is not valid YAML (did not find expected"),
    ("data_mirror=elsewhere", "data_mirror is 'elsewhere', which is not a folder"),
    ("scales=full", "unknown key 'scales'; did you mean 'scale'?"),
]


def assert_one_sentence(output: str, sentence: str, project: Project) -> None:
    assert sentence in output, output
    assert "Traceback" not in output and "  File " not in output and "WorkflowError" not in output
    assert "cohort/" not in output.replace("workflow/cohort/models", ""), output
    assert not any((project.root / "results" / name).exists() for name in ("cells", "plan"))


def mistaken(*overrides: str) -> str:
    """Plan the default target and return the error's sentence."""
    with pytest.raises((UserError, SystemExit)) as caught:
        dict(targets(load(dict(map(parse_override, overrides)))))["all"](None)
    return str(caught.value)


@pytest.mark.parametrize(("file", "old", "new", "sentence"), EDITS)
def test_mistake_in_a_file(
    fresh: Project, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, sentence: str
):
    fresh.replace(file, old, new)
    monkeypatch.chdir(fresh.root)
    assert_one_sentence(mistaken(), sentence, fresh)


@pytest.mark.parametrize(("override", "sentence"), OVERRIDES)
def test_mistake_on_the_command_line(
    fresh: Project, monkeypatch: pytest.MonkeyPatch, override: str, sentence: str
):
    monkeypatch.chdir(fresh.root)
    assert_one_sentence(mistaken(override), sentence, fresh)


def test_snakemake_says_what_planning_says(fresh: Project):
    """Tried with a study that cannot be read, one that cannot be planned, a bad command line."""
    override, sentence = LIST
    assert_one_sentence(fresh.snakemake("--config", override, fails=True), sentence, fresh)
    for old, new, sentence in (FIGURE, BROKEN):
        fresh.replace(STUDY, old, new)
        assert_one_sentence(fresh.snakemake(fails=True), sentence, fresh)


@pytest.mark.parametrize("name", ["My-Study", "index"])
def test_a_study_whose_file_has_no_name_of_a_study(
    fresh: Project, monkeypatch: pytest.MonkeyPatch, name: str
):
    """Of two, the second is called like a rule: its page would be the index."""
    study_file = fresh.root / f"my/studies/{name}.yaml"
    study_file.parent.mkdir(parents=True)
    monkeypatch.chdir(fresh.root)
    (study_file.parent / ".My-Study.yaml").touch()
    assert load().listed == ["tiny"]
    study_file.touch()
    assert_one_sentence(mistaken(), f"{name}.yaml: the name of a study is of small let", fresh)


def test_no_study_can_be_called_like_a_rule():
    rules = [*ROOT.glob("rules/*.smk"), ROOT / "Snakefile"]
    text = "\n".join(file.read_text() for file in rules)
    assert {"all", *re.findall(r"^ *rule (\w+):", text, re.MULTILINE)} == set(RULES)


def test_a_mistake_in_a_study_that_only_a_target_names(fresh: Project):
    """It is planned when Snakemake asks for the target's files, and its sentence is the last one."""
    text = (fresh.root / STUDY).read_text()
    (fresh.root / "config/studies/other.yaml").write_text(text.replace("lr: 0.05", "lr: -0.05"))
    output = fresh.snakemake("other", fails=True)
    assert output.endswith(
        "\nerror: config/studies/other.yaml: settings.lr: -0.05 is less than or equal to the minimum of 0\n"
    )
    assert "Traceback" not in output and "Exception" not in output
    assert not (fresh.root / "results/logs").exists()
