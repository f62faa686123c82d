"""`cohort doctor` on machines that lack something."""

import errno
import os
from pathlib import Path

import pytest

from cohort.commands import start
from cohort.pipeline.slurm import SLURM_COMMANDS
from cohort.plan import Plan, load
from tests.commands.conftest import output_of


def test_a_healthy_machine_and_one_without_the_gpu_that_it_should_have(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", "/nothing")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    text = output_of("doctor")
    assert "ok       SLURM: not on this machine" in text and "data: digits is here" in text
    assert "ok       GPU: PyTorch sees none" in text and " locks: work" in text
    monkeypatch.setattr(start.files, "is_locked", lambda path: False)
    text = output_of("doctor", "--config", "device=cuda", fails=True)
    assert text.endswith("error: cells cannot be trained here: locks, GPU")


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Lustre without `flock` and NFS without a lock daemon refuse the call itself."""
    assert start.locks_hold(tmp_path)

    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", refuse)
    assert not start.locks_hold(tmp_path)


@pytest.mark.parametrize(("answer", "state"), [("UP", "ok"), ("DOWN", "warning")])
def test_slurm_that_answers_or_not(
    plan: Plan, answer: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in SLURM_COMMANDS:
        (tmp_path / name).write_text(f"#!/bin/sh\necho Slurmctld is {answer}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert {name: ended for name, ended, _ in start.findings(plan)}["SLURM"] == state


def test_data_in_the_mirror_or_not(project: Path):
    Path("mirror").mkdir()
    plan = load({"studies": "fedentopt", "only": "", "data_mirror": "mirror"})
    sentence = "cifar10 has to be downloaded; data_mirror is 'mirror'"
    assert ("warning", sentence) in start.check_raw_files(plan)
    Path("mirror/cifar-10-python.tar.gz").touch()
    assert ("ok", "cifar10 is in the mirror, mirror") in start.check_raw_files(plan)
