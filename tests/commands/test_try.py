"""`cohort try` and `cohort check` that only answer."""

from pathlib import Path

import pytest

from cohort.commands.cli import main


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
