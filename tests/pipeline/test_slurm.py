"""How the driver learns from SLURM what became of its jobs."""

import asyncio
import queue
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cohort.pipeline import slurm
from cohort.pipeline.slurm import ExecutorPatch, HeldJob, held_jobs


class Executor:
    """Forgets its jobs where SLURM does not answer, and waits for all others, as the plugin does."""

    def __init__(self):
        self.answers, self.wait = True, True
        self._status_query_failures = 0
        self.succeeded: list[str] = []
        self.failed: list[str] = []

    async def check_active_jobs(self, active_jobs: list[SimpleNamespace]) -> AsyncIterator:
        if not self.answers:
            self._status_query_failures += 1
            return
        for job in active_jobs:
            yield job

    async def sleep(self) -> None:
        await asyncio.sleep(3600)

    def _report_job_error_threadsafe(self, job: SimpleNamespace, message: str) -> None:
        self.failed.append(message)

    def report_job_success(self, job: SimpleNamespace) -> None:
        self.succeeded.append(job.external_jobid)


def program(folder: Path, name: str, *lines: str) -> None:
    (folder / name).write_text("\n".join(["#!/bin/sh", *lines, ""]))
    (folder / name).chmod(0o755)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, whose `bin` is all that is on the PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def watched(executor: Executor, missing: set[str]) -> ExecutorPatch:
    dag = SimpleNamespace(reason=lambda job: SimpleNamespace(missing_output=missing))
    scheduler, settings = SimpleNamespace(_executor=executor), SimpleNamespace()
    watch = ExecutorPatch(SimpleNamespace(scheduler=scheduler, dag=dag, executor_settings=settings))
    assert settings.status_attempts == 1
    return watch


def check(executor: Executor, jobs: list[SimpleNamespace]) -> list[SimpleNamespace]:
    async def unfinished() -> list[SimpleNamespace]:
        return [job async for job in executor.check_active_jobs(jobs)]

    return asyncio.run(unfinished())


def job(number: str, file: str) -> SimpleNamespace:
    """A job of SLURM's and Snakemake's job with one output that it runs."""
    inner = SimpleNamespace(output=[file], is_group=lambda: False)
    return SimpleNamespace(job=inner, external_jobid=number)


@pytest.mark.parametrize("answers", [True, False])
def test_a_job_whose_output_exists_twice_has_succeeded(here: Path, answers: bool):
    """Unless it existed before the job, which is then to make it again."""
    executor = Executor()
    executor.answers = answers
    watched(executor, missing={"a.h5", "b.h5"})
    jobs = [job(name, f"{name}.h5") for name in "abc"]
    Path("c.h5").touch()
    assert check(executor, jobs) == jobs
    Path("a.h5").touch()
    assert check(executor, jobs) == jobs and not executor.succeeded
    assert check(executor, jobs) == jobs[1:] and executor.succeeded == ["a"]


def test_a_job_that_has_begun_deletes_the_output_and_makes_it_again(here: Path):
    """So its output, an orphan's, says nothing; if cancelled before it begins, it does."""
    program(here / "bin", "scancel", 'echo "$@" >> cancelled')
    program(here / "bin", "squeue", 'case "$*" in *--jobs*) cat running;; esac')
    executor, jobs = Executor(), [job("7", "a.h5")]
    watched(executor, missing={"a.h5"})
    Path("a.h5").touch()
    Path("running").write_text("7 RUNNING\n")
    assert check(executor, jobs) == check(executor, jobs) == jobs and not executor.succeeded
    assert Path("cancelled").read_text() == "--state=PENDING 7\n"
    Path("running").write_text("")
    assert check(executor, jobs) == [] and executor.succeeded == ["7"]


def test_the_end_of_the_driver_waits_for_no_check(here: Path):
    executor = Executor()
    watched(executor, set())
    executor.wait = False
    asyncio.run(asyncio.wait_for(executor.sleep(), timeout=10))


def test_a_job_is_submitted_again_where_the_limit_is_reached(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(slurm, "RESUBMIT_SECONDS", 0)
    executor = Executor()
    executor.run_job = None
    submitted: queue.Queue = queue.Queue()
    executor._job_submission_executor = SimpleNamespace(submit=lambda run, job: submitted.put(job))
    patch = watched(executor, set())
    for _ in range(2):
        executor._report_job_error_threadsafe(job("", "a.h5"), "error: QOSMaxSubmitJobPerUserLimit")
        assert submitted.get(timeout=10).output == ["a.h5"]
    assert capsys.readouterr().err.count("sbatch says 'MaxSubmit'") == 1
    executor._report_job_error_threadsafe(job("", "a.h5"), "error: Invalid account")
    assert executor.failed == ["error: Invalid account"]
    executor.wait = False
    patch._submit(job("", "a.h5").job)  # the driver has ended
    assert submitted.empty()


def test_held_jobs_of_this_folder(here: Path, capsys: pytest.CaptureFixture[str]):
    assert held_jobs() == []
    digest = "k0123456789ab"
    comment = f"rule_train_wildcards_digits_iid_{digest}"
    program(
        here / "bin",
        "squeue",
        f"echo '7|JobHeldUser|{comment}|{here}'",
        f"echo '8|job requeued in held state|(null)|{here}'",
        "echo '9|Priority|two'",
        f"echo 'lines|{here}'",
        f"echo '10|JobHeldUser|{comment}|/elsewhere'",
    )
    held = [HeldJob("7", "JobHeldUser", (digest,)), HeldJob("8", "job requeued in held state", ())]
    assert held_jobs() == held
    executor = Executor()
    watched(executor, set())
    for _ in range(2):
        check(executor, [job("7", "a.h5")])
    assert capsys.readouterr().err == "{}\n{}\n".format(*held)
    assert str(held[0]).startswith(f"held by SLURM: job 7 ({digest}), JobHeldUser\n")


def test_a_controller_that_does_not_answer_holds_no_job(
    here: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(slurm, "SECONDS", 0.2)
    program(here / "bin", "squeue", "exec sleep 60")
    assert held_jobs() == []
