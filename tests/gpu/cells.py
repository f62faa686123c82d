"""Checks of cells on a device: where a cell is placed, and what is left of one that was killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.peers import environment
from cohort.core.hdf5 import new_hdf5
from cohort.core.paths import state_folder
from cohort.core.sealed_json import write_sealed
from cohort.data.shards import Shards
from cohort.data.shards import write as write_shards
from cohort.data.store import FORMAT
from cohort.settings import PlannedFile, digest_of
from cohort.training.cell import cell_of, read_cell
from cohort.training.evaluation import fingerprint
from cohort.training.job.lease import CHECKPOINT
from cohort.training.job.machine import acquire_device, visible_gpus
from cohort.training.job.train import Run, train
from cohort.training.task import RunState

ENDLESS = 10**6  # rounds, so that the process is killed before it ends
CLIENTS, SAMPLES, CLASSES = 4, 160, 10
WRITES = 12  # of the checkpoint before the process is killed
PATIENCE_SECONDS = 120.0
TRAIN = """
import sys
from cohort.training.job.train import train
plan, record, device = sys.argv[1:]
train(plan, record, device=device, trainer="batched", checkpoint_seconds=0)
"""
HOLD = """
from cohort.training.job.machine import acquire_device
with acquire_device("cuda", 1) as device:
    print(device, flush=True)
"""


def cell_gets_a_free_gpu(device: torch.device, folder: Path) -> str:
    """A cell holds the GPU's only slot, and the next cell waits until it is free."""
    with acquire_device(device.type, 1) as where:
        assert torch.zeros(1, device=where).device.type == device.type
        if "SLURM_JOB_ID" in os.environ or where.type == "cpu":
            return f"the cell got {where}; there are no slots on a CPU and in a SLURM job"
        name = visible_gpus()[where.index or 0]
        visible = {"CUDA_VISIBLE_DEVICES": name if name.startswith("MIG-") else f"GPU-{name}"}
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, "-c", HOLD]
        other = subprocess.Popen(command, env=environment() | visible, **options)
        assert other.stdout is not None
        line = other.stdout.readline()
        assert "waiting" in line, f"the next cell does not wait: {line}"
    granted = other.communicate(timeout=PATIENCE_SECONDS)[0].strip()
    assert granted == "cuda:0", granted
    return f"the cell got {where}, the next one waited for it"


def killed_cell_resumes(device: torch.device, folder: Path) -> str:
    """A cell that is killed inside a round resumes and ends with the same bits."""
    plan = planned_cell(folder / "killed", device)
    killed = start_and_kill(plan, device)
    resumed = trained_until(plan, device, killed.round + 2)
    whole = trained_until(planned_cell(folder / "whole", device), device, killed.round + 2)
    assert [session["trainer"] for session in resumed.sessions] == ["batched", "batched"]
    assert resumed.history.metrics == whole.history.metrics
    assert fingerprint(resumed.weights) == fingerprint(whole.weights), "other weights"
    return f"killed after round {killed.round}, the same weights after round {resumed.round}"


def planned_cell(folder: Path, device: torch.device) -> Path:
    """Write data, shards and the plan file of a cell into a new folder; return the plan file."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(5)
    labels = rng.integers(0, CLASSES, SAMPLES)
    with new_hdf5(folder / "data.h5") as file:
        file.attrs.update(format=FORMAT, classes=CLASSES, scale=255.0, mean=[0.5], std=[0.25])
        for split in ("train", "test"):
            images = rng.integers(0, 256, (SAMPLES, 1, 32, 32), dtype=np.uint8)
            file[f"{split}/values"], file[f"{split}/labels"] = images, labels.astype(np.uint16)
    held = np.array_split(np.arange(SAMPLES), CLIENTS)
    counts = [np.bincount(labels[part], minlength=CLASSES) for part in held]
    write_shards(folder / "shards.h5", Shards(held, np.stack(counts)))
    text = {"dataset": "none", "model": "lenet5", "partition": "iid", "strategy": "fedavg"}
    numbers = {"seed": 0, "clients": CLIENTS, "cohort": CLIENTS, "rounds": ENDLESS, "batch": 16}
    # evaluation on a CPU needs llvmlite, which the machine may lack
    every = 1 if device.type == "cuda" else ENDLESS
    settings = text | numbers | {"J": "J2e", "lr": 0.05, "momentum": 0.9, "evaluate_every": every}
    parts = {"selector": "random", "objective": "cross-entropy", "server": "average"}
    components = {part: {"name": name} for part, name in parts.items()}
    inputs = {"data": str(folder / "data.h5"), "shards": str(folder / "shards.h5")}
    planned = PlannedFile(str(folder / "record.h5"), "", settings | components, {}, inputs)
    planned = replace(planned, digest=digest_of(cell_of(planned).identity(), {}))
    plan = folder / f"{planned.digest}.json"
    write_sealed(plan, vars(planned))
    return plan


def start_and_kill(plan: Path, device: torch.device) -> RunState:
    """Train a cell in a process that is killed after some checkpoints; return the last one."""
    record = plan.with_name("record.h5")
    checkpoint = state_folder(record) / CHECKPOINT
    command = [sys.executable, "-c", TRAIN, str(plan), str(record), device.type]
    log = plan.with_name("log")
    with log.open("w") as stream:
        streams = {"stdout": stream, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, env=environment(), **streams)
    write_times: set[int] = set()
    began = time.monotonic()
    try:
        while len(write_times) < WRITES:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() - began < PATIENCE_SECONDS, log.read_text()
            with contextlib.suppress(FileNotFoundError):  # before the first, or between two
                write_times.add(checkpoint.stat().st_mtime_ns)
            time.sleep(0.001)
    finally:
        process.kill()
        process.wait()
    return saved(plan, device)


def trained_until(plan: Path, device: torch.device, until: int) -> RunState:
    """Train a cell, from its checkpoint if there is one, until after a round."""
    train(plan, plan.with_name("record.h5"), device=device.type, trainer="batched", until=until)
    return saved(plan, device)


def saved(plan: Path, device: torch.device) -> RunState:
    """The state in a cell's checkpoint."""
    cell = read_cell(plan)
    folder = state_folder(cell.path)
    run = Run.begin(cell, folder / CHECKPOINT, device, "batched", None)
    return replace(run.state, sessions=run.state.sessions[:-1])  # without this look at it
