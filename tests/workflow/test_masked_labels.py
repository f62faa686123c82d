"""A cell of masked labels from its study to its table."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from cohort.records.record import read
from tests.privacy.test_masked_labels import comparisons
from tests.workflow.conftest import Project
from tests.workflow.test_command_line import cohort

SETTINGS = {
    **{"dataset": "digits", "model": "small-mlp", "clients": 5, "cohort": 5, "batch": 16},
    **{"lr": 0.1, "procedure": "masked-labels", "rounds": 1},
}
AXES = {"partition": ["covering-5"], "J": ["J1e"], "strategy": ["fedavg"], "seed": [0]}


def test_a_cell_from_its_study_to_its_table(fresh: Project):
    fresh.write(
        {
            "title": "Masked labels",
            "settings": SETTINGS,
            "experiments": {"main": {"axes": AXES}},
            "tables": {
                "tab4": {
                    "experiment": "main",
                    "metric": "seconds_mapping",
                    "also": ["seconds_unique_list", "seconds_counts", "comparisons"],
                    "rows": ["partition"],
                    "columns": "strategy",
                }
            },
        }
    )
    (cell,) = fresh.cells()
    cohort(fresh, "run", cell)
    cohort(fresh, "draw", "tiny")
    (path,) = fresh.records()
    record = read(path)
    counts = record.clients["label_counts"]
    assert np.count_nonzero(counts, axis=1).tolist() == [5] * 5
    assert record.history.last("comparisons") == comparisons(counts)
    assert record.header["provenance"]["versions"]["tenseal"] == version("tenseal")
    table = (fresh.root / "results/full/partial/tables/tiny/tab4.csv").read_text()
    assert str(comparisons(counts)) in table
