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
    output = finished.snakemake("tiny")
    assert jobs(output) == {"judge": 1, "report": 1, "tiny": 1}
    assert "tiny: results/full/report/tiny.html (" in output
    assert {row["measured"] for row in rows(finished).values()} == {"not enough runs"}  # of seeds
    assert [(row["n"], row["planned"]) for row in rows(finished).values()] == [
        ("4", "4"),
        ("3", "3"),
    ]
    page = (finished.root / "results/full/report/tiny.html").read_text()
    assert "Clients of two classes &lt;give&gt; lower accuracy." in page
    assert "../tables/tiny/claims.tex" in page
    assert finished.planned() == {}

    study["claims"]["few_classes"]["says"] = "Clients of two classes learn less."
    finished.write(study)
    assert jobs(finished.snakemake()) == {"judge": 1, "report": 1, "index": 1}
    assert rows(finished)["few_classes"]["says"] == "Clients of two classes learn less."

    next(path for path in finished.records() if "/classes-2/" in str(path)).unlink()
    again = {"train": 1, "collect": 1, "judge": 1, "tiny_claims": 1}
    assert finished.planned("tiny_claims") == again
    done = cohort(finished, "draw")
    assert done.returncode == 0, done.stderr
    few_classes = rows(finished, "partial")["few_classes"]
    assert (few_classes["measured"], few_classes["n"]) == ("not enough runs", "3")
    lacks = ("lacks runs of classes-2, FedAvg (random)", "lacks runs of classes-2, FedEntOpt")
    assert few_classes["measured_evidence"].endswith(lacks)
