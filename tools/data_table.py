"""`python -m tools.data_table [MIRROR]`: measure what is in the data sets, into docs/data.md.

Files come from MIRROR or, without one, from the publishers. Of a data set whose files cannot be had
the row has what is declared. The size of a whole prepared data set is computed from its declared
samples and shape.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import h5py
import numpy as np
import yaml

from benchmarks.page import put_section
from cohort.cell.planned import PlannedFile, write_plan
from cohort.core.errors import UserError
from cohort.core.paths import plan_file
from cohort.data import download as stage
from cohort.data.prepare import TYPES
from cohort.data.prepare import prepare as prepare_data

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "data.md"
COMMAND = "python -m tools.data_table"
MOST_PRINTED = 20  # classes
PLAN = "k0123456789ab"
SETS = (
    "data set",
    "source",
    "files",
    "raw bytes",
    "samples",
    "classes",
    "of each class",
    "channel means",
    "channel deviations",
    "prepared MB",
    "whole set MB",
    "prepare s",
    "load s",
    "load MB",
)

DatasetInfo = dict[str, Any]


def main(mirror: str = "") -> None:
    """Measure all data sets, print their rows, and write the table into docs/data.md."""
    mirror = str(Path(mirror).resolve()) if mirror else ""
    datasets = yaml.safe_load((ROOT / "config/datasets.yaml").read_text(encoding="utf-8"))
    sets = []
    for dataset, declared in datasets.items():
        with tempfile.TemporaryDirectory() as folder:
            if run_alone(put_raw_files, dataset, declared, folder, mirror):
                seconds = run_alone(measure_preparing, dataset, declared, folder)
                loading = run_alone(measure_loading, folder)
                sets.append(row_of(dataset, declared, Path(folder), seconds, loading))
            else:
                sets.append(row_of_absent(dataset, declared))
        print(*sets[-1], sep=" | ")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(put_section(text, "data", table(SETS, sets), COMMAND), encoding="utf-8")


def run_alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own, to measure memory apart; return its result."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def put_raw_files(dataset: str, declared: DatasetInfo, folder: str, mirror: str) -> bool:
    """Put raw files into resources/raw of a folder; return whether they could be had."""
    os.chdir(folder)
    mock.patch("cohort.data.fetch.WAITS", ()).start()
    if mirror:
        mock.patch("cohort.data.download.fetch", refuse_download).start()
    raw = Path("resources/raw", dataset)
    try:
        for name, file in declared["files"].items():
            stage.download(file, raw / name, mirror)
    except UserError as error:
        print(f"{dataset} is not measured: {error}", file=sys.stderr)
        return False
    return True


def refuse_download(url: str, target: Path) -> None:
    """Raise UserError in place of fetching, so that no data set of many gigabytes is downloaded."""
    raise UserError(f"{url} is not asked, because a mirror is named")


def measure_preparing(dataset: str, declared: DatasetInfo, folder: str) -> float:
    """Parse and store a data set; return the seconds that it took."""
    os.chdir(folder)
    write_plan(PlannedFile("data.h5", PLAN, declared | {"dataset": dataset}, {}, {}))
    begin = time.perf_counter()
    prepare_data(plan_file(PLAN), "data.h5")
    return time.perf_counter() - begin


def measure_loading(folder: str) -> tuple[float, float]:
    """Load both splits on the CPU as a cell does; return the seconds, and the growth of the
    process's peak memory in MB."""
    import torch

    from cohort.data import samples

    cpu = torch.device("cpu")
    torch.zeros(1)
    before = peak_mb()
    begin = time.perf_counter()
    tensors = [
        samples.load(Path(folder, "data.h5"), part, cpu, torch.float32)
        for part in ("train", "test")
    ]
    seconds = time.perf_counter() - begin
    assert tensors
    return seconds, peak_mb() - before


def peak_mb() -> float:
    """Peak memory of this process alone; getrusage would start from its parent's."""
    return (
        float(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    )


def row_of(
    dataset: str,
    declared: DatasetInfo,
    folder: Path,
    seconds: float,
    loading: tuple[float, float],
) -> tuple[str, ...]:
    """The table row of a data set whose prepared file is in `folder`."""
    with h5py.File(folder / "data.h5") as file:
        labels = [file[f"{part}/labels"][:] for part in ("train", "test")]
        means, deviations = (
            channel_moments(file["train/values"][:], file.attrs["scale"])
            if file.attrs["kind"] == "images"
            else ("-", "-")
        )
    raw = list((folder / "resources/raw" / dataset).iterdir())
    return (
        dataset,
        publisher(next(iter(declared["files"].values()))),
        str(len(raw)),
        f"{sum(file.stat().st_size for file in raw):,}",
        " + ".join(f"{len(part):,}" for part in labels),
        str(len(np.unique(labels[0]))),
        " + ".join(class_sizes(np.bincount(part)) for part in labels),
        means,
        deviations,
        f"{(folder / 'data.h5').stat().st_size / 1e6:.1f}",
        f"{total_bytes(declared) / 1e6:,.1f}",
        f"{seconds:.2f}",
        f"{loading[0]:.2f}",
        f"{loading[1]:.0f}",
    )


def row_of_absent(dataset: str, declared: DatasetInfo) -> tuple[str, ...]:
    """The table row of a data set whose files are not at hand: what is declared of it."""
    row = dict.fromkeys(SETS, "-") | {
        "data set": dataset,
        "source": publisher(next(iter(declared["files"].values()))),
        "files": str(len(declared["files"])),
        "samples": f"{declared['train']:,} + {declared['test']:,}",
        "classes": str(declared["classes"]),
        "whole set MB": f"{total_bytes(declared) / 1e6:,.1f}",
    }
    return tuple(row.values())


def publisher(file: DatasetInfo) -> str:
    """The host or package that a raw file comes from."""
    source = file.get("source") or file["login"]
    return urlsplit(source).hostname or source.removeprefix("package:").partition("/")[0]


def total_bytes(declared: DatasetInfo) -> int:
    """The bytes of a whole data set: of all values, plus two per label and two per group number."""
    numbers = 2 if declared.get("groups") else 1
    wide = np.dtype(TYPES[declared.get("kind", "images")]).itemsize
    return (declared["train"] + declared["test"]) * (
        math.prod(declared["shape"]) * wide + 2 * numbers
    )


def channel_moments(images: np.ndarray, scale: float) -> tuple[str, str]:
    """The means and the standard deviations of the channels, divided by the scale, as two texts."""
    channels = [images[:, number] for number in range(images.shape[1])]
    means, deviations = (
        " ".join(f"{moment(channel) / scale:.4f}" for channel in channels)
        for moment in (np.mean, np.std)
    )
    return means, deviations


def class_sizes(counts: np.ndarray) -> str:
    """Class sizes as text: one number if all are equal, smallest and largest of too many."""
    if len(set(counts)) == 1:
        return f"{counts[0]:,} each"
    return (
        " ".join(map(str, counts))
        if len(counts) <= MOST_PRINTED
        else f"{counts.min():,} to {counts.max():,}"
    )


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Format a table as Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
