"""How much of a machine's memory its cells may take together."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cohort.pipeline import driver
from cohort.pipeline.driver import MEMORY_SHARE, Driver


class Workflow:
    """A stand-in for the attributes of Snakemake's workflow that the driver reads."""

    def __init__(self, nodes: int | None, **resources: int):
        self.resource_settings, self.global_resources = SimpleNamespace(nodes=nodes), resources
        self.executor_plugin = None

    @property
    def modifier(self) -> Any:
        return SimpleNamespace(is_main_snakefile=lambda: True, modify_rulename=str)

    def register_resource(self, name: str, value: int) -> None:
        self.global_resources[name] = value


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(driver, "CGROUPS", tmp_path / "cgroups")
    monkeypatch.setattr(driver, "OWN_CGROUP", tmp_path / "cgroup")
    return SimpleNamespace(notes=[], datasets={}, config={}, cells={})


def resources(
    plan: Any, nodes: int | None = None, *, dryrun: bool = False, **requested: int
) -> dict[str, int]:
    workflow = Workflow(nodes, **requested)
    process = Driver(plan, workflow)
    process.set_up()
    settings = SimpleNamespace(local_exec=nodes != 100, dryrun_exec=dryrun)
    workflow.executor_plugin = SimpleNamespace(name="some", common_settings=settings)
    if plan:
        process.limit_memory()
    return workflow.global_resources


def test_cells_of_one_machine_take_what_it_has_but_for_a_tenth(plan: Any):
    """A user's own word stands; a cluster looks after its own, and a job does not ask."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    share = pytest.approx(MEMORY_SHARE * memory, abs=1)
    assert resources(plan, _cores=2) == {"_cores": 2, "mem_mb": share}
    assert resources(plan, mem_mb=5000) == {"mem_mb": 5000}
    assert resources(plan, nodes=4) == {"mem_mb": share}  # --jobs 4 without a cluster
    assert resources(plan, mem_mib=5000) == {"mem_mib": 5000}
    assert resources(plan, nodes=100) == resources(plan, nodes=4, dryrun=True) == {}
    assert resources(None) == {}


def test_the_memory_of_a_slurm_job_or_a_container(plan: Any, tmp_path: Path):
    (tmp_path / "cgroup").write_text("0::/job/step\n")
    for group, limit in (("job", "2000000000"), ("job/step", "max")):
        (tmp_path / "cgroups" / group).mkdir(parents=True)
        (tmp_path / "cgroups" / group / "memory.max").write_text(f"{limit}\n")
    assert resources(plan) == {"mem_mb": 1800}
