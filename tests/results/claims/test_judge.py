"""Judging a study's claims end to end: from metrics and a paper's values to the files."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cohort.results.claims import judged
from cohort.results.claims.judged import JudgedClaim, judged_claims
from cohort.results.series import write_metrics
from tests.results.claims.samples import FRAME, Cell, claim, final, frame, matrix

HEAD = "item,source,doubtful,partition,J,strategy,seed,other,metric,at,round,value,sd\n"
SINGLE = """\
Fig1,printed,,a,J4,fedavg,,,test_accuracy,last,,0.5,
Fig1,authors' log,,a,J4,fedavg,,,test_accuracy,last,,0.1,
Fig1,authors' log,the row is shifted,b,J4,fedavg,,,test_accuracy,last,,0.6,
Fig1,printed,,a,J4,fedavg,,,test_accuracy,,,0.9,
"""
LOG = "Fig2/4,authors' log,,{0},J4,fedavg,,,test_accuracy,{1},{1},{2},\n".format
CURVES = LOG("a", 10, 0.2) + LOG("a", 100, 0.55)
CURVES += LOG("b", 10, 0.1) + LOG("b", 90, 0.3) + LOG("b", 100, 0.25)
CELLS = [final(0.5, partition="a"), final(0.6, partition="b")]
CELLS += [final(0.7, "diverged", partition="c")]
ALONG = FRAME | {"along": "partition", "paper": "Fig1"}
ORDER = ALONG | {"kind": "order", "values": ["a", "b"], "way": "rises"}
BEST = ALONG | {"kind": "best", "among": ["b"]}
PAIRS = FRAME | {"kind": "compare", "paper": "Fig1", "given": {"partition": "a"}}
PAIRS |= {"below": [{"given": {"partition": ["b", "c"]}}]}
Judge = Callable[..., JudgedClaim]


def spec(cells: list[Cell], entry: dict[str, Any], *, share: float = 1.0) -> dict[str, Any]:
    """The spec that the workflow passes to `write_judged`, with one claim of one experiment."""
    write_metrics("main.parquet", frame(cells).assign(share=share), {})
    parsed = claim(**entry)
    comparisons = list(map(asdict, parsed.planned_comparisons(matrix(main=CELLS))))
    planned = entry | {"comparisons": comparisons}
    spec = {"study": "demo", "scale": "full", "titles": {}, "metrics": {"main": "main.parquet"}}
    return spec | {"claims": {"one": planned}}


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.chdir(tmp_path)
    folder = Path("resources/paper_values")
    folder.mkdir(parents=True)
    (folder / "demo.csv").write_text(HEAD + SINGLE)
    (folder / "demo_curves.csv").write_text(HEAD + CURVES)

    def judge_one(
        entry: dict[str, Any], cells: list[Cell] = CELLS, spec_options: Any = None, **changes: Any
    ) -> JudgedClaim:
        (result,) = judged_claims(spec(cells, entry, **spec_options or {}) | changes)
        return result

    return judge_one


@pytest.mark.parametrize(
    ("entry", "verdict", "evidence"),
    [
        # printed values come before logs; those without an evaluation do not count
        (ORDER, "held", "a, b: 50.00 < 60.00"),
        (ORDER | {"paper": ""}, "no value", ""),
        # curves fill in
        (ORDER | {"paper": "Fig2/4", "at": "max"}, "not held", "a, b: ✗ 55.00 > 30.00"),
        (ORDER | {"paper": "Fig2/4, Fig1", "at": 95}, "held", "a, b: 20.00 < 30.00"),
        (ORDER | {"paper": "Fig2/4", "at": "first 0.3"}, "not held", "a, b: ✗ 100 > 90"),
        (ORDER | {"paper": "Fig2/4", "at": "first 0.5"}, "held", "a, b: 100 < never"),
        # the paper has two of three values: an order is judged without the third, a pair is not
        (ORDER | {"values": ["a", "c", "b"]}, "held", "a, b: 50.00 < 60.00; no value for c"),
        (BEST, "held", "60.00 (b); 50.00 (a); no value for c"),
        (PAIRS, "no value", "50.00 (a) < 60.00 (b); no value for c"),
    ],
)
def test_the_papers_own_values(
    judge: Judge, entry: dict[str, Any], verdict: str, evidence: str
) -> None:
    result = judge(entry)
    assert (result.paper, result.paper_evidence) == (verdict, evidence)
    assert result.doubtful == ("the row is shifted" if entry["paper"] == "Fig1" else "")


FEW = "a, b: 50.00 < 60.00; 1 seed in common, at least 3 are needed"
SMOKE = "not judged at this scale"
ONE = "lacks runs of b (1 of 2 settings are not planned)"
NONE = "lacks runs of a / b (2 of 2 settings are not planned)"


@pytest.mark.parametrize(
    ("cells", "changes", "verdict", "evidence"),
    [
        (CELLS, {}, "not enough runs", FEW),
        (CELLS, {"scale": "smoke"}, SMOKE, FEW),
        (CELLS, {"scale": "smoke", "reproduces": False}, "not enough runs", FEW),
        (CELLS[:1], {"scale": "smoke"}, SMOKE, ONE),
        (CELLS, {"metrics": {}}, "not enough runs", NONE),
    ],
)
def test_runs_without_a_verdict(
    judge: Judge, cells: list[Cell], changes: dict[str, Any], verdict: str, evidence: str
) -> None:
    result = judge(ORDER, cells, **changes)
    assert (result.measured, result.measured_evidence) == (verdict, evidence)
    assert result.paper == "held"
    warning = "Scale smoke is a cheaper version of the paper's runs: what is measured here proves"
    notes = judged.lay_out([result], "smoke").notes
    assert any(note.startswith(warning) for note in notes) == (verdict.endswith("scale"))


def test_the_papers_round_does_not_scale(judge: Judge) -> None:
    """At a tenth of the rounds our runs are compared in their round 10, the paper's in round 100."""
    result = judge(ORDER | {"paper": "Fig2/4", "at": 100}, spec_options={"share": 0.1})
    assert (result.at, result.measured_evidence) == (100, FEW)
    assert result.paper_evidence == "a, b: ✗ 55.00 > 25.00"


def test_every_comparison_is_written_with_its_numbers(judge: Judge) -> None:
    """By hand: of a 50, 52 and 54, of b 60, 62 and 66: 10.67 apart, sd 1.155. One-sided, t of 0.95
    with 2 degrees of freedom is 2.920; two-sided, half a width is 4.3027 sd / sqrt(3)."""
    cells = [
        final(value, partition=partition, seed=str(seed))
        for partition, results in (("a", (0.5, 0.52, 0.54)), ("b", (0.6, 0.62, 0.66)))
        for seed, value in enumerate(results)
    ]
    judged.write_judged(spec(cells, ORDER), ["claims.json"])
    (result,) = judged.read_judged("claims.json")
    (comparison,) = result.comparisons
    ours, paper = comparison["sides"]["ours"], comparison["sides"]["paper"]
    assert result.measured == ours["verdict"] == "leans towards held"
    assert paper["verdict"] == "held"
    assert ours["difference"]["text"] == "+10.67, +8.72 to +12.61, above 0 in 3 of 3 seeds"
    labels = {"partition": "a", "J": "J4", "strategy": "fedavg"}
    assert comparison["points"][0] == {"name": "a", "experiment": "main", "labels": labels}
    assert list(ours["numbers"][0].values()) == ["52.00", "2.00", "47.03", "56.97", 3, 3]
    means = [numbers["mean"] for numbers in (ours["numbers"][1], *paper["numbers"])]
    assert means == ["62.67", "50.00", "60.00"]
