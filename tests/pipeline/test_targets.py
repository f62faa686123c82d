"""What a page is told, and unknown files."""

from types import SimpleNamespace

import pytest

from cohort.pipeline.stages import Stages, page_spec
from cohort.plan import cost, load


@pytest.mark.parametrize("rule", ["train_inputs", "sources"])
def test_a_file_that_no_listed_study_has(rule: str):
    with pytest.raises(SystemExit, match=r"error: no listed study has .* k0123456789ab at scale"):
        getattr(Stages(load()), rule)(SimpleNamespace(digest="k0123456789ab"))


def test_commands_name_scale_and_seeds_and_every_cell_has_its_estimated_seconds():
    plan = load({"studies": ["demo"], "scale": "reduced"})
    spec = page_spec(plan, "demo")
    assert spec["command"] == "snakemake demo --config scale=reduced"
    assert spec["tables"][0]["command"] == "snakemake demo_tab1 --config scale=reduced"
    seeded = page_spec(load({"studies": ["demo"], "seeds": 2}), "demo")
    assert seeded["claims_command"] == "snakemake demo_claims --config seeds=2"
    info = plan.datasets["digits"]
    expected = {
        digest: cost.START_SECONDS + cost.round_seconds(plan.cells[digest], info)
        for digest in plan.digests("demo")
    }
    assert spec["experiments"]["main"]["seconds"] == pytest.approx(expected, rel=5e-3)
