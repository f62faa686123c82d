"""What a user keeps secret reaches no log, no record, no plan file, and no terminal but his own."""

from pathlib import Path

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.plan import load
from tests.workflow.conftest import tiny_project

SECRET = "wJalrXUtnFEMI-K7MDENG-bPxRfiCY"
URL = f"https://reader:{SECRET}@mirror.example.org/sets"


@pytest.mark.slow
def test_a_secret_of_the_environment_stays_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also of a job that fails, whose log has the traceback."""
    fresh = tiny_project(tmp_path / "project")
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "COHORT_PASSWORD"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("http_proxy", f"http://user:{SECRET}@127.0.0.1:9")
    read = "    cell = read_cell(plan)\n"
    fresh.replace("workflow/cohort/training/job/train.py", read, read + "    1 / 0\n")
    output = fresh.snakemake("--config", "only=strategy=fedentopt,partition=iid", fails=True)
    (log,) = (fresh.root / "results/logs/train").rglob("*.log")
    assert "Traceback" in log.read_text() and "ZeroDivisionError" in log.read_text()
    files = [path for path in fresh.root.rglob("*") if path.is_file()]
    assert SECRET not in output
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_a_path_is_no_url_and_its_password_is_not_repeated(project: Path):
    with pytest.raises(UserError) as caught:
        load({"data_mirror": URL})
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
