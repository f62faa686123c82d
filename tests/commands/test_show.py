"""`cohort show`: a figure or table, and each reason for which a cell would be trained."""

from dataclasses import replace
from pathlib import Path

import pytest

from cohort.models import SmallMLP
from cohort.plan import Plan
from tests.commands.conftest import finish, output_of, replan


def test_nothing_if_it_is_done_and_a_record_that_is_missing(plan: Plan):
    first, second, *_ = plan.cells.values()
    folder = Path(first.path).parent
    assert output_of("show", first.digest) == (
        f"{first.path}: its record is missing\n  there is no other record in {folder}\n"
    )
    finish(first)
    assert output_of("show", first.path).splitlines()[-1] == f"{first.path}: it is done"
    assert output_of("show", second.digest).splitlines()[1] == (
        f"  {Path(first.path).name} has seed 0, the cell 1"
    )


def test_other_settings_and_a_parameter_of_a_strategy(plan: Plan):
    old = next(iter(plan.cells.values()))
    finish(old)
    settings = old.plain_settings()
    del settings["momentum"]
    finish(old, settings=settings)  # of a version that had no such setting
    new = next(iter(replan(lr=0.1, batch=32).cells.values()))
    assert output_of("show", new.digest).splitlines()[1:] == [
        f"  seed0-{old.digest}.h5 has batch 16, the cell 32",
        f"  seed0-{old.digest}.h5 has lr 0.05, the cell 0.1",
    ]
    assert output_of("show", old.path).splitlines()[-1].startswith(f"{old.path}: no study has this")


def test_a_science_version_and_data_that_changed(plan: Plan, monkeypatch: pytest.MonkeyPatch):
    old = next(iter(plan.cells.values()))
    finish(old)
    with monkeypatch.context() as patched:
        patched.setattr(SmallMLP, "science", 2)
        bumped = next(iter(replan().cells.values()))
        assert output_of("show", bumped.digest).splitlines()[1:] == [
            f"  seed0-{old.digest}.h5 has science version 1 of model:small-mlp, the cell 2"
        ]
    Path(old.path).unlink()
    name = "seed0-k000000000000.h5"
    finish(replace(old, path=str(Path(old.path).with_name(name)), digest="k000000000000"))
    assert "but data of another checksum or scaling" in output_of("show", old.digest)


def test_no_such_cell(plan: Plan):
    assert "there is no record of a cell 'k0000000'" in output_of("show", "k0000000", fails=True)


def test_a_table(plan: Plan):
    finish(next(iter(plan.cells.values())))
    lines = output_of("show", "six.tab1").splitlines()
    assert lines[0] == "six.tab1 at scale full: Accuracy"
    assert lines[1] == "  results/full/tables/six/tab1.csv  (not drawn yet)"
    assert "6 cells of one: 1 done, 5 missing" in lines
    assert lines[-1] == "$ snakemake six_tab1 --config scale=full"
    assert "did you mean 'tab1'?" in output_of("show", "six.tab2", fails=True)
