"""Every number that a paper prints in a table stands in one place of the study's table."""

import pytest

from cohort.results.comparison import Table
from cohort.results.paper import read_papers
from tests.conftest import ROOT
from tools.cells import plan_all

SECONDS = dict.fromkeys(("seconds_unique_list", "seconds_mapping", "seconds_counts"), 9)
PRINTED = [  # how many values of a metric the paper's item has, by hand
    ("fedentopt", "tab1", "TableI", {"test_accuracy": 120}),
    ("fedentopt", "tab2", "TableII", {"test_accuracy_gain": 60}),
    ("fedentopt", "tab3", "TableIII", {"test_accuracy": 48}),
    ("fedentopt", "tab4", "TableIV", {"test_accuracy": 48}),
    ("fedentopt", "tab5", "TableV", {"bytes_up": 12}),
    ("fedentopt", "tab6", "TableVI", {"test_accuracy": 16}),
    ("fedentopt", "tab6_entropies", "TableVI", {"selection_entropy": 16}),
    ("peco", "tab2", "TableII", {"test_accuracy": 24}),
    ("stratify", "tab1", "TableI", {"test_accuracy": 130, "best_round": 130}),
    ("stratify", "tab2", "TableII", {"test_accuracy": 104, "best_round": 104}),
    ("stratify", "tab3", "TableIII", {"seconds_training": 14, "seconds_transfers": 14}),
    ("stratify", "tab4", "TableIV", SECONDS),
    ("stratify", "tab5", "TableV", {"test_accuracy": 24, "best_round": 24}),
    ("stratify", "tab6", "TableVI", {"test_accuracy": 4, "best_round": 4}),
    ("stratify", "transfers", "text-V.F", {"tasks_saved": 1}),
    ("ucb", "results", "Table:results", {"own_samples_accuracy": 6}),
]


@pytest.mark.parametrize(("study", "name", "item", "metrics"), PRINTED)
def test_every_printed_number_stands_in_one_place(
    study: str, name: str, item: str, metrics: dict[str, int]
):
    expanded, file = plan_all(study).study(study), ROOT / f"resources/paper_values/{study}.csv"
    spec = expanded.tables[name]
    experiment = expanded.experiments[spec["experiment"]]
    fields = {key: value for key, value in spec.items() if key in Table.__dataclass_fields__}
    labels = [row.labels for row in experiment.rows]
    shown = [
        repr(value)
        for measure in Table(**fields).measures()
        for match in measure.matches(file, labels, experiment.axes)
        for value in match.values
        if value.metric in metrics and value.item == item
    ]
    printed = {metric: list(map(repr, read_papers([file], item, metric)[0])) for metric in metrics}
    assert {metric: len(values) for metric, values in printed.items()} == metrics
    assert sorted(shown) == sorted(value for values in printed.values() for value in values)
