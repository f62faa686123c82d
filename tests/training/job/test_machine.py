"""GPU slots, held by processes on made-up GPUs: never too many, all in use, freed by a kill; how
processors are told apart; and what reduced precision does to a round."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import Tensor

from cohort.core.errors import UserError
from cohort.data.samples import Samples
from cohort.models import MODELS
from cohort.training.job import machine as gpu_slots
from cohort.training.job.machine import acquire_device, set_up, visible_gpus
from cohort.training.task import Task
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.trainers.stacked import StackedTrainer
from cohort.training.trainers.trainer import Trainer
from tests.training.small_task import small_task, train
from tests.workflow.conftest import wait_for

CPU = torch.device("cpu")
HOLDER = """
import sys
from pathlib import Path
from cohort.training.job import machine as gpu_slots
from cohort.training.job.machine import hold_gpu_slot

folder, slots, *names = sys.argv[1:]
waiting = lambda: print("waiting", flush=True)
with hold_gpu_slot(names, int(slots), waiting=waiting, folder=Path(folder)) as gpu:
    print(names[gpu], flush=True)
    sys.stdin.read()
"""


class Holder:
    """A process that takes a slot and holds it until it is released."""

    def __init__(self, folder: Path, slots: int, *names: str):
        self.output = folder.with_name(f"{folder.name}-{len(list(folder.parent.iterdir()))}.out")
        with open(self.output, "w") as stream:
            command = [sys.executable, "-c", HOLDER, str(folder), str(slots), *names]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=stream, stderr=subprocess.STDOUT
            )

    @property
    def output_words(self) -> list[str]:
        return self.output.read_text().split()

    @property
    def gpu(self) -> str | None:
        return next((word for word in self.output_words if word != "waiting"), None)

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
        started.append(Holder(tmp_path / "gpus", slots, *names))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def test_six_processes_on_two_gpus_with_two_slots(holder: Holding):
    jobs = [holder(2, "A", "B") for _ in range(6)]
    wait_for(lambda: all(job.output_words for job in jobs))
    assert Counter(job.gpu for job in jobs) == {"A": 2, "B": 2, None: 2}
    first = next(job for job in jobs if job.gpu == "A")
    first.kill()
    wait_for(lambda: sum(job.gpu is None for job in jobs) == 1)
    assert Counter(job.gpu for job in jobs if job is not first) == {"A": 2, "B": 2, None: 1}
    second = next(job for job in jobs if job.gpu == "B")
    second.release()
    wait_for(lambda: all(job.gpu for job in jobs))
    assert Counter(job.gpu for job in jobs if job not in (first, second)) == {"A": 2, "B": 2}
    # each says once that it waits
    assert sum(job.output_words.count("waiting") for job in jobs) == 2


def taken(*holders: Holder) -> str:
    wait_for(lambda: all(holder.gpu for holder in holders))
    return "".join(holder.gpu or "" for holder in holders)


def test_the_least_used_gpu_comes_first(holder: Holding):
    order = []
    for names in ("ABC", "ABC", "BA", "ABC", "ABC"):
        order.append(holder(3, *names))
        taken(*order)
    # B and A hold one each when the third asks: the first of its own list
    assert taken(*order) == "ABBCA"
    order[1].kill()
    order[2].kill()
    assert taken(holder(3, "A", "B", "C")) == "B"


def pretend(
    monkeypatch: pytest.MonkeyPatch, uuids: list[str], visible: str = "", job: str = ""
) -> None:
    """Pretend to be a machine with these GPUs."""
    group = "k0123456789ab" if job else ""
    variables = {"CUDA_VISIBLE_DEVICES": visible, "SLURM_JOB_ID": job, "COHORT_GROUP": group}
    for name, value in variables.items():
        monkeypatch.delenv(name, raising=False)
        if value:
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(uuids))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(uuids))
    properties = [SimpleNamespace(uuid=uuid) for uuid in uuids]
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties.__getitem__)
    monkeypatch.setattr(torch.cuda, "set_device", lambda n: None)


def test_gpus_are_named_by_their_uuids(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, ["a1", "b2"])
    assert visible_gpus() == ["a1", "b2"]
    pretend(monkeypatch, ["b2"], visible="1")
    assert visible_gpus() == ["b2"]
    pretend(monkeypatch, ["b2", "a1"], visible="GPU-b2, GPU-a1")
    assert visible_gpus() == ["b2", "a1"]
    pretend(monkeypatch, ["a1"], visible="MIG-GPU-a1/3/0")
    assert visible_gpus() == ["MIG-GPU-a1/3/0"]


def test_the_device_that_a_cell_gets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(gpu_slots.tempfile, "gettempdir", lambda: str(tmp_path))
    pretend(monkeypatch, ["a1", "b/2"])
    with acquire_device("auto", 1) as first, acquire_device("cuda", 1) as second:
        assert (first, second) == (torch.device("cuda:0"), torch.device("cuda:1"))
    with acquire_device("cpu", 1) as where:
        assert where == torch.device("cpu")
    pretend(monkeypatch, ["a1"], job="17")
    with acquire_device("auto", 1) as first, acquire_device("auto", 1) as second:
        assert {first, second} == {torch.device("cuda:0")}  # the scheduler gave it to both
    monkeypatch.delenv("COHORT_GROUP")
    monkeypatch.setattr(gpu_slots.time, "sleep", Mock(side_effect=TimeoutError))
    with acquire_device("auto", 1), pytest.raises(TimeoutError), acquire_device("auto", 1):
        pass  # Snakemake within one job
    pretend(monkeypatch, ["a1", "b/2"], job="17")
    with acquire_device("auto", 1) as first, acquire_device("auto", 1) as second:
        assert {first.index, second.index} == {0, 1}  # Snakemake within one large job
    pretend(monkeypatch, [])
    with acquire_device("auto", 1) as where:
        assert where == torch.device("cpu")
    sentence = "device is cuda, but no GPU is visible here"
    with pytest.raises(UserError, match=sentence), acquire_device("cuda", 1):
        pass
    pretend(monkeypatch, [], visible="0", job="17")
    sentence = r"SLURM gave this job a GPU \(0\), but PyTorch .* sees none"
    with pytest.raises(UserError, match=sentence), acquire_device("auto", 1):
        pass


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC\ncpu MHz\t: 2600\n", "AMD EPYC (znver5)"),
        ("Features\t: fp asimd\n", "aarch64 (znver5)"),
    ],
)
def test_a_processor_is_named_with_its_microarchitecture(
    cpuinfo: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Virtual machines may hide the model: kernels follow the microarchitecture all the same."""
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    monkeypatch.setattr(gpu_slots, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(gpu_slots.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(gpu_slots.llvm, "get_host_cpu_name", lambda: "znver5")
    assert gpu_slots.cpu_name.__wrapped__() == name


def image_task(precision: str) -> Task:
    """A task of two clients that train on 12 images each for two epochs."""
    rng = np.random.default_rng(8)
    pictures = torch.from_numpy(rng.random((24, 3, 32, 32), dtype=np.float32))
    labels = torch.from_numpy(rng.integers(0, 3, 24))
    samples = Samples(pictures, labels, 1.0, torch.zeros(1), torch.ones(1))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = MODELS["lenet5"]().build((3, 32, 32), 3)
    set_up(precision, CPU)
    settings = {"sizes": (12, 12), "J": "J2e", "batch": 4, "lr": 0.05, "precision": precision}
    return small_task(model=model, train=samples, test=samples, **settings)


def after_a_round(precision: str, kind: type[Trainer]) -> Tensor:
    """All weights of a client after a round."""
    task = image_task(precision)
    updates = train(kind(task), task.initial_weights(), [0, 1])
    return torch.cat([tensor.flatten() for tensor in updates.client_weights(0).values()])


@pytest.mark.usefixtures("float32_again")
@pytest.mark.parametrize("kind", [SerialTrainer, StackedTrainer])
def test_bfloat16_is_close_to_float32_and_keeps_float32_weights(kind: type[Trainer]):
    exact, rough = after_a_round("float32", kind), after_a_round("bfloat16", kind)
    assert rough.dtype == torch.float32
    assert 1e-5 < (rough - exact).norm() / exact.norm() < 1e-2
    assert torch.equal(after_a_round("float32", kind), exact)


@pytest.mark.usefixtures("float32_again")
def test_tf32_is_for_gpus_alone():
    """A record must not say tf32 of a run whose products were those of float32."""
    with pytest.raises(UserError, match=r"^precision is tf32, but a CPU computes"):
        set_up("tf32", CPU)
    for precision, device in (("tf32", torch.device("cuda")), ("float32", CPU), ("bfloat16", CPU)):
        set_up(precision, device)
        allowed = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
        assert allowed == (precision == "tf32",) * 2
