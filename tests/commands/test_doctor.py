"""`cohort doctor` on machines that lack something."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cohort.commands import doctor
from cohort.plan import Plan, load


def test_a_healthy_machine_and_one_without_the_gpu_that_it_should_have(
    plan: Plan, output_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", "/nothing")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    text = output_of("doctor")
    assert "ok       SLURM: not on this machine" in text and "data: digits is here" in text
    assert "ok       GPU: PyTorch sees none" in text and " locks: work" in text
    text = output_of("doctor", "--config", "device=cuda", fails=True)
    assert text.endswith("error: cells cannot be trained here: GPU")


def test_locks_that_do_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert doctor.check_locks(tmp_path)[0] in (doctor.OK, doctor.WARNING)
    monkeypatch.setattr(doctor, "is_locked", lambda path: False)
    assert doctor.check_locks(tmp_path)[0] == doctor.FAILED
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("answer", "state"), [("UP", "ok"), ("DOWN", "warning")])
def test_slurm_that_answers_or_not(
    answer: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("sbatch", "scontrol", "scancel", "squeue", "sacct"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho Slurmctld is {answer}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert doctor.check_slurm_commands()[0] == state


def test_data_in_the_mirror_or_not(project: Path):
    Path("mirror").mkdir()
    plan = load({"studies": "fedentopt", "only": "", "data_mirror": "mirror"})
    sentence = "cifar10 has to be downloaded; not in the mirror, mirror"
    assert sentence in dict(map(reversed, doctor.check_raw_files(plan)))
    Path("mirror/cifar-10-python.tar.gz").touch()
    assert (doctor.OK, "cifar10 is in the mirror, mirror") in doctor.check_raw_files(plan)
