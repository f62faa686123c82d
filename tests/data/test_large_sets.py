"""Preparing and loading need the memory of one block, however large the data set is. Measured in separate processes."""

import multiprocessing
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cohort.settings import PlannedFile, plan_file, write_plan

SIDE, TEST = 224, 4


def peak_mb() -> float:
    """Peak memory of this process alone; getrusage would start from its parent's."""
    status = Path("/proc/self/status").read_text()
    return float(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def grown_mb(folder: str, stage: str) -> float:
    """The growth of this process's peak memory while data are prepared, or loaded by a cell."""
    import torch

    from cohort.data import samples
    from cohort.data.prepare import prepare

    torch.zeros(1)
    os.chdir(folder)
    before = peak_mb()
    if stage == "prepare":
        prepare(plan_file("k0123456789ab"), "data.h5")
    else:
        cpu = torch.device("cpu")
        parts = [samples.load("data.h5", part, cpu, torch.float32) for part in ("train", "test")]
        assert parts
    return peak_mb() - before


def measured(rows: int, folder: Path) -> list[float]:
    """What preparing and loading take of a set as large as PathMNIST's rows are, each image of one
    value: its row's number modulo 251."""
    raw = Path("resources/raw/pathmnist-224")
    raw.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(
        raw / "pathmnist_224.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as archive:
        for part, count in (("train", rows), ("test", TEST), ("val", TEST)):
            with archive.open(f"{part}_images.npy", "w") as file:
                head = {"descr": "|u1", "fortran_order": False, "shape": (count, SIDE, SIDE, 3)}
                np.lib.format.write_array_header_1_0(file, head)
                for row in range(count):
                    file.write(bytes([row % 251]) * 3 * SIDE * SIDE)
            with archive.open(f"{part}_labels.npy", "w") as file:
                np.lib.format.write_array(file, (np.arange(count) % 9).astype(np.uint8)[:, None])
    info = {"dataset": "pathmnist-224", "parser": "medmnist", "shape": [3, SIDE, SIDE]}
    info |= {"classes": 9, "train": rows, "test": TEST, "validation": TEST, "scale": 255}
    inputs = {"pathmnist_224.npz": str(raw / "pathmnist_224.npz")}
    write_plan(PlannedFile("data.h5", "k0123456789ab", info, {}, inputs))
    results = []
    for stage in ("prepare", "load"):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results.append(pool.apply(grown_mb, (str(folder), stage)))
    return results


@pytest.mark.slow
def test_memory_does_not_grow_with_the_set(empty_folder: Path):
    """60 MB and 240 MB of pixels."""
    from cohort.data import store

    small, large = measured(400, empty_folder), measured(1600, empty_folder)
    assert large[0] < small[0] + 20 and large[0] < 220
    assert large[1] < 20
    split, attrs = store.read("data.h5", "train")
    assert [int(split.values[row, 2, 100, 200]) for row in (0, 250, 251)] == [0, 250, 0]
    values = np.arange(1600) % 251
    np.testing.assert_allclose(attrs["mean"], [values.mean() / 255] * 3, rtol=1e-12)
    np.testing.assert_allclose(attrs["std"], [values.std() / 255] * 3, rtol=1e-9)
