"""Verdicts and their evidence, each worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.results.claims.samples import Cell, claim, final, single, verdict

NAN = float("nan")


def line(*values: float, **labels: object) -> list[Cell]:
    """Cells of partition a, b, c, ... with these final values."""
    return [
        final(value, partition=letter, **labels)
        for letter, value in zip("abcdef", values, strict=False)
    ]


FALLS = {"along": "partition", "values": ["a", "b", "c"], "way": "falls"}


@pytest.mark.parametrize(
    ("values", "way", "word", "evidence"),
    [
        ((0.5, 0.4, 0.3), "falls", "held", "a, b, c: 50.00 > 40.00 > 30.00"),
        ((0.5, 0.4, 0.4), "falls", "tie", "a, b, c: = 50.00 > 40.00 = 40.00"),
        ((0.5, 0.6, 0.3), "falls", "not held", "a, b, c: ✗ 50.00 < 60.00 > 30.00"),
        ((0.3, 0.4, 0.5), "rises", "held", "a, b, c: 30.00 < 40.00 < 50.00"),
        ((0.5, 0.5, 0.6), "rises", "tie", "a, b, c: = 50.00 = 50.00 < 60.00"),
    ],
)
def test_order(
    tmp_path: Path, values: tuple[float, ...], way: str, word: str, evidence: str
) -> None:
    result = single(claim("order", **(FALLS | {"way": way})), tmp_path, main=line(*values))
    assert (result.verdict, result.evidence) == (word, evidence)


def test_an_order_holds_for_each_combination_of_the_other_labels(tmp_path: Path) -> None:
    """J and rounds move together, so that J alone names them."""
    cells = line(0.5, 0.4, 0.3, J="J4", rounds=200) + line(0.5, 0.3, 0.4, J="J8", rounds=100)
    result = single(claim("order", **FALLS), tmp_path, main=cells)
    assert result.verdict == "not held"
    assert (
        result.evidence
        == "a, b, c: 1 of 2 hold: J4: 50.00 > 40.00 > 30.00; ✗ J8: 50.00 > 30.00 < 40.00"
    )
    assert (
        single(claim("order", **FALLS, given={"J": "J4"}), tmp_path, main=cells).verdict == "held"
    )


def test_labels_paired_with_along_do_not_split_a_comparison(tmp_path: Path) -> None:
    cells = [
        final(0.5, J="J4", rounds=200),
        final(0.4, J="J8", rounds=100),
        final(0.3, J="J16", rounds=50),
    ]
    result = single(
        claim("order", along="J", values=["J4", "J8", "J16"], way="falls"), tmp_path, main=cells
    )
    assert (result.verdict, result.evidence) == ("held", "J4, J8, J16: 50.00 > 40.00 > 30.00")


def test_seeds_are_averaged(tmp_path: Path) -> None:
    cells = [*line(0.5, 0.1), *line(0.5, 0.8, seed=1), *line(0.2, 0.6, seed=2)]  # a: 0.4, b: 0.5
    result = single(
        claim("order", along="partition", values=["a", "b"], way="rises"), tmp_path, main=cells
    )
    assert (result.verdict, result.evidence) == ("held", "a, b: 40.00 < 50.00")
    assert [(value.n, value.planned) for value in result.values] == [(3, 3), (3, 3)]


@pytest.mark.parametrize("status", ["missing", "unfinished"])
def test_two_of_three_seeds_are_not_enough(tmp_path: Path, status: str) -> None:
    """Also where what is there is clear: an unfinished run is not counted, however good it is."""
    cells = [*line(0.5, 0.1), *line(0.5, 0.1, seed=1), final(0.5, partition="a", seed=2)]
    cells += [final(NAN if status == "missing" else 0.9, status, partition="b", seed=2)]
    result = verdict(
        claim("order", along="partition", values=["a", "b"], way="falls"), tmp_path, main=cells
    )
    assert (result.verdict, result.evidence) == ("not enough runs", "lacks runs of b")
    assert [(value.n, value.planned) for value in result.values] == [(3, 3), (2, 3)]


def test_seeds_that_a_scale_leaves_out_are_missing(tmp_path: Path) -> None:
    cells = line(0.5, 0.1)
    full = [cell for seed in range(5) for cell in line(0.5, 0.1, seed=seed)]
    made = claim("order", along="partition", values=["a", "b"], way="falls")
    result = verdict(made, tmp_path, full=full, main=cells)
    assert (result.verdict, result.evidence) == ("not enough runs", "lacks runs of a / b")
    assert [(value.n, value.planned) for value in result.values] == [(1, 5), (1, 5)]
    assert verdict(made, tmp_path, full=full, main=full).verdict == "held"


def test_evidence_shows_finished_comparisons(tmp_path: Path) -> None:
    cells = line(0.5, 0.4, 0.3, J="J4") + line(0.5, NAN, NAN, J="J8")
    cells = [
        (labels, "missing" if not values else status, values) for labels, status, values in cells
    ]
    result = verdict(claim("order", **FALLS), tmp_path, main=cells)
    assert (result.verdict, result.evidence) == (
        "not enough runs",
        "a, b, c: J4: 50.00 > 40.00 > 30.00; lacks runs of b, J8 / c, J8",
    )


@pytest.mark.parametrize("seen", [0.607, NAN])
def test_a_strategy_that_always_diverges_is_not_ahead(tmp_path: Path, seen: float) -> None:
    """What it had before, 60.7 % to 50 %, is worth no more than a guess among a hundred classes."""
    cells = [
        cell
        for seed in range(5)
        for cell in (
            final(0.5, partition="a", seed=seed),
            final(seen, "diverged", partition="b", seed=seed),
        )
    ]
    for way, word in (("rises", "not held"), ("falls", "held")):
        made = claim("order", along="partition", values=["a", "b"], way=way)
        result = verdict(made, tmp_path, main=cells)
        assert result.verdict == word
        assert [(value.n, value.diverged) for value in result.values] == [(5, 0), (5, 5)]
        assert "50.00 > 1.00" in result.evidence
        assert "5 of 5 runs diverged (b)" in result.evidence


def test_runs_at_chance_level_are_counted(tmp_path: Path) -> None:
    cells = [final(0.5 if seed else 0.01, seed=seed) for seed in range(5)]
    result = verdict(claim("bound", below=70), tmp_path, main=cells)
    assert result.verdict == "held" and "1 of 5 runs at chance level (main)" in result.evidence


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ((0, 0, 0, 0, 0), "held"),
        ((0, 0, 0, 0, 1), "not held"),  # the mean, 0.2, is below 1
        ((0, 0, 0), "leans towards held"),
        ((0, 0, 1), "not held"),
    ],
)
def test_each_run_counts_where_a_claim_is_about_all(
    tmp_path: Path, counts: tuple[int, ...], word: str
) -> None:
    made = claim("bound", below=1, every="runs", metric="never_selected")
    cells = [final(count, seed=seed) for seed, count in enumerate(counts)]
    result = verdict(made, tmp_path, main=cells)
    assert result.verdict == word
    assert f"in {counts.count(0)} of {len(counts)} runs" in result.evidence


@pytest.mark.parametrize(("within", "word"), [(1.5, "held"), (1.499, "not held"), (0, "not held")])
def test_spread_is_in_the_unit_that_is_shown(tmp_path: Path, within: float, word: str) -> None:
    assert (0.4661 - 0.4511) * 100 > 1.5  # as floating-point numbers go
    result = single(
        claim("spread", along="partition", within=within), tmp_path, main=line(0.46, 0.4661, 0.4511)
    )
    assert result.verdict == word
    assert result.evidence.removeprefix("✗ ") == "1.50 apart, 45.11 (c) to 46.61 (b)"


@pytest.mark.parametrize(("beyond", "word"), [(1.499, "held"), (1.5, "tie"), (1.501, "not held")])
def test_values_that_lie_far_apart(tmp_path: Path, beyond: float, word: str) -> None:
    """Two of them do; the third is close to the first."""
    result = single(
        claim("spread", along="partition", beyond=beyond), tmp_path, main=line(0.46, 0.4661, 0.4511)
    )
    assert result.verdict == word
    assert result.evidence.removeprefix("✗ ").removeprefix("= ") == (
        f"1.50 apart, 45.11 (c) to 46.61 (b), asked for more than {beyond:g}"
    )


def test_spread_of_a_loss(tmp_path: Path) -> None:
    result = single(
        claim("spread", along="partition", within=0.1, metric="test_loss"),
        tmp_path,
        main=line(2.3, 2.375, 2.4),
    )
    assert (result.verdict, result.evidence) == ("held", "0.100 apart, 2.300 (a) to 2.400 (c)")


@pytest.mark.parametrize(
    ("metric", "values", "among", "word"),
    [
        ("test_accuracy", (0.3, 0.5, 0.4), ["b"], "held"),
        ("test_accuracy", (0.3, 0.5, 0.4), ["a", "b"], "held"),
        ("test_accuracy", (0.3, 0.5, 0.4), ["a", "c"], "not held"),
        ("test_accuracy", (0.3, 0.5, 0.5), ["b"], "tie"),
        ("test_accuracy", (0.3, 0.5, 0.5), ["b", "c"], "held"),  # a tie among themselves
        ("test_loss", (0.3, 0.5, 0.4), ["a"], "held"),
        ("test_loss", (0.3, 0.5, 0.4), ["b"], "not held"),
    ],
)
def test_best(
    tmp_path: Path, metric: str, values: tuple[float, ...], among: list[str], word: str
) -> None:
    assert (
        single(
            claim("best", along="partition", among=among, metric=metric),
            tmp_path,
            main=line(*values),
        ).verdict
        == word
    )


def test_the_best_comes_first(tmp_path: Path) -> None:
    best = claim("best", along="selector.beta", among=[0.3])
    cells = [
        final(0.3, **{"selector.beta": 0}),
        final(0.5, **{"selector.beta": 0.3}),
        final(0.4, **{"selector.beta": 0.6}),
    ]
    assert (
        single(best, tmp_path, main=cells).evidence
        == "50.00 (beta 0.3); 40.00 (beta 0.6); 30.00 (beta 0)"
    )


OTHER = [final(0.4, partition="x"), final(0.6, partition="y")]


@pytest.mark.parametrize(
    ("fields", "word", "evidence"),
    [
        (
            {"above": [{"experiment": "other", "given": {"partition": "x"}}]},
            "held",
            "50.00 (a) > 40.00 (x)",
        ),
        (
            {"below": [{"experiment": "other", "given": {"partition": "x"}}]},
            "not held",
            "✗ 50.00 (a) > 40.00 (x)",
        ),
        (
            {
                "above": [{"experiment": "other", "given": {"partition": "x"}}],
                "below": [{"experiment": "other", "given": {"partition": "y"}}],
            },
            "held",
            "2 of 2 hold: 50.00 (a) > 40.00 (x); 50.00 (a) < 60.00 (y)",
        ),
        (
            {"above": [{"experiment": "other", "given": {"partition": ["x", "y"]}}]},
            "not held",
            "1 of 2 hold: 50.00 (a) > 40.00 (x); ✗ 50.00 (a) < 60.00 (y)",
        ),
        (
            {"above": [{"given": {"partition": "b"}}]},
            "tie",
            "= 50.00 (a) = 50.00 (b)",
        ),  # of its own experiment
        (
            {"above": [{"experiment": "other", "given": {"partition": "x"}}], "margin": 9.9},
            "held",
            "50.00 (a) > 40.00 (x), asked for a difference above 9.9",
        ),
        (
            {"above": [{"experiment": "other", "given": {"partition": "x"}}], "margin": 10},
            "tie",
            "= 50.00 (a) > 40.00 (x), asked for a difference above 10",
        ),
    ],
)
def test_compare(tmp_path: Path, fields: dict[str, object], word: str, evidence: str) -> None:
    made = claim("compare", given={"partition": "a"}, **fields)
    result = single(made, tmp_path, main=line(0.5, 0.5), other=OTHER)
    assert (result.verdict, result.evidence) == (word, evidence)


def test_a_quantity_may_be_a_whole_experiment(tmp_path: Path) -> None:
    made = claim("compare", above=[{"experiment": "other", "given": {"strategy": "fedavg"}}])
    result = single(
        made, tmp_path, main=[final(0.5)], other=[final(0.4), final(0.4, strategy="loss")]
    )
    assert (result.verdict, result.evidence) == ("held", "50.00 (main) > 40.00 (FedAvg)")


def test_quantities_may_differ_in_metric_and_evaluation(tmp_path: Path) -> None:
    cells: list[Cell] = [({"partition": "iid", "seed": 0}, "done", {1: 4.5, 5: 2.5, 9: 4.0})]
    one = {"given": {"partition": "iid"}, "metric": "test_loss"}
    rises = claim("compare", above=[{"given": {"partition": "iid"}, "at": "min"}], margin=1, **one)
    result = single(rises, tmp_path, main=cells)
    assert (result.verdict, result.evidence) == (
        "held",
        "4.000 (iid) > 2.500 (iid, min), asked for a difference above 1",
    )
    trained = claim(
        "compare", above=[{"given": {"partition": "iid"}, "metric": "train_loss"}], **one
    )
    result = single(trained, tmp_path, main=cells)  # which this run did not measure
    assert (result.evidence, [(value.n, value.planned) for value in result.values]) == (
        "no value for iid",
        [(0, 1)],
    )


@pytest.mark.parametrize(("margin", "word"), [(-2, "held"), (-1, "tie"), (-0.999, "not held")])
def test_a_negative_margin_allows_the_other_side(tmp_path: Path, margin: float, word: str) -> None:
    """51 is 1 point above 50: it passes as below with a margin of -2, but not with one of -1."""
    made = claim(
        "compare", given={"partition": "a"}, below=[{"given": {"partition": "b"}}], margin=margin
    )
    assert single(made, tmp_path, main=line(0.51, 0.5)).verdict == word


def gap_cells(few: tuple[float, float], iid: tuple[float, float]) -> list[Cell]:
    return [
        final(value, partition=name, J=j)
        for name, pair in (("few", few), ("iid", iid))
        for j, value in zip(("J4", "J16"), pair, strict=True)
    ]


@pytest.mark.parametrize(
    ("few", "iid", "word", "evidence"),
    [
        (
            (0.3, 0.1),
            (0.5, 0.4),
            "held",
            "30.00 - 10.00 = 20.00 (few) > 50.00 - 40.00 = 10.00 (iid)",
        ),
        (
            (0.3, 0.2),
            (0.5, 0.4),
            "tie",
            "= 30.00 - 20.00 = 10.00 (few) = 50.00 - 40.00 = 10.00 (iid)",
        ),
        (
            (0.3, 0.35),
            (0.5, 0.4),
            "not held",
            "✗ 30.00 - 35.00 = -5.00 (few) < 50.00 - 40.00 = 10.00 (iid)",
        ),
    ],
)
def test_gap(
    tmp_path: Path, few: tuple[float, float], iid: tuple[float, float], word: str, evidence: str
) -> None:
    made = claim(
        "gap",
        along="J",
        between=["J4", "J16"],
        larger={"partition": "few"},
        than={"partition": "iid"},
    )
    result = single(made, tmp_path, main=gap_cells(few, iid))
    assert (result.verdict, result.evidence) == (word, f"J4 minus J16: {evidence}")


def test_a_gap_compares_settings_that_differ_in_nothing_else(tmp_path: Path) -> None:
    """With the strategy `a` it holds, with `b` it does not; `a` is never held against `b`."""
    cells = [
        (labels | {"strategy": "a"}, status, values)
        for labels, status, values in gap_cells((0.3, 0.1), (0.5, 0.4))
    ]
    cells += [
        (labels | {"strategy": "b"}, status, values)
        for labels, status, values in gap_cells((0.3, 0.25), (0.5, 0.4))
    ]
    made = claim(
        "gap",
        along="J",
        between=["J4", "J16"],
        larger={"partition": "few"},
        than={"partition": "iid"},
    )
    result = single(made, tmp_path, main=cells)
    assert result.verdict == "not held"
    assert result.evidence == (
        "J4 minus J16: 1 of 2 hold: a: 30.00 - 10.00 = 20.00 (few) > 50.00 - 40.00 = 10.00 (iid); "
        "✗ b: 30.00 - 25.00 = 5.00 (few) < 50.00 - 40.00 = 10.00 (iid)"
    )


def curves(**accuracies: dict[int, float]) -> list[Cell]:
    return [
        ({"partition": name, "strategy": "fedavg", "seed": 0}, "done", values)
        for name, values in accuracies.items()
    ]


def test_rounds_to_a_threshold_are_compared_as_they_are(tmp_path: Path) -> None:
    cells = curves(
        quick={5: 0.1, 10: 0.2, 20: 0.15}, slow={5: 0.1, 10: 0.19, 20: 0.3}, never={20: 0.1}
    )
    rising = claim(
        "order", along="partition", values=["quick", "slow", "never"], way="rises", at="first 0.2"
    )
    result = single(rising, tmp_path, main=cells)
    assert (result.verdict, result.evidence) == ("held", "quick, slow, never: 10 < 20 < never")
    fewer = claim("best", along="partition", among=["quick"], at="first 0.2")
    assert single(fewer, tmp_path, main=cells).evidence == "10 (quick); 20 (slow); never (never)"
    assert single(fewer, tmp_path, main=cells).verdict == "held"
    below = claim(
        "compare",
        given={"partition": "quick"},
        below=[{"given": {"partition": "never"}}],
        at="first 0.2",
        margin=100,
    )
    assert single(below, tmp_path, main=cells).verdict == "held"


def test_two_runs_that_never_reach_the_threshold_are_tied(tmp_path: Path) -> None:
    cells = curves(a={20: 0.1}, b={20: 0.1})
    rising = claim("order", along="partition", values=["a", "b"], way="rises", at="first 0.2")
    assert (
        single(rising, tmp_path, main=cells).verdict,
        single(rising, tmp_path, main=cells).evidence,
    ) == (
        "tie",
        "a, b: = never = never",
    )
    for made in (
        claim("spread", along="partition", within=5, at="first 0.2"),
        claim(
            "compare",
            given={"partition": "a"},
            above=[{"given": {"partition": "b"}}],
            at="first 0.2",
            margin=1,
        ),
    ):
        assert single(made, tmp_path, main=cells).verdict == "not held"
