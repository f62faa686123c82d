"""Judging a study's claims end to end: from metrics and a paper's values to the files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.results.claims.judge import judged_claims, write_judged
from cohort.results.claims.judged import (
    Difference,
    NamedPoint,
    Numbers,
    lay_out,
    read_judged,
)
from cohort.results.claims.values import paper_results
from cohort.results.files import write_metrics
from tests.results.claims.samples import FRAME, Cell, claim, final, frame, matrix

HEAD = "item,source,doubtful,partition,J,strategy,seed,other,metric,at,round,value,sd\n"
SINGLE = (
    HEAD
    + """\
Fig1,printed,,a,J4,fedavg,,,test_accuracy,last,,0.5,
Fig1,authors' log,,a,J4,fedavg,,,test_accuracy,last,,0.1,
Fig1,authors' log,the row is shifted,b,J4,fedavg,,,test_accuracy,last,,0.6,
Fig1,printed,,a,J4,fedavg,,,test_accuracy,,,0.9,
Fig3,printed,,a,J4,fedavg,,one,test_accuracy,last,,0.5,
Fig3,printed,,a,J4,fedavg,,two,test_accuracy,last,,0.6,
"""
)
CURVES = HEAD + "".join(
    f"Fig2/4,authors' log,,{partition},J4,fedavg,,,test_accuracy,{round},{round},{value},\n"
    for partition, values in {"a": {10: 0.2, 100: 0.55}, "b": {10: 0.1, 90: 0.3, 100: 0.25}}.items()
    for round, value in values.items()
)
CELLS = [
    final(0.5, partition="a"),
    final(0.6, partition="b"),
    final(0.7, "diverged", partition="c"),
]
ORDER = {
    "kind": "order",
    "along": "partition",
    "values": ["a", "b"],
    "way": "rises",
    "paper": "Fig1",
}
Write = Callable[..., dict[str, Any]]


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """The spec that the workflow passes to `write_judged`, with claims of one experiment."""
    monkeypatch.chdir(tmp_path)
    folder = Path("resources/paper_values")
    folder.mkdir(parents=True)
    (folder / "demo.csv").write_text(SINGLE)
    (folder / "demo_curves.csv").write_text(CURVES)

    def make(
        cells: list[Cell] = CELLS,
        *,
        scale: str = "full",
        generated: bool = False,
        share: float = 1.0,
        **claims: dict[str, Any],
    ) -> dict[str, Any]:
        write_metrics("main.parquet", frame(cells).assign(generated=generated, share=share), {})
        entries = {}
        for name, fields in claims.items():
            entry = FRAME | fields
            made = claim(
                entry["kind"],
                **{key: value for key, value in entry.items() if key not in ("kind", "rounds")},
            )
            entries[name] = (
                {"rounds": {"main": 1}}
                | entry
                | {
                    "comparisons": [
                        asdict(comparison)
                        for comparison in made.planned_comparisons(matrix(main=CELLS))
                    ]
                }
            )
        return {
            "study": "demo",
            "scale": scale,
            "titles": {},
            "metrics": {"main": "main.parquet"},
            "claims": entries,
        }

    return make


def paper(spec: dict[str, Any]) -> tuple[str, str]:
    (row,) = judged_claims(spec)
    return row.paper, row.paper_evidence


def test_the_papers_own_values_are_judged_by_the_same_rule(spec: Write) -> None:
    """Printed values take precedence over logs; values without an evaluation do not count."""
    (row,) = judged_claims(spec(one=ORDER))
    assert (row.measured, row.measured_evidence) == (
        "not enough runs",
        "a, b: 50.00 < 60.00; 1 seed in common, at least 3 are needed",
    )
    assert (row.paper, row.paper_evidence, row.doubtful) == (
        "held",
        "a, b: 50.00 < 60.00",
        "the row is shifted",
    )
    assert paper(spec(one=ORDER | {"way": "falls"})) == ("not held", "a, b: ✗ 50.00 < 60.00")


@pytest.mark.parametrize(
    ("at", "evidence"),
    [
        ("max", "a, b: ✗ 55.00 > 30.00"),
        ("last", "a, b: ✗ 55.00 > 25.00"),
        (95, "a, b: 20.00 < 30.00"),
        ("first 0.3", "a, b: ✗ 100 > 90"),
        ("first 0.5", "a, b: 100 < never"),
    ],
)
def test_curves_fill_in_for_single_values(spec: Write, at: object, evidence: str) -> None:
    assert paper(spec(one=ORDER | {"paper": "Fig2", "at": at}))[1] == evidence


def test_the_papers_round_does_not_scale(spec: Write) -> None:
    """At a tenth of the rounds our runs are compared in round 10, the paper's in round 100."""
    claim = ORDER | {"paper": "Fig2", "at": 100, "rounds": {"main": 0.1}}
    (row,) = judged_claims(spec(scale="reduced", share=0.1, one=claim))
    assert (row.at, row.measured_evidence, row.paper_evidence) == (
        10,
        "a, b: 50.00 < 60.00; 1 seed in common, at least 3 are needed",
        "a, b: ✗ 55.00 > 25.00",
    )


def test_missing_values_of_the_paper_are_named(spec: Write) -> None:
    """The paper has two of three values: an order is judged without the third, a pair is not."""
    three = ORDER | {"values": ["a", "c", "b"]}
    assert paper(spec(one=three)) == ("held", "a, b: 50.00 < 60.00; no value for c")
    best = FRAME | {"kind": "best", "along": "partition", "paper": "Fig1"}
    assert paper(spec(one=best | {"among": ["b"]})) == (
        "held",
        "60.00 (b); 50.00 (a); no value for c",
    )
    assert paper(spec(one=best | {"among": ["c"]})) == ("no value", "no value for c")
    two = {
        "kind": "compare",
        "given": {"partition": "a"},
        "below": [{"given": {"partition": ["b", "c"]}}],
        "paper": "Fig1",
    }
    assert paper(spec(one=two)) == ("no value", "50.00 (a) < 60.00 (b); no value for c")
    assert paper(spec(one=ORDER | {"paper": ""})) == ("no value", "")


def test_cells_that_are_not_planned_at_this_scale_are_not_enough(spec: Write) -> None:
    (row,) = judged_claims(spec(CELLS[:1], scale="smoke", one=ORDER))
    assert (row.measured, row.measured_evidence) == (
        "not judged at this scale",
        "lacks runs of b (1 of 2 settings are not planned)",
    )
    assert (row.n, row.planned, row.paper) == (1, 1, "held")
    nothing = spec(one=ORDER) | {"metrics": {}}
    assert [claim.measured_evidence for claim in judged_claims(nothing)] == [
        "lacks runs of a / b (2 of 2 settings are not planned)"
    ]


def test_generated_data_is_neither_judged_nor_compared(spec: Write) -> None:
    (row,) = judged_claims(spec(generated=True, one=ORDER))
    assert (row.measured, row.measured_evidence) == ("no verdict", "generated stand-in data")
    assert (row.paper, row.paper_evidence, row.doubtful) == (
        "no verdict",
        "generated stand-in data",
        "",
    )


def test_an_item_may_lie_in_either_file(spec: Write) -> None:
    spec()
    points = [
        replace(point, metric="test_accuracy", at="last")
        for point in matrix(main=CELLS).points("main", {"partition": "a"})
    ]
    ((value, curve),) = paper_results("demo", points, "Fig4, Fig1")
    assert value is not None and (value.value, len(curve)) == (0.5, 2)
    with pytest.raises(
        UserError,
        match=r"paper is 'Fig5', which neither .*demo.csv nor .*demo_curves.csv holds; did you mean",
    ):
        paper_results("demo", points, "Fig5")


def test_a_cheaper_scale_is_not_judged(spec: Write) -> None:
    (row,) = judged_claims(spec(scale="smoke", one=ORDER))
    assert row.measured == "not judged at this scale"
    assert lay_out([row], "smoke").notes[-1].startswith("Scale smoke is a cheaper version of the p")
    (row,) = judged_claims(spec(scale="smoke", one=ORDER) | {"reproduces": False})
    assert row.measured == "not enough runs"  # of a study that reproduces no paper


def test_every_comparison_is_written_with_its_numbers(spec: Write) -> None:
    """By hand: of a 50, 52 and 54, of b 60, 62 and 66: 10.67 apart, sd 1.155. One-sided, t of 0.95
    with 2 degrees of freedom is 2.920; two-sided, half a width is 4.3027 sd / sqrt(3)."""
    values = {"a": (0.5, 0.52, 0.54), "b": (0.6, 0.62, 0.66)}
    cells = [
        final(value, partition=partition, seed=str(seed))
        for partition, results in values.items()
        for seed, value in enumerate(results)
    ]
    write_judged(spec(cells, one=ORDER), ["claims.json"])
    (claim,) = read_judged("claims.json")
    (comparison,) = claim.comparisons
    ours, paper = comparison.sides["ours"], comparison.sides["paper"]
    assert (claim.measured, ours.verdict, paper.verdict) == (
        "leans towards held",
        "leans towards held",
        "held",
    )
    assert ours.difference == Difference("+10.67", "+8.72", "+12.61", "above 0 in 3 of 3 seeds")
    assert comparison.points[0] == NamedPoint(
        "a", "main", {"partition": "a", "J": "J4", "strategy": "fedavg"}
    )
    assert ours.numbers[0] == Numbers("52.00", "2.00", "47.03", "56.97", n=3, planned=3)
    assert ours.numbers[1].mean == "62.67"
    assert [numbers.mean for numbers in paper.numbers] == ["50.00", "60.00"]
