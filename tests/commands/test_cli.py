"""The command line before it does anything: help, unknown commands, and what it imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cohort
from cohort.commands.cli import COMMANDS, main
from tests.conftest import ROOT

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
HEAVY = ("torch", "pandas", "matplotlib", "scipy", "sklearn")


def imported(*arguments: str) -> set[str]:
    """The modules that a command imports, whatever its exit status."""
    code = (
        "import sys\nfrom cohort.commands.cli import main\n"
        f"try: main({list(arguments)})\nexcept SystemExit: pass\nprint(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("command", ["--help", "run --help", "status --cost"])
def test_help_and_status_import_no_heavy_package(command: str, project: Path):
    """Nor does help plan anything."""
    planning = {"cohort.plan", "cohort.pipeline"} if "help" in command else set()
    assert not imported(*command.split()) & {*HEAVY, *planning}


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_lists_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for name, line in COMMANDS.items():
        assert f"{name} {line}" in text


@pytest.mark.parametrize("arguments", [["--config"], ["stats"], ["--", "show"]])
def test_a_wrong_command_line(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and "usage: cohort" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("data add own own.npz --test nan", "argument --test: nan is not above 0 and below 1"),
        ("data add own own.npz --side 0", "argument --side: '0' is not a whole number from 1 on"),
        ("data add own own.npz --seed -1", "argument --seed: '-1' is not a whole number from 0 on"),
        ("run k123 --until 1.5", "argument --until: '1.5' is not a whole number from 1 on"),
        ("verify k12 --released 2", "not allowed with argument"),
        ("draw demo --only seed=0", "cohort draw: error: unrecognized arguments: --only"),
        ("prune --scale smoke", "cohort prune: error: unrecognized arguments: --scale smoke"),
        (
            "status --config scale=smoke aml",
            "--config aml: must be KEY=VALUE; put others before --config",
        ),
        ("tri mine", "there is no command 'tri'; did you mean 'try'?"),
    ],
)
def test_an_impossible_option(
    arguments: str, sentence: str, project: Path, capsys: pytest.CaptureFixture[str]
):
    Path("own.npz").touch()
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert sentence in f"{ended.value.code} {capsys.readouterr().err}"


def test_init_quotes_its_folder_and_links_the_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "my runs"
    main(["init", str(folder)])
    assert f"cd '{folder}' && snakemake" in capsys.readouterr().out
    profile = folder / "slurm/profile.yaml"
    assert profile.samefile(folder / "profiles/slurm/profile.yaml")


def test_version(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"cohort {cohort.__version__}\n"
