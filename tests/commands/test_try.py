"""The studies of `cohort try`: one for each list of strategies, and none where it only answers."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from cohort.commands.cli import main
from cohort.commands.status import Item
from cohort.core.files import write_text
from cohort.plan import load

extending_study = import_module("cohort.commands.try").extending_study


def test_lists_that_give_one_name_have_a_study_each(project: Path):
    entry = "{title: %s, selector: {name: random}}"
    names = {"a-b": "One", "a": "Two", "b": "Three"}
    Path("my").mkdir()
    lines = (f"{name}: {entry % title}" for name, title in names.items())
    Path("my/strategies.yaml").write_text("\n".join(lines))
    plan, written = load(), {}
    for strategies in (["a-b"], ["a", "b"], ["a-b"], ["a", "b"]):
        name, text = extending_study(Item(plan, "demo", "tab1"), strategies)
        assert written.setdefault(name, strategies) == strategies
        write_text(f"my/studies/{name}.yaml", json.dumps(text))  # which is YAML too
        assert text["experiments"]["main"]["strategy"] == [f"+{word}" for word in strategies]
    assert len(written) == 2 and "try_a_b_demo_main" in written


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
