"""What the documentation tells a reader to do works as written."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cohort.data.augmentations import AUGMENTATIONS
from cohort.models import MODELS
from cohort.needs import NEEDS
from cohort.partition import SCHEMES
from cohort.records.record import read
from cohort.results.claims.kinds import CLAIMS
from cohort.results.figures import KINDS
from cohort.selection import SELECTORS
from cohort.selection import selector as abilities
from cohort.training.availability import AVAILABILITIES
from cohort.training.objectives import OBJECTIVES
from cohort.training.participation import PARTICIPATIONS
from cohort.training.procedures import PROCEDURES
from cohort.training.schedules import SCHEDULES
from cohort.training.servers import SERVERS
from tests.conftest import ROOT
from tests.workflow.commands import cohort
from tests.workflow.conftest import Project

TEST = re.compile(r"`(?:tests/)?(?!my/)((?:[a-z_]+/)+test_\w+\.py)(?:::(\w+))?`")


def page(name: str) -> str:
    """Text of the documentation page on adding this kind of thing."""
    return (ROOT / f"docs/adding-a-{name}.md").read_text()


def blocks(language: str, name: str = "strategy") -> list[str]:
    """The code blocks of that page."""
    return re.findall(rf"```{language}\n(.*?)```", page(name), re.DOTALL)


def write(project: Project, file: str, text: str) -> None:
    path = project.root / "my" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.slow
def test_adding_a_strategy_as_documented(fresh: Project):
    turns, power_of_choice, test = blocks("python")
    write(fresh, "selection/turns.py", turns)
    write(fresh, "selection/power_of_choice.py", power_of_choice)
    write(fresh, "strategies.yaml", "\n".join(blocks("yaml")))
    study = fresh.study()
    strategies = {"strategy": ["turns", "mine", "power"]}
    study["experiments"]["one"]["axes"] |= {"partition": ["iid"]} | strategies
    study["figures"]["fig1"]["metric"] = "loss_advantage"
    fresh.write(study)
    fresh.snakemake("tiny_fig1")
    assert (fresh.root / "results/full/figures/tiny/fig1.png").exists()
    power = next(path for path in fresh.records() if "/power/" in str(path))
    record = read(power)
    history = record.history
    assert min(value for _, value in history.metrics["loss_advantage"]) >= 0
    assert history.traffic["candidate_loss"].tolist() == [4 * 4 * 6, 0, 0]  # rounds, pool, bytes
    assert min(value for _, value in history.cost["selection_samples"]) > 0
    digest = hashlib.sha256(power_of_choice.encode()).hexdigest()
    assert record.header["provenance"]["my"] == {"my.selection.power_of_choice": digest}

    write(fresh, "tests/test_power_of_choice.py", test)
    environment = os.environ | {"PYTHONPATH": f"{fresh.root / 'workflow'}:{fresh.root}"}
    command = [sys.executable, "-m", "pytest", "-q", "my/tests"]
    subprocess.run(command, env=environment, cwd=fresh.root, check=True)

    fresh.replace("my/strategies.yaml", "stride: 3", "stride: 0")
    assert "turns.selector.stride: 0 is less than the minimum of 1" in fresh.snakemake(fails=True)


def test_adding_a_study_as_documented(fresh: Project):
    """On the tiny study in place of the demo, whose figures and tables it has."""
    study, strategy = blocks("yaml", "study")
    study = study.replace("demo.main", "tiny.one").replace("    rows: J\n", "")
    write(fresh, "studies/beside.yaml", study)
    write(fresh, "strategies.yaml", strategy)
    assert fresh.planned("beside")["train"] == 4 + 2
    assert fresh.planned("beside_tab1")["tabulate"] == 1
    assert fresh.planned("tiny_tab1", "beside_loss")["train"] == 4 + 2


@pytest.mark.long
def test_own_arrays_and_pictures_to_a_figure_as_documented(fresh: Project):
    """The page's commands as they stand, in a shell; only the study is shortened."""
    (script,), (study,) = blocks("python", "dataset"), blocks("yaml", "dataset")
    (fresh.root / "write.py").write_text(script)
    short = study.replace("rounds: 30", "rounds: 2").replace("[0, 1, 2]", "[0]")
    assert short != study
    write(fresh, "studies/own_data.yaml", short)
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    environment |= {"PYTHONPATH": str(fresh.root / "workflow")}
    commands = "\n".join(["set -e", "python write.py", *blocks("sh", "dataset")])
    options = {"cwd": fresh.root, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(["bash", "-c", commands], **options)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ("of 10 classes", "each 1 x 8 x 8", "each 3 x 16 x 16"):
        assert line in done.stdout
    assert {path.parts[-6] for path in fresh.records()} == {"arrays", "pictures"}
    (figure,) = re.findall(r"`(results/full/figures/own_data/\S+)`", page("dataset"))
    assert (fresh.root / figure).stat().st_size > 10_000


def test_the_study_in_the_config_readme(fresh: Project):
    """Its first example alone, then with the keys of the others in place of its own."""
    text = (ROOT / "config/README.md").read_text()
    study, *further = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", text, re.DOTALL))
    fresh.write(study)
    assert fresh.planned()["train"] == 2 * 3
    for example in further:
        study |= example
    strategy = {"mine-prox": study.pop("mine-prox")}
    fresh.write(study)
    assert fresh.planned()["train"] == (2 * 2 - 1) * 2 * 3 + 2 * 3
    assert fresh.planned("tiny_claims")["judge"] == 1
    reduced = fresh.planned("tiny", "--config", "scale=reduced")
    assert reduced["train"] == (2 * 2 - 1) * 2  # of one seed, without dir-0.1

    write(fresh, "strategies.yaml", yaml.safe_dump(strategy))
    study["experiments"]["main"]["axes"]["strategy"] = ["mine-prox"]
    fresh.write({key: value for key, value in study.items() if key != "overrides"})
    assert fresh.planned()["train"] == (2 * 2 - 1) * 2 * 3 + 2 * 3


def test_pages_name_every_component():
    config = names_on("config/README.md")
    catalogs = (SELECTORS, OBJECTIVES, SERVERS, PROCEDURES, PARTICIPATIONS, SCHEDULES, MODELS)
    for catalog in (*catalogs, AVAILABILITIES, AUGMENTATIONS, SCHEMES, KINDS, CLAIMS):
        for name in catalog:
            suffix = name[name.rindex("-") :] if "-" in name else name  # as in `resnet9`, `-gn`
            assert {name, suffix} & config, f"config/README.md lacks {name}"
    adding = names_on("docs/adding-a-strategy.md")
    assert {*NEEDS} <= adding
    assert {name for name in abilities.__dict__ if name.endswith("ing")} - {"Mapping"} <= adding


def names_on(page: str) -> set[str]:
    """What stands in backticks, and the beginnings of names with parameters, such as `dir-0.1`."""
    text = (ROOT / page).read_text()
    words = set(re.findall(r"[\w.-]+", " ".join(re.findall(r"`([^`\n]+)`", text))))
    return words | {word[: dash.start()] for word in words for dash in re.finditer("-", word)}


def test_the_page_on_claims_shows_what_a_check_says(fresh: Project):
    """The output of `cohort check`, which needs no runs."""
    text = (ROOT / "docs/claims.md").read_text()
    ((command, output),) = re.findall(
        r"```console\n\$ cohort (check .*?)\n(.*?)```", text, re.DOTALL
    )
    assert cohort(fresh, *command.split()).stdout == output


def test_the_page_on_data_has_the_declared_sizes():
    declared = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())
    rows = (ROOT / "docs/data.md").read_text().splitlines()
    for name, info in declared.items():
        size = f"{info['train']:,} + {info['test']:,}"
        base = re.sub(r"-(\d+|unit|coarse)$", "", name)
        named = tuple(f"| `{label}`" for label in (name, base))
        assert any(row.startswith(named) and f"| {size} |" in row for row in rows), name


def test_tests_that_a_page_names_exist():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("*/*.md")]:
        if page.name != "CHANGELOG.md":
            for file, name in TEST.findall(page.read_text()):
                text = (ROOT / "tests" / file).read_text()
                assert not name or f"def {name}(" in text, f"{page.name}: {file}::{name}"


def test_links_lead_to_files():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *ROOT.glob("resources/*/*.md")]
    for document in pages:
        for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_links_lead_to_headings():
    """Those within a page, and those from one page to a heading of another."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *ROOT.glob("*/*/*.md")]
    anchors = {page: anchors_of(page.read_text()) for page in pages}
    for page in pages:
        for file, anchor in re.findall(r"\]\(([^)#:]*\.md)?#([^)]*)\)", page.read_text()):
            target = (page.parent / file).resolve() if file else page
            assert anchor in anchors[target], f"{page.name}: {file}#{anchor}"


def anchors_of(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}


def test_the_picture_of_the_rules_has_them_all():
    text = "".join(map(Path.read_text, (ROOT / "rules").glob("*.smk")))
    rules = re.findall(r"^rule (\w+):", text, re.M)
    shown = re.findall(r"<text[^>]*>(\w+)</text>", (ROOT / "docs/images/rulegraph.svg").read_text())
    assert sorted(shown) == sorted({*rules, "all"} - {"unknown"})  # which only reports a mistake


def test_the_selector_of_the_readme_chooses_the_largest_clients():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (our own text)
    view = abilities.View(clients=4, cohort=2, sizes=np.array([5, 9, 7, 9]))
    cohort = names["Largest"]().select({}, np.array([0, 1, 2, 3]), view, np.random.default_rng(0))
    assert cohort.tolist() == [1, 3]
