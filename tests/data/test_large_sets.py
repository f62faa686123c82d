"""Preparing and loading need the memory of one block, however large the data set is. Measured in
separate processes."""

import multiprocessing
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cohort.settings import PlannedFile, plan_file, write_plan

pytestmark = pytest.mark.usefixtures("empty_folder")
SIDE = 224
ROW = 3 * SIDE * SIDE
TEST = 4


def run_alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own, to measure memory apart; return its result."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def peak_mb() -> float:
    """Peak memory of this process alone; getrusage would start from its parent's."""
    status = Path("/proc/self/status").read_text()
    return float(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def loading_mb(folder: str) -> float:
    """The growth of the process's peak memory while both splits are loaded as a cell does."""
    import torch

    from cohort.data import samples

    torch.zeros(1)
    before, file = peak_mb(), Path(folder, "data.h5")
    assert [
        samples.load(file, part, torch.device("cpu"), torch.float32) for part in ("train", "test")
    ]
    return peak_mb() - before


def write_npz(rows: int) -> None:
    """As large as PathMNIST's rows are, each image of one value: its row's number modulo 251."""
    folder = Path("resources/raw/pathmnist-224")
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(
        folder / "pathmnist_224.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as archive:
        for part, count in (("train", rows), ("test", TEST), ("val", TEST)):
            with archive.open(f"{part}_images.npy", "w") as file:
                head = {"descr": "|u1", "fortran_order": False, "shape": (count, SIDE, SIDE, 3)}
                np.lib.format.write_array_header_1_0(file, head)
                for row in range(count):
                    file.write(bytes([row % 251]) * ROW)
            with archive.open(f"{part}_labels.npy", "w") as file:
                np.lib.format.write_array(file, (np.arange(count) % 9).astype(np.uint8)[:, None])


def prepare(folder: str) -> float:
    """By how many MB the peak memory of this process grew."""
    from cohort.data.prepare import prepare as prepare_data

    os.chdir(folder)
    before = peak_mb()
    prepare_data(plan_file("k0123456789ab"), "data.h5")
    return peak_mb() - before


def measured(rows: int, folder: Path) -> tuple[float, float]:
    write_npz(rows)
    facts = {"dataset": "pathmnist-224", "parser": "medmnist", "shape": [3, SIDE, SIDE]}
    facts |= {"classes": 9, "train": rows, "test": TEST, "validation": TEST, "scale": 255}
    raw = {"pathmnist_224.npz": "resources/raw/pathmnist-224/pathmnist_224.npz"}
    write_plan(PlannedFile("data.h5", "k0123456789ab", facts, {}, raw))
    return run_alone(prepare, str(folder)), run_alone(loading_mb, str(folder))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_set(tmp_path: Path):
    """60 MB and 240 MB of pixels."""
    small, large = measured(400, tmp_path), measured(1600, tmp_path)
    assert Path("data.h5").stat().st_size > 1600 * ROW
    assert large[0] < small[0] + 20 and large[0] < 220
    assert large[1] < 20

    from cohort.data import store

    split, facts = store.read("data.h5", "train")
    pixels = [int(split.values[row, 2, 100, 200]) for row in (0, 250, 251, 1599)]
    assert pixels == [0, 250, 0, 1599 % 251]
    assert split.labels[1000] == 1000 % 9
    values = np.arange(1600) % 251
    np.testing.assert_allclose(facts["mean"], [values.mean() / 255] * 3, rtol=1e-12)
    np.testing.assert_allclose(facts["std"], [values.std() / 255] * 3, rtol=1e-9)
