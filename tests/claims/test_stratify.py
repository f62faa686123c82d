"""Stratify's claims on its printed numbers: each verdict is derived again with plain pandas."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from cohort.claims.judge import judged
from cohort.pipeline.specs import claims_spec
from cohort.plan import load

ROOT = Path(__file__).resolve().parents[2]
VALUES = pd.read_csv(ROOT / "resources/paper_values/stratify.csv")
UNIFORM, WEIGHTED = "stratify-uniform", "stratify-weighted"
LABEL_SKEW = ["mnist", "cifar10", "cifar100", "tiny-imagenet", "covtype"]
BASELINES = ["fedavg", "fedprox", "scaffold"]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the pipeline makes of them without any run of ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        given = str(tmp_path_factory.mktemp("given"))
        paths = {"pacs": given, "digits-dg": given}
        plan = load({"studies": ["stratify"], "data_paths": paths})
        table = judged(claims_spec(plan, "stratify") | {"metrics": {}})
    assert set(table["measured"]) == {"not enough runs"}
    return dict(table.set_index("claim")["paper"])


def item(name: str, metric: str = "test_accuracy") -> pd.DataFrame:
    return VALUES[(VALUES["item"] == name) & (VALUES["metric"] == metric)]


def by_strategy(name: str) -> pd.DataFrame:
    """A column for each strategy, in percent."""
    found = item(name).pivot(index=["dataset", "partition"], columns="strategy", values="value")
    return found * 100


def word(holds: object) -> str:
    return "held" if bool(holds) else "not held"


TABLES = pytest.mark.parametrize(
    ("name", "mode"), [("TableI", "single"), ("TableII", "batch")], ids=["single", "batch"]
)


@TABLES
def test_near_iid(name: str, mode: str, verdicts: dict[str, str]) -> None:
    ours = by_strategy(name)[UNIFORM].drop(index="dir-0.5", level="partition")
    apart = ours.groupby("dataset").agg(lambda one: one.max() - one.min())
    near = apart[[dataset for dataset in LABEL_SKEW if dataset in apart]] <= 2
    claim = {"single": "single_near_iid", "batch": "batch_near_iid"}[mode]
    assert verdicts[claim] == word(near.all()) == "held"


@TABLES
def test_ahead(name: str, mode: str, verdicts: dict[str, str]) -> None:
    table = by_strategy(name)
    ours = [column for column in table if column in (UNIFORM, WEIGHTED)]
    ahead = table[ours].max(axis=1) > table.drop(columns=ours).max(axis=1)
    by_partition = ahead.groupby("partition").all()
    one_class = {"single": "single_ahead_at_one_class", "batch": "batch_ahead_at_one_class"}
    dirichlet = {"single": "single_ahead_on_dirichlet", "batch": "batch_ahead_on_dirichlet"}
    assert verdicts[one_class[mode]] == word(by_partition["classes-1"]) == "held"
    on_dirichlet = by_partition[["dir-0.5", "dirdomains-0.5"]].all()
    assert verdicts[dirichlet[mode]] == word(on_dirichlet)
    assert bool(on_dirichlet) == (mode == "batch")  # Digits-DG, where FedProx is ahead


GROWING = {
    "single": ["single_gap_grows_fedavg", "single_gap_grows_fedprox", "single_gap_grows_scaffold"],
    "batch": ["batch_gap_grows_fedavg", "batch_gap_grows_fedprox", "batch_gap_grows_scaffold"],
}


@TABLES
def test_gap_grows_with_the_number_of_classes(
    name: str, mode: str, verdicts: dict[str, str]
) -> None:
    table = by_strategy(name).xs("dir-0.5", level="partition")
    gaps = table[BASELINES].rsub(table[UNIFORM], axis=0).drop(index="covtype")
    many = gaps.index.isin(["cifar100", "tiny-imagenet"])
    grows = gaps[many].min() > gaps[~many].max()
    for baseline, claim in zip(BASELINES, GROWING[mode], strict=True):
        assert verdicts[claim] == word(grows[baseline]) == "held"


def test_sfl(verdicts: dict[str, str]) -> None:
    table = by_strategy("TableI").xs("dir-0.5", level="partition").drop(index="covtype")
    near = table["sfl"] - table[UNIFORM] > -5
    assert verdicts["sfl_near_on_dirichlet"] == word(near.all()) == "held"


def test_times(verdicts: dict[str, str]) -> None:
    whole = item("TableIII", "seconds_training").pivot(
        index="model", columns="strategy", values="value"
    )
    heavier = (whole[UNIFORM] > whole["fedavg"])[["stratify-cnn", "resnet9", "resnet9-plain"]]
    assert verdicts["rounds_heavier"] == word(heavier.all()) == "held"
    client = item("text-V.E", "client_seconds_to_best").set_index("strategy")["value"]
    assert verdicts["client_work_lower"] == word(client["fedavg"] > client[UNIFORM]) == "held"


def test_masked_labels(verdicts: dict[str, str]) -> None:
    seconds = item("TableIV", "seconds_unique_list").pivot(
        index="clients", columns="partition", values="value"
    )
    steps = seconds[["covering-1", "covering-5", "covering-50"]].diff(axis=1).iloc[:, 1:]
    assert verdicts["listing_grows"] == word((steps > 0).all(axis=None)) == "held"


def choices(metric: str) -> pd.DataFrame:
    """Uniform and weighted choice of Table V, by mode and data set."""
    found = item("TableV", metric)
    mode = found["procedure"].str.replace("-weighted1", "")
    return found.assign(mode=mode).pivot(
        index=["mode", "dataset"], columns="strategy", values="value"
    )


def test_table_five(verdicts: dict[str, str]) -> None:
    accuracy, epoch = choices("test_accuracy"), choices("best_round")
    behind = ((accuracy[WEIGHTED] - accuracy[UNIFORM]) * 100).unstack("dataset")
    assert verdicts["uniform_as_good"] == word((behind["cifar10"] < 1).all()) == "held"
    domains = behind[["pacs", "digits-dg"]]
    single = domains.drop(index="stratified-batch") < 1
    assert verdicts["uniform_comparable_single"] == word(single.all(axis=None)) == "held"
    batch = domains.loc["stratified-batch"] > 0
    assert verdicts["weighted_ahead_on_domains"] == word(batch.all()) == "held"
    later = epoch.loc["stratified-batch"].loc[["pacs", "digits-dg"]]
    assert verdicts["uniform_slower_on_domains"] == word((later[UNIFORM] > later[WEIGHTED]).all())


def test_table_six(verdicts: dict[str, str]) -> None:
    normalized = item("TableVI").set_index(["procedure", "dataset"])["value"]
    simple = item("TableI").set_index(["dataset", "partition", "strategy"])["value"]
    for dataset, claim in (
        ("cifar10", "group_norm_beats_simple"),
        ("cifar100", "group_norm_beats_simple_on_cifar100"),
    ):
        better = normalized["stratified-single", dataset] > simple[dataset, "dir-0.5", UNIFORM]
        assert verdicts[claim] == word(better) == "held"


def test_chunks(verdicts: dict[str, str]) -> None:
    (saved,) = item("text-V.F", "tasks_saved")["value"]
    assert verdicts["chunks_save_a_third"] == word(30 < saved * 100 < 40) == "held"


def test_what_the_paper_does_not_print(verdicts: dict[str, str]) -> None:
    for name in (
        *("baselines_fall_single", "baselines_fall_batch", "sfl_rises", "sfl_reaches_stratify"),
        *("sfl_behind_on_classes", "stratify_stable_single", "stratify_stable_batch"),
        *("fedtan_below", "fedtan_slower", "fedtan_of_five_steps_slower"),
        "larger_chunks_save_little",
    ):
        assert verdicts[name] == "no value"


def test_every_claim_is_tested_here(verdicts: dict[str, str]) -> None:
    text = Path(__file__).read_text()
    assert [name for name in verdicts if f'"{name}"' not in text] == []
