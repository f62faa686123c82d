"""Stratify's claims on its printed numbers: each verdict is derived again with plain pandas."""

from __future__ import annotations

from itertools import pairwise, product

import pandas as pd
import pytest

from tests.results.claims.samples import ROOT, of_paper, untested, word

VALUES = pd.read_csv(ROOT / "resources/paper_values/stratify.csv")
UNIFORM, WEIGHTED = "stratify-uniform", "stratify-weighted"
BASELINES = ["fedavg", "fedprox", "scaffold"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return of_paper("stratify")


@pytest.fixture(scope="module")
def verdicts(table: pd.DataFrame) -> dict[str, str]:
    return dict(table["paper"])


def item(name: str, metric: str = "test_accuracy") -> pd.DataFrame:
    return VALUES[(VALUES["item"] == name) & (VALUES["metric"] == metric)]


def by_strategy(name: str) -> pd.DataFrame:
    """A column for each strategy, in percent."""
    result = item(name).pivot(index=["dataset", "partition"], columns="strategy", values="value")
    return result * 100


TABLES = pytest.mark.parametrize(
    ("name", "mode"), [("TableI", "single"), ("TableII", "batch")], ids=["single", "batch"]
)


@TABLES
def test_near_iid(name: str, mode: str, verdicts: dict[str, str]) -> None:
    groups = by_strategy(name).groupby("dataset")
    apart = groups.max() - groups.min()
    near = {"single": "single_near_iid", "batch": "batch_near_iid"}[mode]
    uniform = apart[UNIFORM] if mode == "single" else apart[UNIFORM].drop(index="pacs")
    assert verdicts[near] == word((uniform <= 2).all()) == "held"
    only = {"single": "single_only_near_iid", "batch": "batch_only_near_iid"}[mode]
    close = apart.drop(columns=[UNIFORM, WEIGHTED], errors="ignore").stack() <= 2
    exceptions = [("digits-dg", "fedprox"), ("digits-dg", "scaffold")] if mode == "single" else []
    assert list(close[close].index) == exceptions
    assert verdicts[only] == word(not exceptions)


def test_near_iid_on_pacs(verdicts: dict[str, str]) -> None:
    """The paper prints no IID case with weighted choice."""
    weighted = by_strategy("TableII")[WEIGHTED]["pacs"].dropna()
    assert sorted(weighted.index) == ["dirdomains-0.5", "domains-1", "domains-2"]
    near = weighted.max() - weighted.min() <= 2
    assert verdicts["batch_near_iid_on_pacs"] == word(near) == "held"


def best_epochs(name: str) -> pd.DataFrame:
    """The printed epochs of the non-IID rows, with the earlier one of Stratify."""
    epochs = item(name, "best_round").pivot(
        index=["dataset", "partition"], columns="strategy", values="value"
    )
    ours = epochs[[column for column in epochs if column in (UNIFORM, WEIGHTED)]].min(axis=1)
    return epochs.drop(columns=[UNIFORM, WEIGHTED], errors="ignore").assign(ours=ours)


@TABLES
def test_fewer_rounds(name: str, mode: str, verdicts: dict[str, str]) -> None:
    """13 of the 52 printed rows contradict it, four of them IID."""
    epochs = best_epochs(name)
    late = epochs.drop(columns="ours").min(axis=1) <= epochs["ours"]
    skewed = late.drop(index="iid", level="partition")
    assert (late.sum(), skewed.sum(), len(skewed)) == {"single": (12, 8, 20), "batch": (1, 1, 20)}[
        mode
    ]
    claim = {"single": "single_fewer_rounds", "batch": "batch_fewer_rounds"}[mode]
    assert verdicts[claim] == word(not skewed.any()) == "not held"


@TABLES
def test_first_at_its_level(name: str, mode: str, verdicts: dict[str, str]) -> None:
    """A baseline whose best is below Stratify's never gets there; any other by its best epoch."""
    epochs, accuracy = best_epochs(name), by_strategy(name)
    best = accuracy[[column for column in accuracy if column in (UNIFORM, WEIGHTED)]].max(axis=1)
    others = epochs.columns.drop("ours")
    reached = accuracy[others].ge(best, axis=0) & epochs[others].le(epochs["ours"], axis=0)
    sooner = reached.drop(index="iid", level="partition").stack()
    exceptions = list(sooner[sooner].index.droplevel("partition").unique())
    names = {
        "single": ["single_first_at_its_level"],
        "batch": ["batch_first_at_its_level", "batch_first_at_its_level_on_pacs"],
    }[mode]
    fedprox_too = [("digits-dg", strategy) for strategy in ("fedprox", "scaffold", "fedavg")]
    assert exceptions == (fedprox_too if mode == "single" else [])
    assert [verdicts[name] for name in names] == [word(not exceptions)] * len(names)


@TABLES
def test_ahead(name: str, mode: str, verdicts: dict[str, str]) -> None:
    table = by_strategy(name)
    ours = [column for column in table if column in (UNIFORM, WEIGHTED)]
    ahead = table[ours].max(axis=1) > table.drop(columns=ours).max(axis=1)
    dirichlet = {"single": "single_ahead_on_dirichlet", "batch": "batch_ahead_on_dirichlet"}
    on_dirichlet = ahead.groupby("partition").all()[["dir-0.5", "dirdomains-0.5"]].all()
    assert verdicts[dirichlet[mode]] == word(on_dirichlet)
    assert bool(on_dirichlet) == (mode == "batch")  # Digits-DG, where FedProx is ahead


CHAINS = {  # two classes, ten, a hundred and two hundred, on the least severe #C
    "single": [["covtype"], ["mnist", "cifar10"], ["cifar100"]],
    "batch": [["covtype"], ["cifar10"], ["cifar100"], ["tiny-imagenet"]],
}
LEAST_SEVERE = {
    "covtype": "classes-1",
    **dict.fromkeys(["mnist", "cifar10"], "classes-5"),
    "cifar100": "covering-50",
    "tiny-imagenet": "covering-100",
}


def steps_back(gaps: pd.Series, chain: list[list[str]]) -> list[tuple[str, str]]:
    """The neighbors in the chain between which the gap does not grow."""
    pairs = [pair for less, more in pairwise(chain) for pair in product(less, more)]
    return [(less, more) for less, more in pairs if gaps[more] <= gaps[less]]


@TABLES
def test_gap_grows_with_the_number_of_classes(name: str, mode: str, table: pd.DataFrame) -> None:
    printed, chain = by_strategy(name), CHAINS[mode]
    leads = printed.rsub(printed[UNIFORM], axis=0)
    on_dirichlet = leads.xs("dir-0.5", level="partition")
    on_classes = leads.loc[[(data, LEAST_SEVERE[data]) for step in chain for data in step]]
    back = {
        partition: {baseline: steps_back(gaps[baseline], chain) for baseline in BASELINES}
        for partition, gaps in (
            ("on_dirichlet", on_dirichlet),
            ("on_classes", on_classes.droplevel("partition")),
        )
    }
    from_two = [("covtype", data) for data in chain[1]]
    last = ("cifar100", "tiny-imagenet")
    if mode == "single":  # from ten classes on it grows everywhere
        expected = dict.fromkeys(BASELINES, from_two)
        assert back == {"on_dirichlet": expected, "on_classes": expected}
    else:
        assert back == {
            "on_dirichlet": {"fedavg": from_two, "fedprox": [last], "scaffold": [*from_two, last]},
            "on_classes": {"fedavg": from_two, "fedprox": from_two, "scaffold": [*from_two, last]},
        }
    claim = {"single": "single_gap_grows", "batch": "batch_gap_grows"}[mode]
    word, evidence = table.loc[claim, ["paper", "paper_evidence"]]
    fewer = sum(len(steps) for gaps in back.values() for steps in gaps.values())
    assert (word, evidence.count("✗")) == ("not held", fewer)


def test_sfl(verdicts: dict[str, str]) -> None:
    table = by_strategy("TableI").loc[["mnist", "cifar10", "cifar100", "covtype"]]
    gaps = (table[UNIFORM] - table["sfl"]).drop(index="iid", level="partition")
    dirichlet = gaps.xs("dir-0.5", level="partition")
    near = dirichlet < 5
    assert list(near[~near].index) == ["covtype"]
    assert verdicts["sfl_near_on_dirichlet"] == word(near.all()) == "not held"
    classes = gaps.drop(index="dir-0.5", level="partition")
    wider = classes > classes.index.get_level_values("dataset").map(dirichlet)
    assert list(wider[~wider].index) == [("covtype", "classes-1")]
    assert verdicts["sfl_gap_wider_on_classes"] == word(wider.all()) == "not held"


def test_scaffold_and_fedprox(verdicts: dict[str, str]) -> None:
    table = by_strategy("TableII").drop(index=["pacs", "digits-dg"])
    table = table.drop(index="iid", level="partition")
    ahead = table["scaffold"] > table["fedprox"]
    assert list(ahead[~ahead].index) == [("cifar10", "classes-1"), ("covtype", "dir-0.5")]
    assert verdicts["scaffold_ahead_of_fedprox_batch"] == word(ahead.all()) == "not held"


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
    result = item("TableV", metric)
    mode = result["procedure"].str.replace("-weighted1", "")
    return result.assign(mode=mode).pivot(
        index=["mode", "dataset"], columns="strategy", values="value"
    )


def test_table_five(verdicts: dict[str, str]) -> None:
    accuracy, epoch = choices("test_accuracy"), choices("best_round")
    behind = ((accuracy[WEIGHTED] - accuracy[UNIFORM]) * 100).unstack("dataset")
    assert verdicts["uniform_as_good"] == word((behind["cifar10"] < 1).all()) == "held"
    domains = behind[["pacs", "digits-dg"]]
    single = domains.drop(index="stratified-batch") < 1
    assert verdicts["uniform_comparable_single"] == word(single.all(axis=None)) == "held"
    batch = domains.loc["stratified-batch"] < 1
    assert verdicts["uniform_close_batch"] == word(batch.all()) == "held"
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
        *("batch_ahead_at_constant_rate", "fedtan_slower_at_constant_rate"),
        *("larger_chunks_save_little", "single_reaches_98_before_sfl"),
    ):
        assert verdicts[name] == "no value"


def test_every_claim_is_tested_here(verdicts: dict[str, str]) -> None:
    assert untested(verdicts, __file__) == []
