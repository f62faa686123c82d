"""Slots of GPUs, held by processes on stand-in GPUs: never too many, all used, freed by a kill."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from cohort.core.errors import UserError
from cohort.training.job import gpus
from cohort.training.job.gpus import placed, visible_cards
from tests.workflow.conftest import wait_for

HOLDER = """
import sys
from pathlib import Path
from cohort.training.job import gpus
from cohort.training.job.gpus import slot

folder, slots, *names = sys.argv[1:]
tell = lambda: print("waiting", flush=True)
with slot(names, int(slots), waiting=tell, folder=Path(folder)) as place:
    print(names[place], flush=True)
    sys.stdin.read()
"""


class Holder:
    """A process that asks for a slot and holds it until `release`."""

    def __init__(self, folder: Path, slots: int, *names: str):
        self.output = folder.with_name(f"{folder.name}-{len(list(folder.parent.iterdir()))}.out")
        with open(self.output, "w") as stream:
            command = [sys.executable, "-c", HOLDER, str(folder), str(slots), *names]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=stream, stderr=subprocess.STDOUT
            )

    @property
    def said(self) -> list[str]:
        return self.output.read_text().split()

    @property
    def gpu(self) -> str | None:
        return next((word for word in self.said if word != "waiting"), None)

    def release(self) -> None:
        self.process.communicate()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


Holding = Callable[..., Holder]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holding]:
    started = []

    def start(slots: int, *names: str) -> Holder:
        started.append(Holder(tmp_path / "cards", slots, *names))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def test_six_processes_on_two_gpus_with_two_slots(holder: Holding):
    holders = [holder(2, "A", "B") for _ in range(6)]
    wait_for(lambda: all(each.said for each in holders))
    assert Counter(each.gpu for each in holders) == {"A": 2, "B": 2, None: 2}
    first = next(each for each in holders if each.gpu == "A")
    first.kill()
    wait_for(lambda: sum(each.gpu is None for each in holders) == 1)
    assert Counter(each.gpu for each in holders if each is not first) == {"A": 2, "B": 2, None: 1}
    second = next(each for each in holders if each.gpu == "B")
    second.release()
    wait_for(lambda: all(each.gpu for each in holders))
    assert Counter(each.gpu for each in holders if each not in (first, second)) == {"A": 2, "B": 2}
    assert (
        sum(each.said.count("waiting") for each in holders) == 2
    )  # each waiting process printed one line


def taken(*holders: Holder) -> str:
    wait_for(lambda: all(each.gpu for each in holders))
    return "".join(each.gpu or "" for each in holders)


def test_the_gpu_with_the_fewest_taken_slots_comes_first(holder: Holding):
    order = []
    for names in ("ABC", "ABC", "BA", "ABC", "ABC"):
        order.append(holder(3, *names))
        taken(*order)
    assert (
        taken(*order) == "ABBCA"
    )  # B and A have one each when the third asks for the first of its own list
    order[1].kill()
    order[2].kill()
    assert taken(holder(3, "A", "B", "C")) == "B"


def test_a_process_that_sees_one_gpu_waits_for_it(holder: Holding):
    other, mine = holder(1, "A", "B"), holder(1, "B", "A")
    assert taken(other, mine) == "AB"
    late = holder(1, "B")
    wait_for(lambda: late.said)
    other.release()
    freed = holder(1, "A", "B")
    assert taken(freed) == "A" and late.said == ["waiting"]
    mine.release()
    assert taken(late) == "B"


def test_a_process_that_wants_a_gpu_alone_waits_until_it_is_free(holder: Holding):
    """Two working directories may ask for different numbers of slots; each keeps to its own."""
    sharing = [holder(3, "A") for _ in range(3)]
    taken(*sharing)
    alone = holder(1, "A")
    for each in sharing:
        wait_for(lambda: alone.said == ["waiting"])
        each.release()
    assert taken(alone) == "A"


def pretend(
    monkeypatch: pytest.MonkeyPatch,
    uuids: list[str],
    visible: str | None = None,
    job: str | None = None,
) -> None:
    """Pretend that the machine has these GPUs."""
    for name, value in (("CUDA_VISIBLE_DEVICES", visible), ("SLURM_JOB_ID", job)):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(
            name, value
        )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(uuids))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(uuids))
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda n: SimpleNamespace(uuid=uuids[n])
    )
    monkeypatch.setattr(torch.cuda, "set_device", lambda n: None)


def test_gpus_are_identified_by_uuid(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, ["a1", "b2"])
    assert visible_cards() == ["a1", "b2"]
    pretend(monkeypatch, ["b2"], visible="1")
    assert visible_cards() == ["b2"]
    pretend(monkeypatch, ["b2", "a1"], visible="GPU-b2, GPU-a1")
    assert visible_cards() == ["b2", "a1"]
    pretend(monkeypatch, ["a1"], visible="MIG-GPU-a1/3/0")
    assert visible_cards() == ["MIG-GPU-a1/3/0"]


def test_on_which_device_a_cell_trains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(gpus.tempfile, "gettempdir", lambda: str(tmp_path))
    pretend(monkeypatch, ["a1", "b/2"])
    with placed("auto", 1) as first, placed("cuda", 1) as second:
        assert (first, second) == (torch.device("cuda:0"), torch.device("cuda:1"))
    with placed("cpu", 1) as where:
        assert where == torch.device("cpu")
    pretend(monkeypatch, ["a1"], job="17")
    with placed("auto", 1) as first, placed("auto", 1) as second:
        assert first == second == torch.device("cuda:0")  # the scheduler gave it to both
    pretend(monkeypatch, ["a1", "b/2"], job="17")
    with placed("auto", 1) as first, placed("auto", 1) as second:
        assert {first.index, second.index} == {0, 1}  # Snakemake within one large job
    pretend(monkeypatch, [])
    with placed("auto", 1) as where:
        assert where == torch.device("cpu")
    with (
        pytest.raises(UserError, match="device is cuda, but no GPU is seen here"),
        placed("cuda", 1),
    ):
        pass
