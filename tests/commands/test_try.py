"""The studies that `cohort try` writes, one for each list of strategies."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import yaml

from cohort.commands.item import Item
from cohort.plan import load

write_study = import_module("cohort.commands.try").write_study


def test_lists_that_give_one_name_have_a_study_each(project: Path):
    entry = "{title: %s, selector: {name: random}}"
    names = {"a-b": "One", "a": "Two", "b": "Three"}
    Path("my").mkdir()
    lines = (f"{name}: {entry % title}" for name, title in names.items())
    Path("my/strategies.yaml").write_text("\n".join(lines))
    item = Item(load(), "demo", "tab1")
    written = [write_study(item, words) for words in (["a-b"], ["a", "b"], ["a-b"], ["a", "b"])]
    assert written[0] == written[2] == "try_a_b_demo_main"
    assert written[1] == written[3] != written[0]
    text = yaml.safe_load(Path(f"my/studies/{written[1]}.yaml").read_text())
    assert text["experiments"]["main"]["strategy"] == ["+a", "+b"]
