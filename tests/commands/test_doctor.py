"""`cohort doctor` on machines that lack something."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cohort.commands import doctor
from cohort.plan import Plan, load

OutputOf = Callable[..., str]


def test_a_healthy_machine(plan: Plan, output_of: OutputOf, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nothing")
    text = output_of("doctor")
    states = {line[9:].split(":")[0]: line.split()[0] for line in text.splitlines()}
    assert set(states) == {
        *("Python", "PyTorch", "GPU", "native trainer", "SLURM", "locks", "disk", "data")
    }
    assert "failed" not in states.values()
    assert "ok       SLURM: not on this machine" in text and "digits is here" in text
    results = json.loads(output_of("doctor", "--json"))
    lines = [f"{item['state']:8} {item['check']}: {item['finding']}" for item in results]
    assert lines[0] == text.splitlines()[0] and {item["check"] for item in results} == set(states)


def test_whatever_fails_is_said_and_the_others_go_on(
    plan: Plan, output_of: OutputOf, monkeypatch: pytest.MonkeyPatch
):
    def broken() -> None:
        raise ImportError("libtorch.so: cannot open shared object file")

    monkeypatch.setattr(doctor, "check_pytorch", broken)
    monkeypatch.setattr(doctor.native.NativeTrainer, "_train_steps", lambda self, *rest: 1 / 0)
    text = output_of("doctor", fails=True)
    assert "failed   PyTorch: ImportError('libtorch.so: cannot open shared object" in text
    assert "failed   native trainer: ZeroDivisionError('division by zero')" in text
    assert text.endswith("error: cells cannot be trained here: PyTorch, native trainer")


def test_locks_that_do_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert next(doctor.check_locks(tmp_path))[0] in (doctor.OK, doctor.WARNING)
    monkeypatch.setattr(doctor, "is_locked", lambda path: False)
    assert next(doctor.check_locks(tmp_path))[0] == doctor.FAILED
    assert list(tmp_path.iterdir()) == []


def test_space_and_files_that_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """5 of 4 KiB blocks by the million are 19 GB."""
    full = SimpleNamespace(f_bavail=5_000_000, f_frsize=4096, f_files=10, f_favail=9)
    monkeypatch.setattr(os, "statvfs", lambda folder: full)
    assert list(doctor.check_disk(tmp_path)) == [
        (doctor.OK, "19 GB are free"),
        (doctor.WARNING, "9 more files may be made"),
    ]


def test_accounts_and_partitions_of_profiles(project: Path, monkeypatch: pytest.MonkeyPatch):
    Path("bin").mkdir()
    for name in ("sbatch", "scontrol", "scancel"):
        Path("bin", name).write_text("#!/bin/sh\necho Slurmctld is UP\n")
        Path("bin", name).chmod(0o755)
    monkeypatch.setenv("PATH", str(Path("bin").absolute()), prepend=os.pathsep)
    monkeypatch.setenv("HOME", str(Path("home").absolute()))
    mine = Path("home/.config/snakemake/lab/config.yaml")
    mine.parent.mkdir(parents=True)
    resources = "default-resources: [slurm_account=me, slurm_partition=gpu]"
    mine.write_text(f"executor: slurm\n{resources}\n")
    assert list(doctor.check_slurm_profiles()) == [
        (doctor.OK, "its controller answers"),
        (doctor.WARNING, "profiles/slurm/profile.yaml: account unset, partition unset"),
        (doctor.OK, f"{mine.absolute()}: account me, partition gpu"),
    ]
    Path("bin/scontrol").write_text("#!/bin/sh\necho Slurmctld is DOWN\n")
    ((state, sentence),) = doctor.check_slurm_profiles()
    assert state == doctor.WARNING and "does not answer" in sentence  # cells still train here


def test_data_in_the_mirror_or_not(project: Path):
    Path("mirror").mkdir()
    mnist = load({"studies": "fedentopt", "only": "", "data_mirror": "mirror"})
    result = dict(sentence.split(" ", 1) for _, sentence in doctor.check_raw_files(mnist))
    assert result["cifar10"] == "has to be downloaded; not in the mirror, mirror"
    Path("mirror/cifar-10-python.tar.gz").touch()
    result = dict(sentence.split(" ", 1) for _, sentence in doctor.check_raw_files(mnist))
    assert result["cifar10"] == "is in the mirror, mirror"
