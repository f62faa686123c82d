"""Mistakes in a study, the config or the catalog of data sets: each is one sentence that names the
file and the key, before anything is planned."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.plan import Plan, load
from cohort.selection.simple import Random

PlanOf = Callable[..., Plan]
AXES = "axes: {partition: [iid, classes-2, classes-3], J: [J4, J8], strategy: [fedavg, fedentopt]}"
LEFT_OUT = "exclude: [{partition: classes-3, J: [J8]}]"
PAPER = """item,source,doubtful,dataset,partition,J,strategy,other,metric,at,round,value,sd
TableI,printed,,digits,iid,J4,fedavg,,test_accuracy,last,,0.5,
TableII,printed,,digits,iid,J4,fedavg,one,test_accuracy,last,,0.5,
TableII,printed,,digits,iid,J4,fedavg,two,test_accuracy,last,,0.6,
TableIII,printed,,digits,iid,J4,fedavg,,test_accuracy,max,,0.6,
"""


@pytest.fixture
def refusal(plan_of: PlanOf) -> Callable[..., str]:
    """The sentence that refuses a block of the study's one experiment, and keys of the study."""

    def refuse(block: str, config: dict[str, Any] | None = None, **study: Any) -> str:
        with pytest.raises(UserError) as caught:
            plan_of(yaml.safe_load(block) or {}, config=config, **study)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return refuse


BLOCKS = [
    ("paired: [{lr: [0.1, 0.2], rounds: [50]}]", "must be equally long (lr: 2, rounds: 1)"),
    ("paired: [{J: [J4], lr: [0.1]}]", "'J' is an axis twice"),
    ("exclude: [{J: J8}]", ".exclude: no cell has J ['J8']"),
    (
        "{paired: [{lr: [0.1], rounds: [5]}], include: [{lr: 0.3}]}",
        ".include: an entry that gives one of lr, rounds must give them all, for they are paired",
    ),
    ("axes: {series: [a, b]}", ": series 'a' and 'b' name one run, which can have one name"),
    (
        "{axes: {strategy: [fedavg]}, include: [{strategy: fedentopt, selector.buffer: 0.5}, {strategy: fedentopt}]}",
        ": selector.buffer '0.5' and 'None' name one run",
    ),
    ("axes: {series: ['a,b']}", ".axes.series[0]: 'a,b' does not match"),
    ("axes: {partition: [iid, iid]}", ".axes.partition: ['iid', 'iid'] has non-unique elements"),
    ("axes: {augmentation: [none, crop-flp]}", "[1] is 'crop-flp', which is not known; did you me"),
    ("axes: {selector.buffer: [0.25]}", "strategy fedavg, selector: the file has an unknown key"),
    ("settings: {selector.buffer: [1, 2]}", "'boolean', 'null' (several are an axis)"),
    ("axes: {selector.buffer: [[1]]}", "axes.selector.buffer[0]: [1] is not of type 'num"),
    ("scales: {reduced: {without: [{J: J16}]}}", ".scales.reduced.without: no cell has J ['J16']"),
    ("settings: {batch: 2000}", ": batch is 2000, but digits has only 1437 training samples"),
    ("settings: {optimizer: adam, momentum: 0.9}", ": momentum is 0.9, but Adam takes none; leave"),
    ("settings: {lr: 1e-3}", "type 'number' (YAML reads 1e-3 as text: write 0.001)"),
    ("settings: {clip: nan}", ".settings.clip: 'nan' is not of type 'number' (largest norm of a"),
    ("settings: {lr: .nan}", ".settings.lr: nan is not of type 'number'"),
    ("settings: {model: lenet5}", ": model 'lenet5' cannot take digits: needs images of at least"),
    ("settings: {model: efficientnet-b0}", "needs images with three color channels, not samples o"),
    ("settings: {evaluate_next: 1}", "evaluate_next"),
    ("settings: {holdout: 0.1, evaluate_next: 1, procedure: concat-2}", "draws cohorts, but"),
    ("axes: {J: J4}", "axes.J: 'J4' is not of type 'array' (write [J4])"),
    ("axes: {partition: [roles-2]}", "'roles-2' of digits is impossible: it deals sample"),
    ("axes: {partition: [covering-0.5]}", "'covering-0.5' is not of the form covering-K,"),
    ("settings: {availability: markov-4-4, procedure: concat-2}", "'concat-2' has no use for av"),
    ("settings: {availability: markov-4-4, holdout: 0.1, evaluate_next: 1}", "draws from all cli"),
    ("{axes: {partition: [roles-2]}, settings: {holdout: 0.1}}", "what others hold out"),
    ("settings: {evaluators: cohort_samples 1; cohort_samples 2}", ": each can have one plan only"),
    ("exclude: [{J: [J4, J8]}]", ".exclude leaves no cell"),
    ("axes: {partition: [role-2]}", "partition 'role-2' is not known; did you mean 'roles-K'?"),
    (
        "{axes: {strategy: [peco]}, settings: {clients: 40000, reserve: 5000, dataset: mnist, "
        "model: lenet5}}",
        "strategy 'peco' would need 80 GB of memory for 40000 clients, 5000 reserved samples",
    ),
]


@pytest.mark.parametrize(("block", "sentence"), BLOCKS)
def test_in_an_experiment(refusal: Callable[..., str], block: str, sentence: str):
    text = refusal(block, config={"scale": "reduced" if "scales" in block else "full"})
    assert text.startswith("config/studies/study.yaml: experiments.main") and sentence in text


MASKED = {"clients": 5, "cohort": 5, "reserve": 0, "procedure": "masked-labels", "rounds": 1}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rounds": 2}, "has a single round: rounds is 2, but must be 1"),
        ({"cohort": 3}, "asks all 5 clients in every round: cohort is 3"),
        ({"participation": "dropout-0.3"}, "has no use for the participation 'dropout-0.3'"),
        ({"availability": "markov-4-4"}, "has no use for the availability 'markov-4-4'"),
        ({"evaluate_local": 1}, "trains no model that could be evaluated: leave out evaluate_loc"),
    ],
)
def test_in_masked_labels(refusal: Callable[..., str], changes: dict[str, Any], sentence: str):
    block = {"axes": {"partition": ["covering-5"], "J": ["J1e"]}, "settings": MASKED | changes}
    assert f"procedure 'masked-labels' {sentence}" in refusal(yaml.safe_dump(block))


STUDIES = [
    ("titles: {partition: {classes-4: x}}", "titles.partition names 'classes-4', which no cell ha"),
    ("titles: {partitions: {iid: x}}", "titles has an unknown key 'partitions'; did you mean 'p"),
    ("key_figure: fig9", "key_figure is 'fig9', which is not a figure"),
    ("scales: {reducd: {rounds: 0.1}}", "scales is 'reducd', which is not known; did you mean 're"),
    ("overrides: [{given: {J: J2}, settings: {lr: 1}}]", "overrides[0]: no cell has J ['J2']"),
    ("overrides: [{given: {J: J4}, settings: {round: 5}}]", "overrides[0].settings has an unkn"),
    ("tables: {claims: {experiment: main, metric: selected, rows: [J]}}", "'claims' is the name"),
    ("tables: {runs: {experiment: main, metric: selected, rows: [J]}}", "'runs' is the name of a "),
    (
        "tables: {t: {experiment: main, metric: accuracy, rows: [client], columns: client}}",
        "t: client belongs am",
    ),
    (
        "tables: {t: {experiment: main, metric: test_loss, rows: [J], also: [test_loss ²]}}",
        "t: also: '²' is not",
    ),
    ("tables: {t: {experiment: mian, metric: selected, rows: [J]}}", "tables.t.experiment is 'mia"),
    ("figures: {table: {experiment: main, kind: shards}}", "'table' names both a figure and a"),
    ("experiments: {Main: {axes: {}}}", "experiments: 'Main' does not match"),
    ("experiments: {main: {strategy: [+loss], axes: {}}}", "experiments.main"),
]
TABLE = {"experiment": "main", "metric": "test_accuracy", "rows": ["partition", "J", "strategy"]}


@pytest.mark.parametrize(("keys", "sentence"), STUDIES)
def test_in_a_study(refusal: Callable[..., str], keys: str, sentence: str):
    study = yaml.safe_load(keys)
    text = refusal(f"{{{AXES}}}", **{"tables": {"table": TABLE}} | study)
    assert text.startswith(f"config/studies/study.yaml: {sentence}")


FIGURES = [
    ("dashed: [fedavgg]", " names 'fedavgg', which strategy does not have"),
    ("pooled: [partitions]", " names 'partitions', which is not an axis of its experiment; "),
    ("columns: J", " would average runs with partition iid and classes-2 as if they were seeds"),
    ("hue: strategies", " names 'strategies', which is not an axis of its experiment; did you"),
    ("{kind: interval, without: {partition: idd}}", " names 'idd', which partition does not have"),
    ("without: {J: [J4, J8]}", "fig1.without leaves no J"),
    ("limits: [90, 10]", "fig1.limits are [90, 10]; the lowest comes first"),
    (
        "{kind: bars, x: partition, columns: J, metric: local_accuracy}",
        "fig1 shows local_accuracy, which none of its runs records; set evaluate_local",
    ),
    ("metric: nova_factor", "fig1 shows nova_factor, which none of its runs records"),
    ("kind: curve", ".kind is 'curve', which is not known; did you mean 'curves'?"),
    ("{kind: shards, metric: label_count, hue: J}", ": shards have neither further metrics nor"),
    ("{kind: bars, x: partition, columns: J, at: 112}", "at is 112, but runs shown here end after"),
    ("paper: Fig4", ": paper is 'Fig4', which is not in resources/paper_values/study.csv"),
    ("{kind: bars, x: partition, columns: J, paper: TableX}", ": paper is 'TableX', which is not"),
    ("{kind: bars, x: partition, columns: J, paper: TableII}", ": paper has two values for"),
    ("{kind: bars, x: partition, columns: J, paper: TableIII}", " fits a result shown here ("),
]


@pytest.mark.parametrize(("change", "sentence"), FIGURES)
def test_in_a_figure(refusal: Callable[..., str], change: str, sentence: str):
    Path("resources/paper_values/study.csv").write_text(PAPER)
    figure = {"experiment": "main", "kind": "curves", "metric": "test_accuracy"}
    figure |= {"hue": "strategy", "columns": "partition", "rows": "J"} | yaml.safe_load(change)
    if figure["kind"] == "bars":
        del figure["rows"]
    text = refusal(f"{{{AXES}}}", figures={"fig1": figure})
    assert text.startswith("config/studies/study.yaml: ") and "fig1" in text and sentence in text


CLAIM = {
    **{"says": "So it is.", "where": "Section 1", "experiment": "main", "metric": "test_accuracy"},
    **{"kind": "order", "along": "partition", "values": ["iid", "classes-2"], "way": "falls"},
}
CLAIMS = [
    ("metric: accuracy", ".metric is 'accuracy', which is not known; did you mean 'test_accur"),
    ("at: 112", ": at is 112, but runs of main that it compares end after 100 rounds"),
    ("experiment: mian", ": experiment is 'mian', which is not known; did you mean 'main'?"),
    ("along: partitions", ": along is 'partitions', which is not an axis of main; did you mean"),
    ("given: {j: J4}", ": given names 'j', which is not an axis of main"),
    ("values: [iid, class-2]", ": values names partition class-2, which is not on the axis of"),
    ("given: {J: [J4, J16]}", ": given names J J16, which is not on the axis of main (allowed: J4"),
    ("values: [iid, classes-3]", ": main has no cell with partition classes-3 and J J8, data"),
    ("paper: TableX", ": paper is 'TableX', which is not in resources/paper_values/study.csv or"),
    ("{paper: TableI, at: max}", " fits what is compared (test_accuracy, at max); compare thei"),
    ("paper: TableII", ": paper has two values for"),
]


@pytest.mark.parametrize(("change", "sentence"), CLAIMS)
def test_in_a_claim(refusal: Callable[..., str], change: str, sentence: str):
    Path("resources/paper_values/study.csv").write_text(PAPER)
    claims = {"one": CLAIM | yaml.safe_load(change)}
    text = refusal(f"{{{AXES}, {LEFT_OUT}}}", claims=claims)
    assert text.startswith("config/studies/study.yaml: claims.one") and sentence in text


CONFIG = [
    ("only: fedavg", "only 'fedavg': 'fedavg' must be LABEL=VALUE"),
    ("only: 'seed=0,seed=1'", "names seed twice; write seed=VALUE|VALUE"),
]


@pytest.mark.parametrize(("config", "sentence"), CONFIG)
def test_in_the_config(refusal: Callable[..., str], config: str, sentence: str):
    Path("text").write_text("text")
    assert sentence in refusal("{}", config=yaml.safe_load(config))


LOGIN = "      login: https://www.kaggle"
DATASETS = [
    ("      bytes: 47040016\n", "", "'bytes' is a required property"),
    ("https://ossci", "ftp://ossci", "(package:NAME/PATH or a URL"),
    ("md5: f68b3c2dcbeaaa", "md5: f68b", "(32 hexadecimal digits)"),
    ("      bytes: 47040016\n", "      bytes: 1\n      member: ../x\n", "(a path inside an a"),
    ("      bytes: 47040016\n", "      bytes: 1\n      size: 1\n", "unknown key 'size'"),
    ("mirrors: [https://datashare.is", "mirrors: [file://datashare.is", "(a URL without user"),
    (LOGIN, "      bytes: 5 # ", "'source' is a required property"),
    (LOGIN, f"      source: https://x.org/x.zip\n{LOGIN}", "brain-tumor-mri-dataset.zip.source"),
    ("shape: [1, 8, 8]", "shape: [64]", "digits.shape: [64] is too short"),
]


@pytest.mark.parametrize(("old", "new", "sentence"), DATASETS)
def test_in_a_data_set(old: str, new: str, sentence: str, project: Path):
    file = project / "config/datasets.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        load()
    assert str(caught.value).startswith("config/datasets.yaml: ") and sentence in str(caught.value)


def test_an_empty_file(project: Path):
    Path("config/scales.yaml").write_text("")
    with pytest.raises(UserError, match=r"config/scales.yaml: the file: None is not of type 'obj"):
        load()


def test_clients_that_are_asked_for_the_next_cohort(
    refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Random, "needs", frozenset({"candidate_loss"}))
    text = refusal("settings: {holdout: 0.1, evaluate_next: 1}")
    assert "evaluate_next asks nobody, but '" in text
