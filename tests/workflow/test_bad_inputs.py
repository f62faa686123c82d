"""Bad files: one clear sentence, a non-zero exit, nothing half-written, nothing lost. (What a file
of a publisher may be: tests/data.)"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from cohort.core.paths import plan_file
from cohort.records.record import read
from tests.data import publishers
from tests.workflow.commands import cohort, fails, files
from tests.workflow.conftest import Project
from tests.workflow.test_kill import assert_same_numbers

PAGE = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>"
BAD = {
    "axes": {
        "dataset": ["mnist", "cifar10"],
        **{"partition": ["iid"], "J": ["J1"], "strategy": ["fedavg"], "seed": [0]},
    },
    "settings": {"clients": 4, "cohort": 2, "reserve": 1},
}


def put_into_mirror(project: Project, dataset: str, **bad: bytes) -> None:
    """Declare a generated set whose archives lie in the mirror and nowhere else; some are bad."""
    contents, packed = publishers.contents(dataset), publishers.packed(dataset)
    file = project.root / "config/datasets.yaml"
    declared = yaml.safe_load(file.read_text())
    declared[dataset] |= publishers.counts(dataset)
    for name, content in contents.items():
        raw: dict[str, Any] = declared[dataset]["files"][name]
        archive = raw["source"].rpartition("/")[2]
        raw |= {"source": f"http://127.0.0.1:9/{archive}", "bytes": len(content)}
        raw["sha256"] = hashlib.sha256(content).hexdigest()
        raw["md5"] = hashlib.md5(packed[archive]).hexdigest()
    file.write_text(yaml.safe_dump(declared, sort_keys=False))
    (project.root / "mirror").mkdir(exist_ok=True)
    for name, content in (packed | bad).items():
        (project.root / "mirror" / name).write_bytes(content)


@pytest.mark.long
def test_two_bad_sets_do_not_keep_the_third_from_its_figures(fresh: Project):
    """Each failure is told, what does not need the files is made."""
    waits = "WAITS = (2.0, 8.0, 30.0)"
    fresh.replace("workflow/cohort/data/download.py", waits, "WAITS: tuple[float, ...] = ()")
    train = "train-images-idx3-ubyte"
    put_into_mirror(
        fresh, "mnist", **{f"{train}.gz": publishers.packed("mnist")[f"{train}.gz"][:-20]}
    )
    put_into_mirror(fresh, "cifar10", **{"cifar-10-python.tar.gz": PAGE})
    fresh.narrow()
    study = fresh.study()
    study["experiments"]["two"]["axes"] |= {"seed": [0]}
    study["experiments"]["bad"] = BAD
    fresh.write(study)
    output = fresh.snakemake("--config", "data_mirror=mirror", fails=True)
    sentences = {
        "mnist": f"mirror/{train}.gz: MD5 is ",
        "cifar10": "mirror/cifar-10-python.tar.gz: is a web page, not the file that",
    }
    for dataset, sentence in sentences.items():
        assert sentence in output and f"(log: results/logs/download/{dataset}/" in output
    assert "Traceback" not in output, output
    assert len(fresh.records()) == 1
    assert (fresh.root / "results/full/figures/tiny/fig2.png").exists()
    left = {Path(path).name for path in files(fresh) if path.startswith("resources/raw")}
    assert left == {"digits.csv.gz", *publishers.contents("mnist")} - {train}


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("data", "cannot be read as prepared data ("), ("shards", "cannot be read as shards (")],
)
def test_half_an_input_is_named_and_made_anew_once_it_is_deleted(
    finished: Project, kind: str, sentence: str
):
    record = finished.records()[0]
    undisturbed = read(record)
    record.unlink()
    plan = finished.root / plan_file(record.stem.rpartition("-")[2])
    path = yaml.safe_load(plan.read_text())["inputs"][kind]
    halve(finished.root / path)
    cell = str(record.relative_to(finished.root))
    fails(finished, f"{path} {sentence}", "run", cell)
    (finished.root / path).unlink()
    assert cohort(finished, "run", cell).returncode == 0
    assert_same_numbers(undisturbed, read(record))


@pytest.mark.slow
def test_half_a_record_is_named_and_trained_again_once_it_is_deleted(finished: Project):
    finished.narrow()
    record = next(path for path in finished.records() if "/J3/" in str(path))
    undisturbed = read(record)
    halve(record)
    dirs = ("resources", "results/cells", "results/shards")
    before = {path: content for path, content in files(finished).items() if path.startswith(dirs)}
    output = finished.snakemake(fails=True)
    path = record.relative_to(finished.root)
    assert f"error: {path} cannot be read as a record (" in output and "Traceback" not in output
    assert "delete it and run snakemake again" in output
    assert before.items() <= files(finished).items()
    record.unlink()
    finished.snakemake()
    assert_same_numbers(undisturbed, read(record))
