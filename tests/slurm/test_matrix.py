"""A whole matrix: as a lab starts it, and with several cells to a job."""

from __future__ import annotations

import re
import shutil

from cohort.records.record import read
from tests.slurm.conftest import CELLS, Lab
from tests.workflow.conftest import wait_for

PACKED = {
    "groups": ["train=cells"],
    "group-components": [f"cells={CELLS // 2}"],
    "resources": ["slots=1"],
    "set-resource-scopes": ["slots=local"],
    "set-resources": {"train": {"slots": 1, "runtime": 2}},
}


def test_a_matrix_with_the_profile_as_it_is_shipped(lab: Lab):
    """But for how often it asks: from nothing, one job a cell, a card each, memory and time from the estimate."""
    for folder in ("results", "resources/data", "resources/raw"):
        shutil.rmtree(lab.root / folder)
    lab.profile(card=True)
    lab.cells(2)
    lab.replace("config/config.yaml", "device: auto", "device: cpu")  # its cards are none
    output = lab.snakemake("--profile", "lab")
    assert len(lab.records()) == 2, output
    jobs = lab.jobs()
    assert len(jobs) == 4, "one that prepares, one that deals, two that train"
    assert all(job.state == "COMPLETED" and job.restarts == 0 for job in jobs), jobs
    assert [job.cards for job in jobs] == [False, False, True, True]
    assert (lab.root / "results/full/report/index.html").exists()
    assert "Nothing to be done" in lab.snakemake("--profile", "lab")
    assert not list(lab.root.rglob("*.state"))


def test_a_pack_of_the_batched_trainer_is_one_stack(lab: Lab):
    """Three cells that differ in their strategies train together, and one with another J alone."""
    study = lab.study()
    axes = study["experiments"]["one"]["axes"]
    axes |= {"J": ["J2"], "strategy": ["fedavg", "fedprox", "fedentopt"]}
    study["experiments"]["other"] = {"axes": axes | {"J": ["J3"], "strategy": ["fedavg"]}}
    study["figures"]["fig1"]["hue"] = "strategy"
    lab.write(study)
    lab.replace("config/config.yaml", "trainer: auto", "trainer: batched")
    lab.profile(**PACKED)
    output = lab.run()
    assert len(lab.records()) == 4, output
    assert len(lab.jobs()) == 1, output
    assert all(read(path).header["provenance"]["trainer"] == "batched" for path in lab.records())
    logs = [log.read_text() for log in (lab.root / "results/logs/train").rglob("*.log")]
    # each process has a log of its own: two cells were done when theirs began
    assert sorted(log.count("start at round 0") for log in logs) == [0, 0, 1, 1]


def test_a_failed_member_of_a_pack_costs_no_record(lab: Lab):
    """Snakemake deletes what the others of the pack made; what they had finished is put back, and is not trained again."""
    lab.cells(4)
    lab.profile(**PACKED | {"retries": 0})
    paths = set(re.findall(r"results/cells/\S+?\.h5", lab.snakemake("-n", "--quiet", "host")))
    driver = lab.begin()
    wait_for(lab.records)
    leases = [
        (lab.root / path).with_suffix(".state") / "lease" for path in paths
    ]  # which one is first is Snakemake's choice
    bad = [
        lease
        for lease in leases
        if not lease.exists() and not lease.parent.with_suffix(".h5").exists()
    ]
    for lease in bad:
        lease.mkdir(parents=True)
    output, _ = driver.communicate(timeout=300)
    assert driver.returncode == 1 and any(
        f"failed: {lease.parent.relative_to(lab.root).with_suffix('.h5')}" in output
        for lease in bad
    )
    done = {path: read(path).header["provenance"]["sessions"] for path in lab.records()}
    assert 0 < len(done) < 4, output
    for lease in bad:
        shutil.rmtree(lease.parent)
    lab.run()
    assert len(lab.records()) == 4
    assert {path: read(path).header["provenance"]["sessions"] for path in done} == done
    begun = sum(
        log.read_text().count("start at round 0")
        for log in (lab.root / "results/logs/train").rglob("*.log")
    )
    assert begun == 4, "a cell was trained twice"
