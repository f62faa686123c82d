"""Ours: the pipeline's federated rounds, in a process set up like a cell's job."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import torch

from benchmarks.protocol import serve
from benchmarks.variants.inputs import arguments, flat, network
from benchmarks.work import MEAN, SCALE, SEED, STD, Work, read_work
from cohort.data.samples import Samples
from cohort.data.shards import Shards
from cohort.selection.simple import Random
from cohort.settings import Settings
from cohort.training.job.machine import set_up
from cohort.training.job.train import choose_trainer
from cohort.training.objectives import CrossEntropy
from cohort.training.procedures import parse_procedure
from cohort.training.servers import Average
from cohort.training.task import Task

ENDLESS = 10_000  # rounds, also between evaluations
CPU = torch.device("cpu")


def task_of(work: Work, trainer: str = "auto", device: torch.device = CPU) -> Task:
    """The FedAvg task of the drawn work."""
    samples, shards = samples_of(work, device), _shards(work)
    layout = {"memory_format": torch.channels_last}
    model = network(work).to(device=device, **layout)  # type: ignore[call-overload]
    settings = _settings(work)
    task = Task(
        settings=settings,
        selector=Random(),
        objective=CrossEntropy(),
        server=Average(),
        model=model,
        classes=work.workload.classes,
        train_samples=samples,
        test_samples=samples,
        test=torch.arange(1, device=device),
        reserved=torch.arange(0, device=device),
        validation_samples=samples,
        validation=torch.arange(0, device=device),
        shards=shards,
    )
    return replace(task, trainer=choose_trainer(trainer, device, task)[0])


def samples_of(work: Work, device: torch.device = CPU) -> Samples:
    """All samples in the pipeline's representation."""
    channel = torch.ones(work.workload.shape[0], 1, 1, device=device)
    return Samples(
        torch.from_numpy(work.values).to(device),
        torch.from_numpy(work.labels).to(device),
        SCALE,
        MEAN * channel,
        STD * channel,
    )


def _settings(work: Work) -> Settings:
    names = {field.name for field in fields(Settings)}
    shared = {name: value for name, value in vars(work.workload).items() if name in names}
    endless = {"rounds": ENDLESS, "evaluate_every": ENDLESS}
    unused = {"dataset": "none", "partition": "iid", "strategy": "fedavg"}
    return Settings(**shared | endless | unused, seed=SEED)


def _shards(work: Work) -> Shards:
    clients, classes = range(work.workload.clients), work.workload.classes
    held = [np.arange(len(work.labels))[work.shard(client)] for client in clients]
    return Shards(
        held, np.stack([np.bincount(work.labels[indices], minlength=classes) for indices in held])
    )


def main() -> None:
    """Serve FedAvg rounds; the result is the global weights."""
    options = arguments()
    device = torch.device(options.device)
    set_up("float32", device)
    task = task_of(read_work(options.folder), options.trainer, device)
    procedure = parse_procedure("federated")
    states = [procedure.begin(task)]
    rounds = procedure.rounds_of(task).run(states[0])

    def play() -> None:
        states[0] = next(rounds)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    serve(play, lambda: flat(states[0].weights.values()))


if __name__ == "__main__":
    main()
