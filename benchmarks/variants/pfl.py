"""pfl-research in one process: its simulated backend and federated averaging."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.protocol import Channel
from benchmarks.variants.inputs import arguments, flat, network, shard
from benchmarks.work import Work, read_work
from cohort.settings import local_work

ENDLESS = 10**6


class Network(nn.Module):
    """The workload's network with the two methods that pfl requires."""

    def __init__(self, work: Work):
        super().__init__()
        self.layers = network(work)

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """The loss that a local step minimizes."""
        self.train()
        return cross_entropy(self.layers(images), labels)

    def metrics(self, images: Tensor, labels: Tensor) -> dict[str, Weighted]:
        """The metrics of an evaluation."""
        return {"loss": Weighted(float(self.loss(images, labels)) * len(labels), len(labels))}


class ClientDataset(Dataset):
    """A client's samples in one round, in the drawn batches."""

    def __init__(self, work: Work, round: int, client: int):
        super().__init__(raw_data=shard(work, client), user_id=str(client))
        self.work, self.orders = work, iter(work.epochs(round, client).tolist())

    def iter(self, batch_size: int | None) -> Iterator[Any]:
        """Yield the batches of the next epoch.

        In its first round pfl also evaluates all samples at once, before and after training.
        """
        if batch_size in (None, len(self)):
            yield self.raw_data
        else:
            images, labels = self.raw_data
            for batch in torch.tensor(next(self.orders)).split(batch_size):
                yield [images[batch], labels[batch]]


class WaitForDriver(TrainingProcessCallback):
    """A callback that starts each round on the driver's command."""

    def __init__(self, model: nn.Module):
        self.model, self.channel = model, Channel()

    def on_train_begin(self, *, model: Any) -> Metrics:
        """Wait for the driver before the first round."""
        self._wait()
        return Metrics()

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: Any, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """Wait for the driver before the next round."""
        return not self._wait(), Metrics()

    def _wait(self) -> bool:
        return self.channel.wait(lambda: flat(self.model.parameters()))


def main() -> None:
    """Serve FedAvg rounds; the result is the global weights."""
    work = read_work(arguments().folder)
    load = work.workload
    amount, epochs = local_work(load.J)
    trained = count()
    cohorts = (client for round in count(1) for client in work.cohort(round))
    clients = FederatedDataset(
        lambda client: ClientDataset(work, next(trained) // load.cohort + 1, client),
        lambda: next(cohorts),
    )
    model = Network(work)
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=ENDLESS,
            evaluation_frequency=ENDLESS,
            train_cohort_size=load.cohort,
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=clients, val_data=clients),
        model=PyTorchModel(
            model=model,
            local_optimizer_create=lambda parameters, lr: torch.optim.SGD(
                parameters, lr=lr, momentum=load.momentum, weight_decay=load.weight_decay
            ),
            central_optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        ),
        model_train_params=NNTrainHyperParams(
            local_learning_rate=load.lr,
            local_num_epochs=amount if epochs else None,
            local_num_steps=None if epochs else amount,
            local_batch_size=load.batch,
        ),
        model_eval_params=None,
        callbacks=[WaitForDriver(model)],
        send_metrics_to_platform=False,
    )


if __name__ == "__main__":
    main()
