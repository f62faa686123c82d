"""`cohort export` drops no released run that its study still has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.plan import Plan, load
from cohort.results.release.folder import read_manifest
from tests.commands.conftest import finish, replan


@pytest.mark.parametrize("option", ["--only=seed=0", "--seeds=1", "--scale=smoke", "--seeds=4"])
def test_a_part_keeps_the_whole(plan: Plan, output_of: Callable[..., str], option: str):
    for cell in load({"seeds": 4}).cells.values():
        finish(cell)
    output_of("export", "six", "--seeds", "4", "--to", "out")
    assert "dropped" not in output_of("export", "six", "--to", "out", option)
    assert read_manifest(Path("out/six"))["runs"] == 8
    replan(lr=0.1)
    finish(next(iter(replan(lr=0.1).cells.values())))
    assert output_of("export", "six", "--to", "out").endswith("; 8 dropped that six no longer has\n")
