"""Claims in the workflow: what has them judged again, and what `cohort draw` says of them half way."""

from __future__ import annotations

import csv

import pytest

from tests.workflow.commands import cohort
from tests.workflow.conftest import Project, jobs

CLAIMS = {
    "few_classes": {
        "kind": "order",
        "says": "Clients of two classes <give> lower accuracy.",
        "where": "Section 1",
        "experiment": "one",
        "metric": "test_accuracy",
        "along": "partition",
        "values": ["iid", "classes-2"],
        "way": "falls",
    },
    "more_steps": {
        "kind": "compare",
        "says": "Three steps are better than two.",
        "where": "Table I",
        "experiment": "two",
        "metric": "test_accuracy",
        "above": [{"experiment": "one", "given": {"partition": "iid", "strategy": "fedavg"}}],
    },
}


def rows(project: Project, folder: str = "") -> dict[str, dict[str, str]]:
    file = project.root / "results/full" / folder / "tables/tiny/claims.csv"
    with open(file, encoding="utf-8", newline="") as lines:
        return {row["claim"]: row for row in csv.DictReader(lines)}


@pytest.mark.slow
def test_claims_are_judged_with_the_rest_and_again_only_for_a_reason(finished: Project):
    study = finished.study() | {"claims": CLAIMS}
    finished.write(study)
    assert finished.planned("tiny_claims") == {"judge": 1, "tiny_claims": 1}
    output = finished.snakemake(
        "tiny"
    )  # a study's own target makes its page and the index, and says where
    assert jobs(output) == {"judge": 1, "report": 1, "tiny": 1}
    assert "tiny: results/full/report/tiny.html" in output
    assert "Tiny" in (finished.root / "results/full/report/index.html").read_text()
    table_rows = rows(finished)
    assert {row["measured"] for row in table_rows.values()} == {"not enough runs"}  # of seeds
    assert [(row["n"], row["planned"], row["paper"]) for row in table_rows.values()] == [
        ("4", "4", "no value"),
        ("3", "3", "no value"),
    ]
    page = (finished.root / "results/full/report/tiny.html").read_text()
    assert (
        "Clients of two classes &lt;give&gt; lower accuracy." in page
        and "../tables/tiny/claims.tex" in page
    )
    assert finished.planned() == {}

    study["claims"]["few_classes"]["says"] = (
        "Clients of two classes learn less."  # another sentence
    )
    finished.write(study)
    assert jobs(finished.snakemake()) == {"judge": 1, "report": 1, "index": 1}
    assert rows(finished)["few_classes"]["says"] == "Clients of two classes learn less."
    assert "learn less" in (finished.root / "results/full/report/tiny.html").read_text()

    next(
        path for path in finished.records() if "/classes-2/" in str(path)
    ).unlink()  # a record that they need
    assert finished.planned("tiny_claims") == {
        "train": 1,
        "collect": 1,
        "judge": 1,
        "tiny_claims": 1,
    }
    done = cohort(finished, "draw")
    assert done.returncode == 0, done.stderr
    partial = rows(finished, "partial")
    assert (partial["few_classes"]["measured"], partial["few_classes"]["n"]) == (
        "not enough runs",
        "3",
    )
    assert partial["few_classes"]["measured_evidence"].endswith(
        ("lacks runs of classes-2, FedAvg (random)", "lacks runs of classes-2, FedEntOpt")
    )
    assert partial["more_steps"]["measured"] == "not enough runs"
    assert (
        "lacks runs of classes-2"
        in (finished.root / "results/full/partial/report/tiny.html").read_text()
    )
    assert (
        "fig1, tab1, claims were drawn, but 1 of their records are missing"
        in cohort(finished, "status").stdout
    )

    (finished.root / "results/full/tables/tiny/claims.md").unlink()
    assert finished.planned("tiny_tab1") == {
        "train": 1,
        "collect": 1,
        "tabulate": 1,
        "tiny_tab1": 1,
    }
