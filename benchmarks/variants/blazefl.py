"""BlazeFL's FedAvg in its process pool or, with `--style threads`, its thread pool."""

from __future__ import annotations

import functools
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from blazefl.contrib import (
    FedAvgBaseServerHandler,
    FedAvgProcessPoolClientTrainer,
    FedAvgThreadPoolClientTrainer,
)
from blazefl.core import IPCMode, ModelSelector, PartitionedDataset
from torch import multiprocessing, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from benchmarks.machine import cores
from benchmarks.protocol import serve
from benchmarks.variants.inputs import EpochBatches, arguments, flat, network, shard
from benchmarks.work import SEED, Work, read_work

ENDLESS = 10**6

_work = functools.cache(read_work)


class Networks(ModelSelector):
    """BlazeFL's source of networks: the workload's, with the drawn initial weights."""

    def __init__(self, folder: Path):
        self.folder = folder

    def select_model(self, model_name: StrEnum) -> nn.Module:
        """Build the network, whatever its name."""
        return network(_work(self.folder))


class Clients(PartitionedDataset):
    """BlazeFL's source of samples: a loader per client with the drawn batches of a round."""

    def __init__(self, folder: Path):
        self.folder, self.round = folder, 0

    def get_dataset(self, type_: StrEnum, cid: int) -> Dataset[Any]:
        """A client's samples."""
        return TensorDataset(*shard(_work(self.folder), cid))

    def set_dataset(self, type_: StrEnum, cid: int, dataset: Dataset[Any]) -> None:
        """Keep nothing: samples never change."""

    def get_dataloader(
        self, type_: StrEnum, cid: int, batch_size: int | None = None, generator: Any = None
    ) -> DataLoader[Any]:
        """A client's loader, which indexes tensors with whole batches."""
        batches = EpochBatches(_work(self.folder), self.round, cid)
        return DataLoader(self.get_dataset(type_, cid), batch_size=None, sampler=batches)


def trainer_of(work: Work, style: str, **options: Any) -> Any:
    """BlazeFL's client trainer with as many processes or threads as there are cores."""
    load = work.workload
    options |= {
        "num_clients": load.clients,
        "epochs": load.epochs,
        "batch_size": load.batch,
        "lr": load.lr,
        "num_parallels": cores(),
    }
    if style == "threads":
        return FedAvgThreadPoolClientTrainer(**options)
    folder = options["dataset"].folder / "blazefl"
    return FedAvgProcessPoolClientTrainer(
        **options,
        share_dir=folder / "share",
        state_dir=folder / "state",
        ipc_mode=IPCMode.SHARED_MEMORY,
    )


def main() -> None:
    """Serve FedAvg rounds; the result is the global weights."""
    multiprocessing.set_start_method("fork")  # or workers would import torch anew in each round
    options = arguments()
    work, clients = _work(options.folder), Clients(options.folder)
    load = work.workload
    # BlazeFL's trainers name only a learning rate.
    settings: Any = {"momentum": load.momentum, "weight_decay": load.weight_decay}
    mock.patch.object(torch.optim, "SGD", functools.partial(torch.optim.SGD, **settings)).start()
    shared = {
        "model_selector": Networks(options.folder),
        "model_name": "",
        "dataset": clients,
        "device": "cpu",
        "seed": SEED,
    }
    server = FedAvgBaseServerHandler(
        **shared,
        global_round=ENDLESS,
        num_clients=load.clients,
        sample_ratio=(load.cohort + 0.5) / load.clients,
        batch_size=load.batch,
    )
    torch.optim.SGD(server.model.parameters())  # the first one imports torch._dynamo, for a second
    trainer, rounds = trainer_of(work, options.style, **shared), count(1)

    def step() -> None:
        clients.round = next(rounds)
        trainer.local_process(server.downlink_package(), work.cohort(clients.round))
        for package in trainer.uplink_package():
            server.load(package)

    serve(step, lambda: flat(server.model.parameters()))


if __name__ == "__main__":
    main()
