"""The cells of every study at every scale are those of its table: a changed cell is a changed row."""

from collections import Counter
from itertools import product
from typing import Any

import pytest

from cohort.plan import all_studies
from tools.cells import AXES, FOLDER, cells_table, merge_rows, plan_all

STUDIES = sorted(file.stem for file in FOLDER.glob("*.csv"))


@pytest.mark.parametrize("study", STUDIES)
def test_cells_are_those_of_the_table(study: str):
    expected = (FOLDER / f"{study}.csv").read_text().splitlines()
    actual = cells_table(study).splitlines()
    gone = [f"- {row}" for row in expected if row not in actual]
    new = [f"+ {row}" for row in actual if row not in expected]
    assert actual == expected, "\n".join(["python -m tools.cells writes:", *gone, *new])


def test_every_study_has_a_table():
    assert all_studies() == STUDIES


def test_no_cell_is_lost_where_rows_are_merged():
    """Nor is one invented: the combinations of the rows' values are the cells."""
    plan = plan_all("stratify")
    for experiment in plan.study("stratify").experiments.values():
        cells = [plan.cells[row.digest].plain_settings() for row in experiment.rows]
        rest = [str({key: cell[key] for key in cell if key not in AXES}) for cell in cells]
        single: list[dict[str, Any]] = [
            {axis: (cell[axis],) for axis in AXES} | {"rest": text, "digests": ("k",)}
            for cell, text in zip(cells, rest, strict=True)
        ]
        expanded = Counter(
            (*values, row["rest"])
            for row in merge_rows(single)
            for values in product(*(row[axis] for axis in AXES))
        )
        expected = zip(cells, rest, strict=True)
        assert expanded == Counter(
            (*(cell[axis] for axis in AXES), text) for cell, text in expected
        )
