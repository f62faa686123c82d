from __future__ import annotations

import subprocess
import sys

import jsonschema
import pytest

from cohort.core.components import schema_of
from cohort.core.errors import UserError
from cohort.results.figures import KINDS
from cohort.results.figures.kinds.bars import Bars, Lines
from cohort.results.figures.kinds.clients import Scatter, Shards
from cohort.results.figures.kinds.curves import CostCurves, Curves
from cohort.results.figures.kinds.interval import Interval
from cohort.results.names import METRICS, Names


def test_the_catalog_finds_every_kind() -> None:
    assert {
        "bars": Bars,
        "cost_curves": CostCurves,
        "curves": Curves,
        "interval": Interval,
        "lines": Lines,
        "scatter": Scatter,
        "shards": Shards,
    } == KINDS


def test_the_catalog_imports_neither_pandas_nor_matplotlib() -> None:
    heavy = "{'pandas', 'matplotlib', 'seaborn', 'pyarrow'}"
    code = f"import sys, cohort.results.figures, cohort.results.tables.spec; print({heavy} & set(sys.modules))"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "set()"
    )


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (
            Curves,
            {
                "metric": "test_accuracy",
                "smoothing": 3,
                "columns": "partition",
                "rows": None,
                "limits": [0, 100],
                "band": "none",
            },
        ),
        (
            Bars,
            {
                "metric": "selected",
                "x": "client",
                "at": "last-10",
                "reference": 0.5,
                "limits": None,
            },
        ),
        (Shards, {"columns": "partition"}),
    ],
)
def test_a_schema_accepts_valid_fields(kind: type, fields: dict[str, object]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(kind))
    jsonschema.validate(fields, schema_of(kind))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Curves, {"metric": "test_accuracy", "colour": "red"}),
        (Curves, {"metric": "test_accuracy", "smoothing": 2}),
        (Curves, {"metric": "test_accuracy", "limits": [0]}),
        (Curves, {"metric": "accuracy"}),
        (Curves, {}),
        (Bars, {"metric": "test_accuracy"}),
        (Bars, {"metric": "label_count", "x": "J"}),
        (Shards, {"metric": "size"}),
        (Bars, {"metric": "test_accuracy", "x": "J", "at": "median"}),
    ],
)
def test_a_schema_refuses_invalid_fields(kind: type, fields: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(fields, schema_of(kind))


def test_facets_are_panels_and_hue_without_x() -> None:
    assert Curves(metric="test_loss", columns="partition", rows="J").facets() == (
        "J",
        "partition",
        "strategy",
    )
    assert Bars(metric="test_loss", x="partition", hue="J", columns="J").facets() == ("J",)


@pytest.mark.parametrize(("x", "metric"), [("client", "test_accuracy"), ("partition", "selected")])
def test_bars_over_clients_need_a_metric_of_clients(x: str, metric: str) -> None:
    with pytest.raises(UserError, match=f"bars over x: {x} cannot show {metric}; choose one of"):
        Bars(metric=metric, x=x).check()


def test_labels_of_metrics_have_units() -> None:
    assert METRICS["test_accuracy"].label == "Test accuracy (%)"
    assert METRICS["cohort_entropy"].label == "Cohort label entropy (bits)"
    assert METRICS["test_loss"].label == "Test loss"


def test_names() -> None:
    names = Names(
        orders={"partition": ["iid", "dir-0.1"]}, titles={"strategy": {"fedavg": "FedAvg"}}
    )
    assert names.phrase("J", "J16") == "J = 16 local steps"
    assert names.phrase("J", "J1e") == "J = 1 local epoch"
    assert names.phrase("strategy", "fedavg") == "FedAvg"
    assert names.phrase("partition", "dir-0.1") == "dir-0.1"
    assert names.phrase("selector.buffer", "0.5") == "buffer = 0.5"
    assert names.title("selector.buffer") == "Buffer"
    assert names.ordered("partition", ["classes-2", "dir-0.1", "iid", "iid"]) == [
        "iid",
        "dir-0.1",
        "classes-2",
    ]
    assert names.ordered("J", ["J16", "J4", "J5e"]) == ["J4", "J5e", "J16"]
    assert names.ordered("lr", ["1", "1e-05", "0.001"]) == ["1e-05", "0.001", "1"]
