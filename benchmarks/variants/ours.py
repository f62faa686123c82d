"""Ours: the pipeline's own round on its own task, in a process set up as a cell's job is."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.protocol import serve
from benchmarks.variants.given import arguments, flat, given_work, network
from benchmarks.work import MEAN, SCALE, SEED, STD, Work
from cohort.cell.settings import Settings
from cohort.data.samples import Samples
from cohort.data.shards import Shards
from cohort.selection.random import Random
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.participation import parse_participation
from cohort.training.precision import set_up
from cohort.training.procedures import parse_procedure
from cohort.training.schedules import parse_schedule
from cohort.training.servers.average import Average
from cohort.training.task import Task
from cohort.training.trainers import trainer_for

ENDLESS = 10**6  # rounds, and rounds between two evaluations


def task_of(given: Work, trainer: str = "auto") -> Task:
    """FedAvg on this work."""
    samples, shards = samples_of(given), _shards(given)
    model = network(given).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    settings = _settings(given)
    return Task(
        settings=settings,
        selector=Random(),
        objective=CrossEntropy(),
        server=Average(),
        schedule=parse_schedule("constant"),
        participation=parse_participation("full"),
        model=model,
        classes=given.workload.classes,
        train_samples=samples,
        test_samples=samples,
        test=torch.arange(1),
        reserved=torch.arange(0),
        validation=torch.arange(0),
        shards=shards,
        trainer=trainer_for(trainer, torch.device("cpu"), model, settings),
    )


def samples_of(given: Work) -> Samples:
    """All samples as the pipeline keeps them."""
    channel = torch.ones(given.workload.shape[0], 1, 1)
    return Samples(
        torch.from_numpy(given.values),
        torch.from_numpy(given.labels),
        SCALE,
        MEAN * channel,
        STD * channel,
    )


def _settings(given: Work) -> Settings:
    names = (
        "model",
        "J",
        "clients",
        "cohort",
        "batch",
        "lr",
        "momentum",
        "weight_decay",
        "augmentation",
    )
    said = {name: getattr(given.workload, name) for name in names}
    return Settings(
        dataset="none",
        partition="iid",
        strategy="fedavg",
        seed=SEED,
        rounds=ENDLESS,
        evaluate_every=ENDLESS,
        **said,
    )


def _shards(given: Work) -> Shards:
    clients, classes = range(given.workload.clients), given.workload.classes
    held = [np.arange(len(given.labels))[given.shard(client)] for client in clients]
    return Shards(
        held, np.stack([np.bincount(given.labels[indices], minlength=classes) for indices in held])
    )


def main() -> None:
    """Rounds, when told to."""
    set_up("float32", torch.device("cpu"))
    said = arguments()
    task = task_of(given_work(said.folder), said.trainer)
    procedure = parse_procedure("federated")
    state = procedure.begin(task)
    rounds = procedure.rounds(task, state)
    serve(lambda: next(rounds), lambda: flat(state.weights.values()))


if __name__ == "__main__":
    main()
