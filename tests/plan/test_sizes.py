"""Tables of sizes, by hand: 62,006 weights of four bytes are 248,024 bytes; ten label counts of 100
clients are 4,000."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.pipeline.pages import page_spec
from cohort.pipeline.specs import spec_of
from cohort.pipeline.stages import Stages
from cohort.pipeline.targets import targets
from cohort.plan import Plan
from cohort.results.tables.tabulate import tabulate

HEAD = "item,source,doubtful,dataset,model,strategy,other,metric,at,round,value,sd\n"
PAPER = (
    HEAD
    + """\
TableV,printed,,cifar10,,fedentopt,,labels_MB_4CK,,,0.0040,
TableV,printed,,cifar10,lenet5,fedentopt,,model_MB_4p,,,0.247,
TableV,printed,,cifar10,lenet5,fedentopt,,ratio_model_over_labels,,,61.75,
"""
)
TABLE = {"experiment": "main", "kind": "sizes", "paper": "TableV"}
PlanOf = Callable[..., Plan]
BLOCK = {
    "axes": {"strategy": ["fedentopt", "fedavg"], "seed": [0, 1]},
    "paired": [
        {
            "dataset": ["cifar10", "cifar10", "digits"],
            "model": ["lenet5", "aml-lenet", "small-mlp"],
            "clients": [100, 100, 20],
        }
    ],
}


@pytest.fixture
def planned(plan_of: PlanOf) -> Callable[..., Plan]:
    Path("resources/paper_values/study.csv").write_text(PAPER)

    def make(table: dict[str, Any] | None = None, **config: Any) -> Plan:
        return plan_of(BLOCK, config=config, tables={"tab5": table or TABLE})

    return make


def test_each_data_set_and_model_once_at_every_scale(planned: Callable[..., Plan]):
    """AML's LeNet with ten classes: 90 * 193 weights less than with a hundred. digits: 64 * 64 + 64
    + 64 * 10 + 10."""
    for scale in ("full", "smoke"):
        sizes = spec_of(planned(scale=scale), "study", "tab5")["sizes"]
        assert [tuple(size.values()) for size in sizes] == [
            ("cifar10", "lenet5", 10, 100, 62_006),
            ("cifar10", "aml-lenet", 10, 100, 1_773_796 - 90 * 193),
            ("digits", "small-mlp", 10, 20, 4_810),
        ]


def test_no_run_is_requested(planned: Callable[..., Plan]):
    plan = planned()
    stages = Stages(plan)
    assert stages.item_inputs(SimpleNamespace(study="study", scale=plan.scale, name="tab5")) == [
        "resources/paper_values/study.csv"
    ]
    assert dict(targets(plan))["study_tab5"](None) == [
        f"results/full/tables/study/tab5.{ending}" for ending in ("csv", "md", "tex", "json")
    ]
    (table,) = page_spec(plan, "study")["tables"]
    assert (table["metrics"], table["kind"]) == ("", "sizes")


def test_the_table(planned: Callable[..., Plan], tmp_path: Path):
    spec = spec_of(planned(), "study", "tab5")
    files = [tmp_path / f"tab5.{ending}" for ending in ("csv", "md", "tex", "json")]
    tabulate(spec, "", files)
    lines = files[0].read_text().splitlines()
    assert lines[1] == "cifar10,lenet5,10,100,62006,4000,248024,62.006,4000,247000,61.75"
    assert lines[3] == "digits,small-mlp,10,20,4810,800,19240,24.05,,,"
    lines = files[1].read_text().splitlines()
    heads = "Labels (MB), paper | Labels (MB), ours | Model (MB), paper | Model (MB), ours | Model / labels, paper | Model / labels, ours"
    assert lines[0] == "Everywhere: Classes 10."
    assert lines[2] == f"| Data set | Model | Clients | {heads} |"
    assert lines[4] == "| cifar10 | lenet5 | 100 | 0.004 | 0.004 | 0.247 | 0.248 | 61.75 | 62.01 |"
    assert lines[5] == "| cifar10 | aml-lenet | 100 | 0.004 | 0.004 | – | 7.026 | – | 1,756 |"
    assert "62.01" in files[2].read_text()


def test_without_a_paper(planned: Callable[..., Plan], tmp_path: Path):
    tabulate(
        spec_of(planned({"experiment": "main", "kind": "sizes"}), "study", "tab5"),
        "",
        [tmp_path / "tab5.md"],
    )
    lines = (tmp_path / "tab5.md").read_text().splitlines()
    assert lines[0] == "Everywhere: Classes 10."
    assert lines[2] == "| Data set | Model | Clients | Labels (MB) | Model (MB) | Model / labels |"
    assert lines[6] == "| digits | small-mlp | 20 | 0.0008 | 0.01924 | 24.05 |"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            TABLE | {"paper": "TableVI"},
            "study.yaml: tab5: paper is 'TableVI', which resources/paper_values/",
        ),
        (TABLE | {"kind": "size"}, "tables.tab5.kind is 'size', which is not known"),
        (TABLE | {"rows": ["J"]}, "tables.tab5 has an unknown key 'rows'"),
    ],
)
def test_mistakes_in_one_sentence(
    planned: Callable[..., Plan], table: dict[str, Any], sentence: str
):
    with pytest.raises(UserError) as error:
        planned(table)
    assert sentence in str(error.value)
