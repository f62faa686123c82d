"""AML's claims on the authors' own logs: each verdict is derived again with plain pandas."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.results.claims.samples import ROOT, of_paper, untested, word

VALUES, CURVES = (
    pd.read_csv(ROOT / f"resources/paper_values/{name}.csv", low_memory=False)
    for name in ("aml", "aml_curves")
)
NC = ["iid", "sampled-50-51", "sampled-10-11", "sampled-5-6", "sampled-1-2"]


@pytest.fixture(scope="module")
def verdicts() -> dict[str, str]:
    return dict(of_paper("aml")["paper"])


def single(item: str, at: str, metric: str = "test_accuracy") -> pd.DataFrame:
    """The values of the authors' logs at an evaluation; printed ones are the same, rounded."""
    return VALUES[
        (VALUES["item"] == item)
        & (VALUES["metric"] == metric)
        & (VALUES["at"] == at)
        & (VALUES["source"] == "authors' log")
    ]


def nc(at: str = "last", metric: str = "test_accuracy") -> pd.DataFrame:
    return (
        single("Fig3/5/6/7", at, metric)
        .pivot(index="partition", columns="J", values="value")
        .loc[NC]
    )


def test_schedules(verdicts: dict[str, str]) -> None:
    for item, best, name, close, within in (
        ("Fig1", "onecycle", "onecycle_best", "schedulers_close", 0.06),
        (
            "Fig2",
            "plateau-patience3",
            "plateau_best_shakespeare",
            "schedulers_close_shakespeare",
            0.02,
        ),
    ):
        last, highest = (single(item, at).set_index("schedule")["value"] for at in ("last", "max"))
        assert verdicts[name] == word(last.idxmax() == best) == "held"
        assert verdicts[close] == word(highest.max() - highest.min() <= within) == "held"


def test_participation(verdicts: dict[str, str]) -> None:
    ends = single("Fig4", "last-10")["value"]
    assert verdicts["gamma_little_effect"] == word(ends.between(0.435, 0.455).all())
    assert verdicts["gamma_ten_best"] == word(
        single("Fig4", "max").set_index("selector.gamma")["value"].idxmax() == 10
    )


def test_few_classes(verdicts: dict[str, str]) -> None:
    accuracy, loss = nc(), nc(metric="test_loss")
    falls = accuracy.iloc[1:].diff().iloc[1:] < 0
    assert verdicts["fewer_classes_lower_accuracy"] == word(falls.all(axis=None)) == "not held"
    assert list(falls.columns[falls.all()]) == ["J8e"]
    rises = loss.iloc[1:].diff().iloc[1:] > 0
    assert verdicts["fewer_classes_higher_loss"] == word(rises.all(axis=None)) == "not held"
    assert not rises.loc["sampled-10-11"].any()
    apart = (accuracy.loc["iid"] - accuracy.loc["sampled-50-51"]).abs()
    assert verdicts["iid_like_fifty"] == word((apart <= 0.03).all()) == "held"
    worst = accuracy.loc[NC[3:]].max() < accuracy.loc[NC[:3]].min()
    assert list(worst.index[~worst]) == ["J16e"]
    assert verdicts["fewest_classes_worst"] == word(worst.all()) == "not held"
    rise = loss.loc["iid", "J4e"] - nc("min", "test_loss").loc["iid", "J4e"]
    assert verdicts["loss_rises_again"] == word(rise > 1)
    log = CURVES[(CURVES["item"] == "Fig3/5/6/7") & (CURVES["partition"] == "iid")]
    log = log[log["J"] == "J4e"].pivot(index="round", columns="metric", values="value")
    assert log["test_loss"].idxmin() == 370
    later = nc("last-10").loc["iid", "J4e"] > log.loc[400, "test_accuracy"]
    assert verdicts["accuracy_still_rises"] == word(later) == "held"
    drop = accuracy["J4e"] - accuracy["J16e"]
    assert verdicts["more_work_hurts_few_classes"] == word(
        min(drop["sampled-1-2"], drop["sampled-5-6"]) > drop["iid"]
    )
    share = drop / accuracy["J4e"]
    assert drop["sampled-1-2"] < drop["iid"] and share["sampled-1-2"] > share["iid"]


def rounds_to(accuracy: float) -> pd.DataFrame:
    runs = CURVES[(CURVES["item"] == "Fig3/5/6/7") & (CURVES["metric"] == "test_accuracy")]
    reached = runs[runs["value"] >= accuracy].groupby(["partition", "J"])["round"]
    return reached.min().unstack().loc[NC]


def test_rounds_to_an_accuracy(verdicts: dict[str, str]) -> None:
    slower = rounds_to(0.2).loc[NC[1:]].diff().iloc[1:] > 0
    assert verdicts["fewer_classes_slower"] == word(slower.all(axis=None)) == "held"
    iid = rounds_to(0.25).loc["iid"]
    helps = iid[["J8e", "J16e"]].max() < iid["J4e"]
    assert verdicts["more_work_helps_iid"] == word(helps) == "held"


def test_shakespeare(verdicts: dict[str, str]) -> None:
    ends = (
        CURVES[CURVES["item"] == "Fig8"]
        .sort_values("round")
        .groupby(["metric", "J", "partition"])["value"]
        .last()
        .unstack()
    )
    for name, metric, within in (
        ("shakespeare_insensitive", "test_accuracy", 0.01),
        ("shakespeare_loss_insensitive", "test_loss", 0.1),
    ):
        apart = ends.loc[metric].max(axis=1) - ends.loc[metric].min(axis=1)
        assert verdicts[name] == word((apart <= within).all()) == "held"


def test_probing(verdicts: dict[str, str]) -> None:
    for name in (
        "probing_faster",
        "probing_faster_early",
        "top_faster_early",
        "top_ends_lower",
        "diversity_faster_than_uniform",
        "diversity_moderate_stabler",
    ):
        assert verdicts[name] == "no value"  # the authors ran no such baseline


def test_diversity(verdicts: dict[str, str]) -> None:
    last, loss = (
        single("Fig13", "last", metric).set_index("selector.alpha")["value"]
        for metric in ("test_accuracy", "test_loss")
    )
    assert verdicts["diversity_little_effect"] == word(last.max() - last.min() <= 0.05)
    assert verdicts["diversity_distance_alone_worst"] == word(last.idxmin() == 0)
    assert verdicts["diversity_high_no_gain"] == word(last[[0.8, 1]].max() < last[0.5] + 0.01)
    assert loss[0.2] < loss[1] < loss[0.5] < loss[0.8]
    higher = loss[[0.8, 1]].min() > loss[[0.2, 0.5]].max()
    assert verdicts["diversity_moderate_loss"] == word(higher) == "not held"
    curves = CURVES[(CURVES["metric"] == "test_accuracy") & (CURVES["round"] == 1000)]
    score = curves[curves["item"] == "Fig13"].set_index("selector.alpha")["value"][[0.2, 0.5]]
    fixed = curves[(curves["item"] == "Fig3/5/6/7") & (curves["J"] == "J4e")].set_index(
        "partition"
    )["value"]
    assert verdicts["diversity_above_few_classes"] == word(
        score.min() > fixed[["sampled-1-2", "sampled-5-6"]].max()
    )
    assert verdicts["diversity_between"] == word(
        fixed["sampled-10-11"] < score.min() and score.max() < fixed["sampled-50-51"]
    )


def test_what_the_authors_did_not_measure(verdicts: dict[str, str]) -> None:
    for name in (
        "top_starves",
        "top_uneven",
        "top_long_gaps",
        "fairness_evens_out",
        "shakespeare_majority",
    ):
        assert verdicts[name] == "no value"


def test_every_claim_is_tested_here(verdicts: dict[str, str]) -> None:
    assert untested(verdicts, __file__) == []
