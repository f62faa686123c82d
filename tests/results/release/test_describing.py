"""What describes a release: the crate names every run as it was, both descriptions fit the files, and
the validators of these formats accept them (`make test-release` installs those)."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from pyarrow import parquet

from cohort.commands.cli import main
from cohort.core.files import sha256
from cohort.core.paths import RELEASED
from cohort.records.record import Record
from cohort.results.release.describing import CRATE, CROISSANT, describe
from cohort.results.release.folder import write_release
from cohort.settings import DEFAULTS
from tests.conftest import ROOT
from tests.results.release.runs import random_record
from tests.results.release.test_released import FOLDERS

RECORDS = [random_record(seed) for seed in range(12)]
SCHEMA_ORG = (
    "Collection ComputerLanguage CreateAction CreativeWork Dataset PropertyValue "
    "SoftwareApplication SoftwareSourceCode about additionalType citation datePublished "
    "defaultValue description encodingFormat endTime exampleOfWork hasPart identifier instrument "
    "license mainEntity mentions name object programmingLanguage propertyID result "
    "softwareRequirements softwareVersion startTime value version"
)
CONTEXTS = {  # the terms in use, as the contexts of RO-Crate 1.1 and of Workflow Run Crate map them
    "https://w3id.org/ro/crate/1.1/context": {
        **{term: f"http://schema.org/{term}" for term in SCHEMA_ORG.split()},
        "File": "http://schema.org/MediaObject",
        "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
        "FormalParameter": "https://bioschemas.org/FormalParameter",
        "input": "https://bioschemas.org/ComputationalWorkflow#input",
        "conformsTo": "http://purl.org/dc/terms/conformsTo",
    },
    "https://w3id.org/ro/terms/workflow-run/context": {
        "resourceUsage": "https://w3id.org/ro/terms/workflow-run#resourceUsage"
    },
}


def released(folder: Path, records: list[Record] = RECORDS) -> Path:
    write_release(folder, "study", records)
    describe(folder, records, {})
    return folder


def entities(folder: Path) -> dict[str, Any]:
    graph = json.loads((folder / CRATE).read_text())["@graph"]
    by_id = {entity["@id"]: entity for entity in graph}
    assert len(by_id) == len(graph)
    return by_id


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [key for part in value for key in references(part)]
    return [value["@id"]] if isinstance(value, dict) else []


def test_the_order_of_runs_changes_no_byte(tmp_path: Path):
    shuffled = random.Random(0).sample(RECORDS, len(RECORDS))
    folders = released(tmp_path / "a"), released(tmp_path / "b", shuffled)
    for name in (CRATE, CROISSANT):
        first, second = ((folder / name).read_bytes() for folder in folders)
        assert first == second


def test_a_further_run_adds_lines(tmp_path: Path):
    """It changes only those with the number of runs and the last date."""
    before, after = (
        {line.rstrip("]},\n") for line in (released(tmp_path / str(count), runs) / CRATE).open()}
        for count, runs in ((7, RECORDS[:7]), (8, RECORDS[:8]))
    )
    lost = [line.split('"')[3] for line in before - after]
    assert sorted(lost) == ["#workflow-run", "./"]
    assert '{"@id": "#k000000000007"' in after - before


def test_a_resumed_run_ends_after_its_last_session(tmp_path: Path):
    run = random_record(2)
    run.header["provenance"]["sessions"] = [
        {"started": "2026-03-01T10:00:00+00:00", "from_round": 0},
        {"started": "2026-03-01T23:59:50+00:00", "from_round": 2},
    ]
    run.history.cost["seconds"] = [(1, 100.0), (2, 100.0), (3, 15.4)]
    folder = released(tmp_path / "study", [run])
    action = entities(folder)[f"#{run.header['digest']}"]
    assert action["startTime"] == "2026-03-01T10:00:00+00:00"
    assert action["endTime"] == "2026-03-02T00:00:05+00:00"
    assert entities(folder)["./"]["datePublished"] == "2026-03-02"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_released_descriptions_fit_their_tables(folder: Path):
    files = json.loads((folder / CROISSANT).read_text())["distribution"]
    for file in files:
        path = folder / file["contentUrl"]
        assert (file["sha256"], file["contentSize"]) == (sha256(path), f"{path.stat().st_size} B")
    assert {file["@id"] for file in files} == {file.name for file in folder.glob("*.parquet")}
    by_id, runs = entities(folder), parquet.read_table(folder / "runs.parquet")
    is_json = {field.name for field in runs.schema if field.metadata}
    actions = [key for key, entity in by_id.items() if entity["@type"] == "CreateAction"]
    assert actions == ["#workflow-run", *(f"#{row['digest']}" for row in runs.to_pylist())]
    assert {*actions} < {*references(by_id["./"]["mentions"])} <= by_id.keys()
    for row in runs.to_pylist():
        action = by_id[f"#{row['digest']}"]
        inputs = [by_id[key] for key in references(action["object"])]
        values = {
            key: entity["defaultValue"]
            for key in DEFAULTS
            if "defaultValue" in (entity := by_id.get(f"#{key}", {}))  # a newer setting
        }
        for entity in inputs:
            name = entity.get("exampleOfWork", {"@id": "#trainer"})["@id"][1:]
            values[name] = entity.get("value", row["dataset"])
        for name in {*DEFAULTS, "trainer"} & row.keys():
            value = json.loads(row[name]) if name in is_json and row[name] else row[name]
            assert value is None or values[name] == str(value), name
        software = by_id[action["instrument"]["@id"]]
        assert software["softwareVersion"] == f"{row['version_cohort']}+{row['commit']}"
        needed = {
            by_id[key]["name"]: by_id[key]["softwareVersion"]
            for key in references(software["softwareRequirements"])
        }
        assert needed == {
            key[8:]: row[key] for key in row if key.startswith("version_") and row[key]
        }
        devices = [by_id[key]["value"] for key in references(action["resourceUsage"])]
        assert devices == row["devices"]


@pytest.fixture
def fresh(project: Path) -> Path:
    """The demo's release, exported anew."""
    main(["export", "demo"])
    return project / RELEASED / "demo"


def test_the_validator_of_crates(fresh: Path, monkeypatch: pytest.MonkeyPatch):
    services = pytest.importorskip("rocrate_validator.services")

    def send(adapter: object, request: requests.PreparedRequest, **options: object) -> object:
        response = requests.Response()
        response.status_code, response.url, response.request = 200, str(request.url), request
        response.headers["Content-Type"] = "application/ld+json"
        response._content = json.dumps({"@context": CONTEXTS[str(request.url)]}).encode()
        return response

    monkeypatch.setattr("requests.adapters.HTTPAdapter.send", send)
    settings = services.ValidationSettings(
        rocrate_uri=fresh, profile_identifier="workflow-run-crate", no_cache=True
    )
    result = services.validate(settings)
    assert result.passed(), [issue.message for issue in result.get_issues()]
    (fresh / "Snakefile").unlink()
    assert not services.validate(settings).passed()


def test_the_validator_of_croissants(fresh: Path):
    dataset = pytest.importorskip("mlcroissant").Dataset(fresh / CROISSANT)
    assert not dataset.metadata.issues.errors
    for file in fresh.glob("*.parquet"):
        (*_, last) = dataset.records(file.stem)
        row = parquet.read_table(file).to_pylist()[-1]
        assert {key: text(last[f"{file.stem}/{key}"]) for key in row} == row


def text(value: Any) -> Any:
    """A value as Parquet has it: mlcroissant gives texts as bytes."""
    if isinstance(value, list | tuple):
        return [*map(text, value)]
    return value.decode() if isinstance(value, bytes) else value


def test_a_printed_number_leads_to_its_runs():
    """docs/adding-a-strategy.md prints FedAvg's accuracy with two classes a client and J4, the mean
    of three runs; docs/records.md finds them in the crate."""
    pytest.importorskip("rocrate")
    (code,) = re.findall(
        r"```python\n(from rocrate.*?)```", (ROOT / "docs/records.md").read_text(), re.S
    )
    output = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    runs = [line.split(" ", 2) for line in output.splitlines()]
    curves = parquet.read_table(ROOT / RELEASED / "demo/curves.parquet").to_pylist()
    last = {row["digest"]: row["value"] for row in curves if row["metric"] == "test_accuracy"}
    mean = sum(last[digest] for digest, *_ in runs) / len(runs)
    row = rf"FedAvg \(random\)  –      {100 * mean:.2f} ± [0-9.]+ \({len(runs)} of 3\)"
    assert re.search(row, (ROOT / "docs/adding-a-strategy.md").read_text())
    assert {tuple(rest) for _, *rest in runs} == {("0.1.0+994ab5b47ebf", "AMD EPYC")}
