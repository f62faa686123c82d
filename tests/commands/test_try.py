"""`cohort try` and `cohort check` before anything is trained."""

from argparse import Namespace
from importlib import import_module
from pathlib import Path

import pytest

from cohort.commands.cli import main
from cohort.core import UserError
from cohort.pipeline.driver import lock_directory
from cohort.plan import load

TRYING = import_module("cohort.commands.try")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("try mine --on demo.fig1 -n", "  mine: 12 missing"),
        ("check demo", "our runs, scale full: 3 not enough runs"),
    ],
)
def test_a_question_leaves_no_file(
    arguments: str, answer: str, project: Path, capsys: pytest.CaptureFixture[str]
):
    """Nor does the answer name a target that is not there."""
    Path("my").mkdir()
    Path("my/strategies.yaml").write_text("mine: {title: Mine, selector: {name: random}}")
    before = sorted(project.rglob("*"))
    main(arguments.split())
    lines = capsys.readouterr().out.splitlines()
    assert answer in lines and not any("snakemake" in line for line in lines)
    assert sorted(project.rglob("*")) == before


def test_nothing_is_tried_while_another_process_works(project: Path):
    named = Namespace(strategies=["fedprox"], on="demo.fig1", dry_run=False)
    with lock_directory(), pytest.raises(UserError, match="another snakemake"):
        TRYING.try_command(named)


def test_strategies_of_like_names_have_studies_of_their_own(project: Path):
    """A later one does not replace the study of an earlier one."""
    Path("my").mkdir()
    entry = "{title: Mine, selector: {name: random}}"
    Path("my/strategies.yaml").write_text(f"a+turns: {entry}\na-turns: {entry}\n")
    named = {"config": [], "scale": None, "only": None, "seeds": None, "dry_run": False}
    for strategies in (["a+turns"], ["a-turns"], ["a+turns"]):
        options = Namespace(strategies=strategies, on="demo.fig1", **named)
        study = TRYING._item_with_strategies(options).study
        assert load().study(study).title == f"{strategies[0]} on demo.main"
    assert len(list(Path("my/studies").iterdir())) == 2
