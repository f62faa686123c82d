"""What a page is told, unknown files and names, and previews that are out of date."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from cohort.core.errors import UserError
from cohort.core.paths import Layout
from cohort.pipeline.driver import remove_previews
from cohort.pipeline.stages import Stages, page_spec, targets
from cohort.plan import cost, load

CARD = {"title": "T", "source": {}, "scale": "full", "phrase": "", "spent": 0.0, "to_go": 0.0}
CARD |= {"verdicts": [], "date": "", "commits": [], "generated": False, "command": ""}
CARD["runs"] = dict.fromkeys(("planned", "done", "diverged", "unfinished", "missing"), 1)


def test_previews_of_what_is_finished_go_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    layout = Layout("full", partial=True)
    files: dict[str, list[Path]] = {}
    for study in ("demo", "aml"):
        paths = [*layout.page(study), layout.metrics(study, "main"), *layout.table(study, "tab1")]
        files[study] = list(map(Path, [*paths, *layout.figure(study, "fig1")]))
        for file in files[study]:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(CARD | {"name": study}))
    remove_previews("full", ["demo"])
    assert not any(file.exists() for file in files["demo"])
    assert all(file.exists() for file in files["aml"])
    index = Path(layout.index()).read_text()
    assert "aml" in index and "demo" not in index
    remove_previews("full", ["aml"])
    assert not Path(layout.folder).exists()


def test_a_study_with_the_name_of_another_target(project: Path, monkeypatch: pytest.MonkeyPatch):
    Path("config/studies/demo_fig1.yaml").write_text("title: taken")
    with pytest.raises(UserError, match=r"demo_fig1 is that of .*'fig1' of .*/demo.yaml and of "):
        list(targets(load({"studies": "demo"})))


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
