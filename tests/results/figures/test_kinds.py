"""What a study may ask for: the fields of each kind, and how metrics and labels are called."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jsonschema
import pytest

from cohort.core.components import schema_of
from cohort.core.errors import UserError
from cohort.results.figures import KINDS
from cohort.results.figures.kinds.means import Bars, Curves, Lines
from cohort.results.figures.kinds.others import Interval, Scatter, Shards
from cohort.results.names import Names


def test_the_catalog_finds_every_kind_without_pandas_and_matplotlib() -> None:
    names = ["bars", "cost_curves", "curves", "interval", "lines", "scatter", "shards"]
    assert list(KINDS) == names and KINDS["curves"] is Curves
    heavy = "{'pandas', 'matplotlib', 'seaborn', 'pyarrow'}"
    code = f"import sys, cohort.results.figures as it, cohort.results.comparison; list(it.KINDS); print({heavy} & set(sys.modules))"
    program = [sys.executable, "-c", code]
    assert subprocess.run(program, capture_output=True, check=True).stdout.strip() == b"set()"


@pytest.mark.parametrize(
    ("kind", "fields", "is_valid"),
    [
        (Curves, {"metric": "test_accuracy", "smoothing": 3, "rows": None, "band": "none"}, True),
        (Bars, {"metric": "selected", "x": "client", "at": "last-10", "reference": 0.5}, True),
        (Curves, {"metric": "test_accuracy", "colour": "red"}, False),
        (Curves, {"metric": "test_accuracy", "smoothing": 2}, False),
        (Curves, {"metric": "accuracy"}, False),
        (Curves, {}, False),
        (Shards, {"metric": "size"}, False),
        (Bars, {"metric": "test_accuracy", "x": "J", "at": "middle"}, False),
    ],
)
def test_fields_of_kinds(kind: type, fields: dict[str, object], is_valid: bool) -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(kind))
    assert jsonschema.Draft202012Validator(schema_of(kind)).is_valid(fields) == is_valid


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        (Bars, {"x": "class", "metric": "selected"}, "bars over x: class cannot show selected; choose among class_accuracy"),
        (Bars, {"x": "client", "metric": "selected", "also": ["test_loss"]}, "cannot show test_loss; choose"),
        (Bars, {"x": "class", "metric": "class_accuracy", "paper": "Fig12"}, "leave paper out"),
        (Bars, {"x": "J", "metric": "test_loss", "order": "number"}, "bars over x: J are in the study's order; leave order out"),
        (Lines, {"metric": "test_accuracy", "also": ["test_loss"], "x": "J", "errors": True}, "leave errors out"),
        (Curves, {"metric": "test_loss", "buckets": 10, "smoothing": 3}, "smoothing and buckets cannot be combined"),
        (Scatter, {"metric": "size", "x": "loss", "also": ["test_loss"]}, "leave out also"),
        (Shards, {"also": ["test_loss"]}, "leave out also and hue"),
        (Interval, {"metric": "update_norm"}, "neither high nor low is better"),
        (Interval, {"metric": "test_loss", "limits": [0, 100]}, "leave out limits"),
    ],
)  # fmt: skip
def test_fields_that_contradict_each_other(
    kind: Any, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError) as error:
        kind(**fields).check()
    assert sentence in str(error.value)


def test_values_that_a_study_does_not_order_ascend() -> None:
    names = Names(orders={"partition": ["iid", "dir-0.1"]})
    partitions = names.ordered("partition", ["classes-2", "dir-0.1", "iid", "iid"])
    assert partitions == ["iid", "dir-0.1", "classes-2"]
    assert names.ordered("J", ["J16", "J4", "J5e"]) == ["J4", "J5e", "J16"]
    assert names.ordered("lr", ["1", "1e-05", "0.001"]) == ["1e-05", "0.001", "1"]
