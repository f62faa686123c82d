"""FedLab in one process: its serial client trainer and synchronous server."""

from __future__ import annotations

import logging
from itertools import count
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.protocol import serve
from benchmarks.variants.inputs import Augmented, EpochBatches, arguments, flat, network, shard
from benchmarks.work import Work, read_work
from cohort.models.networks import from_torchvision

# FedLab imports torchvision, which fails with some builds of torch unless imported this way.
from_torchvision("transforms")

from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer  # noqa: E402
from fedlab.contrib.algorithm.basic_server import SyncServerHandler  # noqa: E402


class Clients:
    """The data set in the interface of FedLab: a loader per client with the drawn batches."""

    def __init__(self, given: Work):
        self.given, self.round = given, 0

    def get_dataloader(self, client: int, batch_size: int) -> DataLoader[Any]:
        """A client's loader for the current round; each pass over it is one epoch."""
        load = self.given.workload
        data = (
            Augmented(self.given, client)
            if load.augmentation != "none"
            else TensorDataset(*shard(self.given, client))
        )
        return DataLoader(data, batch_sampler=EpochBatches(self.given, self.round, client))


class Trainer(SGDSerialClientTrainer):
    """FedLab's trainer with the momentum and weight decay that it lacks."""

    def __init__(self, given: Work, logger: logging.Logger):
        super().__init__(network(given), given.workload.clients, cuda=False, logger=logger)
        self.workload = given.workload

    def setup_optim(self, epochs: int, batch_size: int, lr: float) -> None:
        """Replace FedLab's optimizer by one with momentum and weight decay."""
        super().setup_optim(epochs, batch_size, lr)
        load = self.workload
        self.optimizer = torch.optim.SGD(
            self._model.parameters(), lr, momentum=load.momentum, weight_decay=load.weight_decay
        )

    def train(self, parameters: Tensor, loader: DataLoader[Any]) -> list[Tensor]:
        """Train one client; return its weights. Momentum starts at zero."""
        self.optimizer.state.clear()
        return super().train(parameters, loader)


def main() -> None:
    """Serve FedAvg rounds; the result is the global weights."""
    given = read_work(arguments().folder)
    load, logger = given.workload, logging.getLogger("fedlab")
    logger.setLevel(logging.ERROR)
    server = SyncServerHandler(
        network(given), 10**6, sample_ratio=(load.cohort + 0.5) / load.clients, logger=logger
    )
    server.num_clients = load.clients
    clients, trainer, rounds = Clients(given), Trainer(given, logger), count(1)
    trainer.setup_dataset(clients)
    trainer.setup_optim(load.epochs, load.batch, load.lr)

    def step() -> None:
        clients.round = next(rounds)
        trainer.local_process(server.downlink_package, given.cohort(clients.round))
        for package in trainer.uplink_package:
            server.load(package)

    serve(step, lambda: flat([server.model_parameters]))


if __name__ == "__main__":
    main()
