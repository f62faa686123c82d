"""Mistakes in the config: one clear sentence, a non-zero exit, no traceback of ours, no job started."""

from __future__ import annotations

import re

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.pipeline.targets import targets
from cohort.plan import load, misnamed_studies
from cohort.plan.loading import RULES
from cohort.plan.yaml_files import parse_override
from tests.workflow.conftest import Project

STUDY, STRATEGIES = "config/studies/tiny.yaml", "config/strategies.yaml"
CLAIM = "  better: {{kind: order, says: x, where: y, experiment: one, metric: test_accuracy, along: {along}, values: {values}, way: falls}}\n"
EDITS = {
    "wrong type": (
        STUDY,
        "clients: 10",
        "clients: ten",
        "tiny.yaml: settings.clients: 'ten' is not of type 'integer'",
    ),
    "unknown key": (
        STUDY,
        "lr: 0.05",
        "lr: 0.05\n  learning_rate: 1",
        "tiny.yaml: settings has an unknown key 'learning_rate'; did you mean 'lr'?",
    ),
    "misspelt strategy": (
        STUDY,
        "- fedentopt",
        "- fedentop",
        "experiments.one.axes.strategy[1] is 'fedentop', which is not known; did you mean 'fedentopt'?",
    ),
    "negative lr": (
        STUDY,
        "lr: 0.05",
        "lr: -0.05",
        "settings.lr: -0.05 is less than or equal to the minimum of 0",
    ),
    "empty axis": (
        STUDY,
        "seed:\n      - 0\n      - 1",
        "seed: []",
        "experiments.two.axes.seed: [] should be non-empty",
    ),
    "duplicate key": (
        STUDY,
        "lr: 0.05",
        "lr: 0.05\n  lr: 0.5",
        "tiny.yaml, line 9: key 'lr' stands twice in one mapping",
    ),
    "number that YAML reads as text": (
        STUDY,
        "lr: 0.05",
        "lr: 1e-3",
        "settings.lr: '1e-3' is not of type 'number' (YAML reads 1e-3 as text: write 0.001)",
    ),
    "a number to the base 60": (
        STUDY,
        "lr: 0.05",
        "lr: 1:30",
        "tiny.yaml, line 8: YAML reads 1:30 to the base 60; write a plain number, or quote it",
    ),
    "a fraction to the base 60": (
        STUDY,
        "lr: 0.05",
        "lr: 1:30.5",
        "tiny.yaml, line 8: YAML reads 1:30.5 to the base 60",
    ),
    "a whole number in quotes": (
        STUDY,
        "clients: 10",
        "clients: '10'",
        "settings.clients: '10' is not of type 'integer'",
    ),
    "rounds that nobody can run": (
        STUDY,
        "rounds: 4",
        "rounds: 1000000000",
        "tiny.yaml: settings.rounds: 1000000000 is greater than the maximum of 1000000",
    ),
    "a learning rate that nobody means": (
        STUDY,
        "lr: 0.05",
        "lr: 1.0e+9",
        "settings.lr: 1000000000.0 is greater than the maximum of 1000",
    ),
    "hardly a sample to train on": (
        STUDY,
        "lr: 0.05",
        "lr: 0.05\n  holdout: 0.99",
        "settings.holdout: 0.99 is greater than the maximum of 0.9",
    ),
    "bernoulli of none": (
        STUDY,
        "lr: 0.05",
        "lr: 0.05\n  participation: bernoulli-0",
        "participation 'bernoulli-0' is not of the form bernoulli-PROBABILITY: probability is 0, but must be above 0",
    ),
    "dropout of none": (
        STUDY,
        "lr: 0.05",
        "lr: 0.05\n  participation: dropout-0",
        "participation 'dropout-0' is not of the form dropout-SHARE: share is 0, but must be above 0",
    ),
    "stragglers of none": (
        STUDY,
        "lr: 0.05",
        "lr: 0.05\n  participation: stragglers-0",
        "share is 0, but must be above 0",
    ),
    "a batch that no client can fill": (
        STUDY,
        "batch: 16",
        "batch: 1438",
        "experiments.one: batch is 1438, but digits has only 1437 training samples; this many make every batch a full one",
    ),
    "an exponent in a name": (
        STUDY,
        "- classes-2",
        "- dir-1e-300",
        "partition 'dir-1e-300' holds 1e-300, but numbers in a name are written without an exponent, such as 0.001",
    ),
    "a space in the name of a figure": (
        STUDY,
        "  fig1:",
        "  my fig:",
        "figures: 'my fig' does not match '^[a-z][a-z0-9_]*$' (a name of small letters, digits and _)",
    ),
    "a space in the name of a strategy": (
        STRATEGIES,
        "fedentopt:",
        "fed entopt:",
        "strategies.yaml: the file: 'fed entopt' does not match",
    ),
    "impossible partition": (
        STUDY,
        "- classes-2",
        "- classes-20",
        "partition 'classes-20' of digits is impossible: a client cannot hold 20 classes where there are only 10",
    ),
    "unknown partition": (
        STUDY,
        "- classes-2",
        "- class-2",
        "partition 'class-2' is not known; did you mean 'classes-K'?",
    ),
    "partition in the papers' form": (
        STUDY,
        "- classes-2",
        "- Dir(0.1)",
        "partition 'Dir(0.1)' is not known; did you mean 'dir-0.1'?",
    ),
    "partition by its long name": (
        STUDY,
        "- classes-2",
        "- dirichlet-0.1",
        "partition 'dirichlet-0.1' is not known; did you mean 'dir-ALPHA[-minimumN]'?",
    ),
    "J without its letter": (
        STUDY,
        "- J2",
        "- 16",
        "experiments.one.axes.J[0]: 16 is not of type 'string' (local work per round: J4 is four steps, J5e five epochs)",
    ),
    "model that is like none": (
        STUDY,
        "model: small-mlp",
        "model: mobilenet",
        "settings.model is 'mobilenet', which is not known (allowed: ",
    ),
    "size of a network": (
        STUDY,
        "model: small-mlp",
        "model: resnet50",
        "settings.model is 'resnet50', which is not known; did you mean 'resnet20'?",
    ),
    "one title for two strategies": (
        STUDY,
        "tables:\n",
        "titles:\n  strategy: {fedavg: FedEntOpt}\ntables:\n",
        "tiny.yaml: strategy 'fedavg' and 'fedentopt' have one title, 'FedEntOpt'; give one of them another under titles.strategy",
    ),
    "one title for two partitions": (
        STUDY,
        "tables:\n",
        "titles:\n  partition: {classes-2: iid}\ntables:\n",
        "tiny.yaml: partition 'iid' and 'classes-2' have one title, 'iid'; give one of them another under titles.partition",
    ),
    "selector's parameter": (
        STRATEGIES,
        "buffer: 0.5",
        "bufer: 0.5",
        "strategies.yaml: fedentopt.selector has an unknown key 'bufer'; did you mean 'buffer'?",
    ),
    "selector's bound": (
        STRATEGIES,
        "buffer: 0.5",
        "buffer: 1.5",
        "fedentopt.selector.buffer: 1.5 is greater than or equal to the maximum of 1",
    ),
    "too small for the selector": (
        STRATEGIES,
        "buffer: 0.5",
        "buffer: 0.9",
        "strategy 'fedentopt' is impossible: a buffer of 0.9 of 10 clients leaves fewer than the 3 of a cohort",
    ),
    "figure of no experiment": (
        STUDY,
        "experiment: two",
        "experiment: too",
        "fig2.experiment is 'too'; did you mean 'two'?",
    ),
    "figure of no axis": (
        STUDY,
        "columns: partition",
        "columns: partitions",
        "fig1 names 'partitions', which is not an axis",
    ),
    "average of more than seeds": (
        STUDY,
        "columns: partition",
        "smoothing: 1",
        "fig1 would average runs with partition iid and classes-2",
    ),
    "missing setting": (STUDY, "  cohort: 3\n", "", "experiments.one: no value for 'cohort'"),
    "reserved samples": (
        STUDY,
        "reserve: 60",
        "reserve: 400",
        "reserve is 400, but digits has only 360 test samples",
    ),
    "validation samples": (
        STUDY,
        "reserve: 60",
        "validation: 1437",
        "validation is 1437, but digits has only 1437 training samples",
    ),
    "schedule of a federated run": (
        STUDY,
        "lr: 0.05",
        "lr: 0.05\n  schedule: cosine",
        "procedure 'federated' follows lr_decay, not the schedule 'cosine', which is for centralized runs; leave it out",
    ),
    "evaluation plan": (
        STUDY,
        "evaluate_every: 2",
        "evaluate_every: 1 until 10",
        "settings.evaluate_every: '1 until 10' does not match",
    ),
    "paper without values": (
        STUDY,
        "columns: strategy",
        "columns: strategy\n    paper: TableI",
        "tab1: paper is 'TableI', but there is no resources/paper_values/tiny.csv with the paper's values",
    ),
    "claim of no axis": (
        STUDY,
        "tables:\n",
        "claims:\n" + CLAIM.format(along="partitions", values="[iid, classes-2]") + "tables:\n",
        "tiny.yaml: claims.better: along is 'partitions', which is not an axis of one; did you mean 'partition'?",
    ),
    "claim of cells that there are not": (
        STUDY,
        "tables:\n",
        "claims:\n" + CLAIM.format(along="partition", values="[iid, classes-3]") + "tables:\n",
        "tiny.yaml: claims.better: values names partition classes-3, which is not on the axis of one; did you mean 'classes-2'?",
    ),
    "broken YAML": (STUDY, "title: Tiny", "title: [Tiny", "tiny.yaml, line"),
}
OVERRIDES = {
    "unknown study": (
        "studies=tinny",
        "studies is 'tinny', which is not known; did you mean 'tiny'?",
    ),
    "unknown study in a list": ("studies=[tiny,demo]", "studies[1] is 'demo', which is not known"),
    "list for text": ("scale=[full]", "scale: ['full'] is not of type 'string'"),
    "unknown scale": ("scale=ful", "scale is 'ful', which is not known; did you mean 'full'?"),
    "unknown label": (
        "only=strategi=fedavg",
        "only strategi=fedavg: tiny has no label 'strategi'; did you mean 'strategy'?",
    ),
    "unknown value": (
        "only=strategy=fedentop",
        "only strategy=fedentop matches no cell of tiny; did you mean 'fedentopt'?",
    ),
    "only without a label": ("only=fedavg", "only 'fedavg': 'fedavg' must be LABEL=VALUE"),
    "a word after --config": (
        "tiny",
        "--config tiny: must be KEY=VALUE; put studies and other arguments before --config",
    ),
    "no number": ("checkpoint_seconds=.nan", "checkpoint_seconds: nan is not of type 'number'"),
    "without an end": ("checkpoint_seconds=.inf", "checkpoint_seconds: inf is not of type"),
    "base 60": ("checkpoint_seconds=1:30", "valid YAML (YAML reads 1:30 to the base 60; write a"),
    "no YAML": (
        "scale=[[[",
        "--config scale=[[[: the value is not valid YAML (did not find expected",
    ),
    "no mirror": ("data_mirror=elsewhere", "data_mirror is 'elsewhere', which is not a folder"),
    "unknown config key": ("scales=full", "unknown key 'scales'; did you mean 'scale'?"),
}


def assert_one_sentence(output: str, sentence: str, project: Project) -> None:
    assert sentence in output, output
    assert "Traceback" not in output and "  File " not in output and "WorkflowError" not in output
    assert "cohort/" not in output.replace("workflow/cohort/models", ""), output
    assert (
        not (project.root / "results/cells").exists()
        and not (project.root / "results/plan").exists()
    )


def mistaken(*overrides: str) -> str:
    """Plan the default target and return the error's sentence."""
    with pytest.raises((UserError, SystemExit)) as caught:
        dict(targets(load(dict(map(parse_override, overrides)))))["all"](None)
    return str(caught.value)


@pytest.mark.parametrize("name", EDITS)
def test_mistake_in_a_file(fresh: Project, monkeypatch: pytest.MonkeyPatch, name: str):
    file, old, new, sentence = EDITS[name]
    fresh.replace(file, old, new)
    monkeypatch.chdir(fresh.root)
    assert_one_sentence(mistaken(), sentence, fresh)


@pytest.mark.parametrize("name", OVERRIDES)
def test_mistake_on_the_command_line(fresh: Project, monkeypatch: pytest.MonkeyPatch, name: str):
    override, sentence = OVERRIDES[name]
    monkeypatch.chdir(fresh.root)
    assert_one_sentence(mistaken(override), sentence, fresh)


def test_snakemake_says_what_planning_says(fresh: Project):
    """Tried with a study that cannot be read, one that cannot be planned, and a bad command
    line."""
    override, sentence = OVERRIDES["list for text"]
    assert_one_sentence(fresh.snakemake("--config", override, fails=True), sentence, fresh)
    for name in ("figure of no axis", "broken YAML"):
        file, old, new, sentence = EDITS[name]
        fresh.replace(file, old, new)
        assert_one_sentence(fresh.snakemake(fails=True), sentence, fresh)


def test_a_study_whose_file_has_no_name_of_a_study(fresh: Project, monkeypatch: pytest.MonkeyPatch):
    """Named, it is refused; not named, Snakemake says that it is left out."""
    mine = fresh.root / "my/studies/My-Study.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text((fresh.root / STUDY).read_text())
    sentence = (
        "my/studies/My-Study.yaml: no study is called 'My-Study': names are of small letters, "
        "digits and _, begin with a letter, and are not that of a rule of the pipeline; rename it"
    )
    assert sentence in fresh.snakemake("-n")
    monkeypatch.chdir(fresh.root)
    assert_one_sentence(mistaken("studies=My-Study"), sentence, fresh)
    (mine.parent / ".My-Study.yaml~").touch()
    assert list(misnamed_studies()) == ["My-Study"]


def test_a_study_that_is_called_like_a_rule(fresh: Project, monkeypatch: pytest.MonkeyPatch):
    """Its page would be the index."""
    mine = fresh.root / "my/studies/index.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text((fresh.root / STUDY).read_text())
    sentence = (
        "my/studies/index.yaml: no study is called 'index': names are of small letters, digits and "
        "_, begin with a letter, and are not that of a rule of the pipeline; rename it"
    )
    monkeypatch.chdir(fresh.root)
    assert_one_sentence(mistaken("studies=index"), sentence, fresh)
    rules = [*fresh.root.glob("rules/*.smk"), fresh.root / "Snakefile"]
    text = "\n".join(file.read_text() for file in rules)
    assert {"all", *re.findall(r"^ *rule (\w+):", text, re.MULTILINE)} == set(RULES)


def test_broken_study_that_is_not_asked_for_is_no_mistake(fresh: Project):
    (fresh.root / "config/studies/other.yaml").write_text("title: [broken")
    assert fresh.planned()["train"] == 6


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


def test_only_is_held_against_the_study_that_a_target_names(fresh: Project):
    """The listed study has no such cells, which is no mistake unless they are asked for."""
    study = fresh.study()
    study["experiments"]["one"]["axes"]["strategy"] = ["skewed", "loss"]
    (fresh.root / "config/studies/other.yaml").write_text(yaml.safe_dump(study))
    assert fresh.planned("other", "--config", "only=strategy=skewed")["train"] == 2
    output = fresh.snakemake("other", "--config", "only=strategy=skewd", fails=True)
    assert_one_sentence(
        output, "only strategy=skewd matches no cell of other; did you mean 'skewed'?", fresh
    )
    both = ("--config", "studies=[tiny,other]", "only=strategy=skewed")
    assert fresh.planned(*both)["train"] == 2
    output = fresh.snakemake("--config", "only=strategy=skewed", fails=True)
    assert_one_sentence(output, "only strategy=skewed matches no cell of tiny", fresh)
