"""Covertype, on generated tables in UCI's format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from cohort.cell.planned import PlannedFile, plan_file, write_plan
from cohort.core.errors import UserError
from cohort.data import store
from cohort.data.parsers import PARSERS, table
from cohort.data.parsers.table import SIZES, Covtype
from cohort.data.prepare import prepare
from tests.conftest import ROOT
from tests.data.publishers import gz
from tests.data.row_publishers import FOREST, forest, lines

FACTS = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())["covtype"]
FOLDER = Path("resources/raw/covtype")
pytestmark = pytest.mark.usefixtures("empty_folder")


def written(content: bytes) -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "covtype.data.gz").write_bytes(content)
    return FOLDER / "covtype.data.gz"


def sorted_rows(rows: np.ndarray) -> list[list[int]]:
    return sorted(rows.tolist())


def test_only_the_two_largest_kinds_are_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(table, "SIZES", {1: 300, 2: 405})
    monkeypatch.setattr(table, "BLOCK", 100)  # the last block is not full
    rows = forest(300, 405, 20, 3, 5, 9, 11)
    written(gz("".join(lines(rows)).encode()))
    train, test = Covtype().parse(FOLDER)
    assert (len(train.labels), len(test.labels)) == (564, 141)
    both = np.concatenate(
        [np.column_stack([split.values, split.labels + 1]) for split in (train, test)]
    )
    assert sorted_rows(both) == sorted_rows(rows[rows[:, -1] <= 2])
    assert 40 < test.labels.sum() < 141  # drawn at random: about 81 of kind 2
    again = Covtype().parse(FOLDER)[1]
    np.testing.assert_array_equal(again.values, test.values)


def test_the_store_standardizes_the_first_ten_columns_of_the_training_split(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(table, "SIZES", {1: 300, 2: 405})
    written(gz("".join(lines(forest(300, 405, 20))).encode()))
    write_plan(
        PlannedFile(
            "data.h5",
            "k0123456789ab",
            FACTS | {"dataset": "covtype", "train": 564, "test": 141},
            {},
            {},
        )
    )
    prepare(plan_file("k0123456789ab"), "data.h5")
    split, facts = store.read("data.h5", "train")
    values = split.values.astype(np.float64)
    assert split.values.dtype == np.int16 and values.shape == (564, 54) and values.min() < 0
    np.testing.assert_allclose(facts["mean"], [*values[:, :10].mean(axis=0), *[0] * 44], rtol=1e-12)
    np.testing.assert_allclose(facts["std"], [*values[:, :10].std(axis=0), *[1] * 44], rtol=1e-9)


def test_declared_sizes_are_a_fifth_and_the_rest_of_the_two_largest_kinds():
    assert sum(SIZES.values()) == 495_141 == FACTS["train"] + FACTS["test"]
    assert FACTS["test"] == round(495_141 / 5) == 99_028
    assert (FOREST[0], FOREST[1], sum(FOREST)) == (SIZES[1], SIZES[2], 581_012)


ROWS = lines(forest(3, 4, 1))
EXPECTED = "line 9 is broken (54 whole numbers and a kind of forest, 1 to 7, with commas between them, are expected)"
BROKEN = {
    "a column less": (
        "1,2,3\n",
        EXPECTED,
    ),
    "a column more": (ROWS[0].rstrip() + ",1\n", "line 9 is broken"),
    "no number": (ROWS[0].replace(",0,", ",x,", 1), "line 9 is broken"),
    "a fraction": (ROWS[0].replace(",0,", ",0.5,", 1), "line 9 is broken"),
    "a number of more than 16 bits": (ROWS[0].replace(",0,", ",32768,", 1), "line 9 is broken"),
    "a hole": (ROWS[0].replace(",0,", ",,", 1), "line 9 is broken"),
    "an empty line": ("\n", "line 9 is broken"),
    "an unknown kind": (ROWS[0].rpartition(",")[0] + ",8\n", "line 9 is broken"),
    "bytes": ("\xff\xfe\n", "line 9 is broken"),
    "half a line": (ROWS[0][:30], "line 9 is broken"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_row_is_reported_with_its_line(case: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(table, "SIZES", {1: 3, 2: 4})
    row, sentence = BROKEN[case]
    after = "" if case == "half a line" else ROWS[1]
    path = written(gz("".join([*ROWS, row, after]).encode("latin-1")))
    with pytest.raises(UserError) as caught:
        PARSERS["covtype"]().parse(FOLDER)
    assert str(caught.value).startswith(f"{path}: {sentence}") and "\n" not in str(caught.value)


WHOLE = gz("".join(ROWS).encode())
OTHERS = {
    "truncated": (
        WHOLE[:-20],
        "cannot be unpacked (Compressed file ended before the end-of-stream marker was reached)",
    ),
    "damaged": (WHOLE[:30] + bytes(20) + WHOLE[50:], "cannot be unpacked"),
    "not packed": ("".join(ROWS).encode(), "cannot be unpacked (Not a gzipped file"),
    "of another size": (
        WHOLE,
        "holds 3 and 4 samples of kinds 1 and 2, but UCI's has 211840 and 283301",
    ),
    "without a row": (gz(b""), "holds 0 and 0 samples of kinds 1 and 2"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_another_file_is_refused(case: str):
    content, sentence = OTHERS[case]
    path = written(content)
    with pytest.raises(UserError) as caught:
        PARSERS["covtype"]().parse(FOLDER)
    assert (
        str(caught.value).startswith(f"{path}: ")
        and sentence in str(caught.value)
        and "\n" not in str(caught.value)
    )
