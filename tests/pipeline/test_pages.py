"""The spec of a study's page: what planning knows and the page shows."""

from __future__ import annotations

import pytest

from cohort.pipeline.specs import page_spec
from cohort.plan import Plan, load
from cohort.plan.cost import START_SECONDS, round_seconds


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load({"studies": ["demo", "fedentopt"], "scale": "reduced"})


def test_commands_name_scale_and_seeds(plan: Plan):
    spec = page_spec(plan, "demo")
    assert spec["command"] == "snakemake demo --config scale=reduced"
    seeded = page_spec(load({"studies": ["demo"], "seeds": 2}), "demo")
    assert seeded["command"] == "snakemake demo --config seeds=2"
    assert spec["tables"][0]["command"] == "snakemake demo_tab1 --config scale=reduced"
    assert (
        page_spec(load({"studies": ["demo"]}), "demo")["claims_command"] == "snakemake demo_claims"
    )


def test_every_cell_has_its_estimated_seconds(plan: Plan):
    seconds = page_spec(plan, "demo")["experiments"]["main"]["seconds"]
    cells = {
        row.digest: plan.cells[row.digest] for row in plan.study("demo").experiments["main"].rows
    }
    facts = plan.datasets["digits"]
    expected = {key: START_SECONDS + round_seconds(cell, facts) for key, cell in cells.items()}
    assert seconds == pytest.approx(expected, rel=5e-3)
