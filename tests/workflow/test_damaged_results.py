"""What the sentences about damaged metrics and a misplaced record advise brings everything back."""

from __future__ import annotations

import shutil

import pytest

from cohort.records.record import read
from tests.workflow.conftest import Project
from tests.workflow.test_kill import assert_same_numbers, flip_a_bit

FIGURE = "tiny_fig2"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "target"),
    [(".parquet", FIGURE), pytest.param(".json", "tiny", marks=pytest.mark.long)],
)
def test_damaged_metrics_are_refused_and_collected_anew(
    ending: str, target: str, finished: Project
):
    file = (finished.root / "results/full/metrics/tiny/two.parquet").with_suffix(ending)
    before = file.read_bytes()
    flip_a_bit(file)
    output = finished.snakemake(target, fails=True)
    assert f"two{ending}: cannot be read as metrics (" in output and "Traceback" not in output
    assert "; delete it and run snakemake again, which collects it anew" in output
    file.unlink()
    finished.snakemake(target)
    assert file.read_bytes() == before


@pytest.mark.slow
def test_a_misplaced_record_is_refused_and_trained_anew(finished: Project):
    record, other = (path for path in finished.records() if "/J3/" in str(path))
    before = read(record)
    shutil.copy(other, record)
    output = finished.snakemake(FIGURE, fails=True)
    name = record.relative_to(finished.root)
    assert f"{name} is not a valid record (it is that of k" in output
    assert "under the name of another cell); delete it and run snakemake again" in output
    record.unlink()
    finished.snakemake(FIGURE)
    assert_same_numbers(before, read(record))
