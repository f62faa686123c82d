"""Bad files and mirrors: one clear sentence, a non-zero exit, nothing half-written, nothing lost. (A ZIP bomb: tests/data.)"""

from __future__ import annotations

import hashlib
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.data import fetch
from cohort.records.record import read
from tests.data import publishers
from tests.data.publishers import Foreign
from tests.data.row_publishers import samples, table
from tests.workflow.commands import cohort, fails, files, make_data
from tests.workflow.conftest import Project
from tests.workflow.test_kill import assert_same_numbers

PAGE = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>"


def declare(
    project: Project,
    dataset: str,
    contents: dict[str, bytes],
    packed: dict[str, bytes],
    **facts: Any,
) -> None:
    """A set whose files are these, packed or not, in the mirror and nowhere else."""
    file = project.root / "config/datasets.yaml"
    declared = yaml.safe_load(file.read_text())
    declared[dataset] |= facts
    for name, content in contents.items():
        raw = declared[dataset]["files"][name]
        source = raw["source"].rpartition("/")[2] if packed else name
        raw |= {
            "source": f"http://127.0.0.1:9/{source}",
            "sha256": hashlib.sha256(content).hexdigest(),
            "bytes": len(content),
        }
        if packed:
            raw["md5"] = hashlib.md5(packed[source]).hexdigest()
    file.write_text(yaml.safe_dump(declared, sort_keys=False))
    for name, content in (packed or contents).items():
        (project.root / "mirror").mkdir(exist_ok=True)
        (project.root / "mirror" / name).write_bytes(content)


@pytest.fixture
def offline(fresh: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The tiny project where a publisher that does not answer is asked once."""
    fresh.replace(
        "workflow/cohort/data/fetch.py", "WAITS = (2.0, 8.0, 30.0)", "WAITS: tuple[float, ...] = ()"
    )
    monkeypatch.setattr(fetch, "WAITS", ())  # of commands in this process
    return fresh


def images(project: Project, dataset: str, bad: dict[str, bytes] | None = None) -> None:
    """A generated set of images, with members that are not as they should be."""
    contents = publishers.contents(dataset) | (bad or {})
    packed = publishers.packed(dataset)
    if bad:
        folder = publishers.CIFAR_FOLDERS[dataset]
        packed = {
            name: publishers.tar_gz({f"{folder}/{key}": each for key, each in contents.items()})
            for name in packed
        }
    declare(project, dataset, contents, packed, **publishers.counts(dataset))


def truncated_gz(project: Project) -> str:
    contents, packed = publishers.contents("mnist"), publishers.packed("mnist")
    packed["train-images-idx3-ubyte.gz"] = packed["train-images-idx3-ubyte.gz"][:-20]
    declare(project, "mnist", contents, packed, **publishers.counts("mnist"))
    return "mnist mirror/train-images-idx3-ubyte.gz: cannot be read (Compressed file ended before the end-of-stream marker was reached)"


def wrong_checksum(project: Project) -> str:
    images(project, "mnist")
    path = project.root / "mirror/train-labels-idx1-ubyte.gz"
    path.write_bytes(publishers.packed("fashion-mnist")[path.name])
    return f"mnist mirror/{path.name}: MD5 is {hashlib.md5(path.read_bytes()).hexdigest()}, config/datasets.yaml expects "


def page(project: Project) -> str:
    images(project, "cifar10")
    (project.root / "mirror/cifar-10-python.tar.gz").write_bytes(PAGE)
    return "cifar10 mirror/cifar-10-python.tar.gz: is a web page, not the file that config/datasets.yaml expects"


def foreign_class(project: Project) -> str:
    images(project, "cifar10", bad={"data_batch_3": pickle.dumps({"data": Foreign()})})
    return "cifar10 resources/raw/cifar10/data_batch_3: cannot be read (it asks for "


def broken_sample(project: Project) -> str:
    rows = samples({"CYMBELINE_SON": 'He says "no", and no one more than he says it ' * 3})
    content = table([*rows[:6], (*rows[6][:2], "no"), *rows[7:]]).encode()
    declare(project, "shakespeare-csv", {"shakespeare.csv": content}, {}, train=50, test=3)
    return "shakespeare-csv resources/raw/shakespeare-csv/shakespeare.csv: line 8 is broken (80 characters and one more are expected)"


def absent(project: Project) -> str:
    images(project, "cifar10")
    (project.root / "mirror/cifar-10-python.tar.gz").rename(project.root / "mirror/another.tar.gz")
    return "cifar10 data_mirror 'mirror' has no data_batch_1 that can be used (none of that name), and http://127.0.0.1:9/cifar-10-python.tar.gz"


def no_mirror(project: Project) -> str:
    images(project, "cifar10")
    (project.root / "mirror").rename(project.root / "elsewhere")
    return "cifar10 data_mirror is 'mirror', which is not a folder"


MISTAKES = (truncated_gz, wrong_checksum, page, foreign_class, broken_sample, absent, no_mirror)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_file_that_is_not_what_it_should_be(offline: Project, mistake: Any):
    """Files that were checked before, and those of other data sets, stay."""
    dataset, _, sentence = mistake(offline).partition(" ")
    good = offline.root / "resources/raw/digits/digits.csv.gz"
    good.parent.mkdir(parents=True)
    good.write_bytes(b"of before")
    before = files(offline)
    with pytest.raises(UserError, match=rf"\A[^\n]*{re.escape(sentence)}[^\n]*\Z"):
        make_data(offline, dataset, data_mirror="mirror")
    after = files(offline)
    assert {path: after.get(path) for path in before} == before
    declared = {
        raw["sha256"]
        for raw in yaml.safe_load((offline.root / "config/datasets.yaml").read_text())[dataset][
            "files"
        ].values()
    }
    assert {after[path] for path in set(after) - set(before)} <= declared
    assert (
        not (offline.root / "written").exists() and not (offline.root.parent / "written").exists()
    )


@pytest.mark.long
def test_two_bad_sets_do_not_keep_the_third_from_its_figures(offline: Project):
    """As a user would run it: each failure is told, what does not need the files is made."""
    sentences = [truncated_gz(offline), page(offline)]
    study = offline.study()
    del study["experiments"]["one"], study["figures"]["fig1"], study["tables"]
    study["experiments"]["two"]["axes"] |= {"seed": [0]}
    study["experiments"]["bad"] = {
        "axes": {
            "dataset": ["mnist", "cifar10"],
            "partition": ["iid"],
            "J": ["J1"],
            "strategy": ["fedavg"],
            "seed": [0],
        },
        "settings": {"clients": 4, "cohort": 2, "reserve": 1},
    }
    offline.write(study)
    output = offline.snakemake("--config", "data_mirror=mirror", fails=True)
    for dataset, _, sentence in (text.partition(" ") for text in sentences):
        assert f"{sentence}" in output and f"(log: results/logs/download/{dataset}/" in output
    assert "Traceback" not in output, output
    assert (
        len(offline.records()) == 1
        and (offline.root / "results/full/figures/tiny/fig2.png").exists()
    )
    left = {Path(path).name for path in files(offline) if path.startswith("resources/raw")}
    assert left == {"digits.csv.gz", *publishers.contents("mnist")} - {"train-images-idx3-ubyte"}


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def of_cell(project: Project, record: Path) -> tuple[Path, Path]:
    """The paths of a cell's prepared data and shards."""
    planned = yaml.safe_load(
        (project.root / "results/plan" / f"{record.stem.rpartition('-')[2]}.json").read_text()
    )
    return project.root / planned["inputs"]["data"], project.root / planned["inputs"]["shards"]


@pytest.mark.parametrize(
    ("which", "sentence"),
    [("data", "cannot be read as prepared data ("), ("shards", "cannot be read as shards (")],
)
def test_half_an_input_is_named_and_made_anew_once_it_is_deleted(
    finished: Project, which: str, sentence: str
):
    record = finished.records()[0]
    undisturbed = read(record)
    record.unlink()
    path = of_cell(finished, record)[which == "shards"]
    halve(path)
    cell = str(record.relative_to(finished.root))
    fails(finished, f"{path.relative_to(finished.root)} {sentence}", "run", cell)
    path.unlink()
    assert cohort(finished, "run", cell).returncode == 0
    assert_same_numbers(undisturbed, read(record))


@pytest.mark.slow
def test_half_a_record_is_named_and_trained_again_once_it_is_deleted(finished: Project):
    finished.narrow()
    record = next(path for path in finished.records() if "/J3/" in str(path))
    undisturbed = read(record)
    halve(record)
    before = files(finished)
    output = finished.snakemake(fails=True)
    path = record.relative_to(finished.root)
    assert (
        f"error: {path} is not a valid record (" in output
        and "delete it and run snakemake again" in output
    )
    assert "Traceback" not in output
    kept = {file: content for file, content in files(finished).items() if "partial/" not in file}
    assert {
        file: kept.get(file)
        for file in before
        if file.startswith(("resources", "results/cells", "results/shards"))
    } == {
        file: content
        for file, content in before.items()
        if file.startswith(("resources", "results/cells", "results/shards"))
    }
    record.unlink()
    finished.snakemake()
    assert_same_numbers(undisturbed, read(record))
