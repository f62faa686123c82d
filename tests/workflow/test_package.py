"""The wheel, in an environment of its own and without the clone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

import cohort
from benchmarks.project import PARTS
from tests.conftest import ROOT
from tests.workflow.conftest import jobs
from tools.codemeta import as_text, descriptions

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SECONDS = 900
AUTHOR = ("-c", "user.name=me", "-c", "user.email=me@localhost")
COMMIT = """
import sys
from cohort.records.record import read
print(read(sys.argv[1]).header["provenance"]["commit"])
"""


def test_the_wheel_has_what_snakemake_reads():
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    packed = {*wheel["only-include"], *wheel["force-include"]}
    assert {*PARTS} - {"workflow"} <= packed
    assert {"workflow/cohort", "workflow/scripts", "resources/released/demo"} <= packed
    released = sum(file.stat().st_size for file in (ROOT / "resources/released/demo").iterdir())
    assert released < 300_000


def test_one_version():
    version = f"version: {cohort.__version__}\n"
    assert version in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{cohort.__version__}}}" in (ROOT / "README.md").read_text()


def test_descriptions_follow_the_project():
    """`python -m tools.codemeta` writes them."""
    for name, content in descriptions().items():
        assert (ROOT / name).read_text(encoding="utf-8") == as_text(content)


def test_images_are_made_as_the_documentation_installs():
    page = (ROOT / "docs/installing.md").read_text()
    (install,) = re.findall(r"^pip install (--constraint .*)$", page, re.MULTILINE)
    docker, apptainer = (
        (ROOT / "containers" / name).read_text().splitlines()
        for name in ("Dockerfile", "cohort.def")
    )
    command = f"cd /opt/cohort && pip install --no-cache-dir {install}"
    assert f"RUN {command}" in docker and f"    {command}" in apptainer
    instructions = [line.split()[0] for line in docker]
    assert instructions == ["#", "FROM", "COPY", "RUN", "WORKDIR", "CMD"]
    sections = [line for line in apptainer if line.startswith("%")]
    assert sections == ["%files", "%post", "%runscript"]
    for name in ("Dockerfile", "cohort.def"):
        assert f"containers/{name}" in page


def run(folder: Path, *command: str | Path, fails: bool = False) -> str:
    """What a command prints, without this project on its path."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    options = {"cwd": folder, "env": environment, "text": True, "timeout": SECONDS}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run([*map(str, command)], **options, **pipes)
    assert (done.returncode != 0) == fails, done.stdout
    return done.stdout


@pytest.mark.long
def test_an_installed_wheel_runs_the_demo(tmp_path: Path):
    """Requirements are borrowed from this environment, by a file that names its folder. What lies
    around is another repository, whose commits are not Cohort's."""
    run(tmp_path, "git", "init")
    run(tmp_path, "git", *AUTHOR, "commit", "--allow-empty", "--message", "another")
    pip = (sys.executable, "-m", "pip", "--quiet")
    run(tmp_path, *pip, "wheel", "--no-deps", "--wheel-dir", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").iterdir()
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin/python"
    site = run(tmp_path, python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    Path(site.strip(), "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    run(tmp_path, *pip, "--python", python, "install", "--no-deps", "--no-index", wheel)

    program, folder = environment / "bin/cohort", tmp_path / "project"
    assert "cd project && snakemake" in run(tmp_path, program, "init", "project")
    assert "exists already" in run(tmp_path, program, "init", "project", fails=True)
    where = "import cohort.core.shipped as shipped; print(shipped.ROOT)"
    assert run(folder, python, "-c", where).startswith(site.strip())
    run(folder, python, "-m", "snakemake", "--config", "scale=smoke")
    drawn = sorted(file.stem for file in (folder / "results/smoke/figures/demo").glob("*.pdf"))
    assert drawn[-3:] == ["fig1", "fig2", "fig3"]
    record = next((folder / "results/cells").rglob("seed*.h5"))
    assert run(folder, python, "-c", COMMIT, record) == "unknown\n"
    assert "36 runs restored" in run(folder, program, "restore")
    planned = jobs(run(folder, python, "-m", "snakemake", "--dry-run", "--quiet", "host"))
    assert planned["draw"] == len(drawn) and "train" not in planned
    assert '"A study"' in run(folder, program, "schema")
    checked = run(folder, program, "check", "ucb.faster_in_round_10")
    assert "37 = -23.37" in checked  # the paper's values
