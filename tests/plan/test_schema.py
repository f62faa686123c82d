"""`cohort schema`: one JSON Schema of a study, by which an editor checks it without Cohort."""

import copy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cohort.plan.loading import unexpanded_plan
from cohort.plan.yaml_files import read_yaml
from tests.conftest import ROOT

STUDIES = sorted((ROOT / "config/studies").glob("*.yaml"))
LINE = "# yaml-language-server: $schema=../../study.schema.json"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return unexpanded_plan().validator.self_contained("study")


def mistakes(schema: dict[str, Any], study: Any) -> list[str]:
    """The paths of the mistakes that a program finds which knows nothing but the schema."""
    return [error.json_path for error in Draft202012Validator(schema).iter_errors(study)]


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_every_study_fits(schema: dict[str, Any], file: Path):
    assert mistakes(schema, read_yaml(file)) == []
    assert file.read_text().splitlines()[0] == LINE


@pytest.mark.parametrize(
    ("keys", "value", "path"),
    [
        (["settings", "learning"], 1, "$.settings"),
        (["figures", "fig1", "kind"], "curve", "fig1.kind"),
        (["figures", "fig1", "smooth"], 3, "$.figures.fig1"),
        (["scales"], {"half": {}}, "$.scales"),
    ],
)
def test_what_an_editor_marks(schema: dict[str, Any], keys: list[str], value: Any, path: str):
    study = copy.deepcopy(read_yaml(ROOT / "config/studies/demo.yaml"))
    entry = study
    for key in keys[:-1]:
        entry = entry[key]
    entry[keys[-1]] = value
    (mistake,) = mistakes(schema, study)
    assert mistake.endswith(path)
