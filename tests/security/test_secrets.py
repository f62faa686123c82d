"""What a user keeps secret reaches no log, no record, no plan file, and no terminal but his own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.plan import load
from tests.workflow.conftest import tiny_project

SECRET = "wJalrXUtnFEMI-K7MDENG-bPxRfiCY"
URL = f"https://reader:{SECRET}@mirror.example.org/sets"


def holders(folder: Path) -> list[Path]:
    """The files in which the secret stands."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize(
    "fails", [False, True], ids=["a job that ends well", "a job that fails with a traceback"]
)
def test_a_secret_of_the_environment_stays_there(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fresh = tiny_project(tmp_path / "project")
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "http_proxy", "COHORT_PASSWORD"):
        monkeypatch.setenv(
            name, f"http://user:{SECRET}@127.0.0.1:9" if name == "http_proxy" else SECRET
        )
    if fails:
        fresh.replace(
            "workflow/cohort/training/job/train.py",
            "    cell = read_cell(plan)\n",
            "    cell = read_cell(plan)\n    1 / 0\n",
        )
    output = fresh.snakemake("--config", "only=strategy=fedentopt,partition=iid", fails=fails)
    if fails:
        (log,) = (fresh.root / "results/logs/train").rglob("*.log")
        assert "Traceback" in log.read_text() and "ZeroDivisionError" in log.read_text()
    assert SECRET not in output and holders(fresh.root) == []


def test_a_path_is_no_url_and_its_password_is_not_repeated(project: Path):
    for options in ({"data_mirror": URL}, {"data_paths": {"pacs": URL}}):
        with pytest.raises(UserError) as caught:
            load(options)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("key", ["source", "mirrors"])
def test_a_url_with_a_password_is_refused_and_not_repeated(key: str, project: Path):
    file = Path("config/datasets.yaml")
    content = yaml.safe_load(file.read_text())
    raw = content["mnist"]["files"]["train-images-idx3-ubyte"]
    raw[key] = URL if key == "source" else [URL]
    file.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match=r"'https://\*\*\*@mirror.example.org/sets'") as caught:
        load({})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://a:b@c/d is wrong", "https://***@c/d is wrong"),
        ("'http://token@c', and ftp://x:y@z", "'http://***@c', and ftp://***@z"),
        ("https://a:p@ss@c/d", "https://***@c/d"),
        ("https://c/d@2 and a@b", "https://c/d@2 and a@b"),
    ],
)
def test_no_sentence_shows_a_password(text: str, shown: str):
    assert str(UserError(text)) == shown
