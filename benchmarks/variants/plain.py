"""The usual FedAvg loop: a model copy per client, a DataLoader, an average of state dicts."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import count

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset, TensorDataset

from benchmarks.protocol import serve
from benchmarks.variants.inputs import arguments, flat, network, shard, standardized
from benchmarks.work import Work, read_work


class Loop:
    """FedAvg as a plain PyTorch loop: draw a cohort, train each client, average the weights."""

    def __init__(self, work: Work, style: str):
        self.work, self.workload, self.style = work, work.workload, style
        self.model, self.criterion = network(work), nn.CrossEntropyLoss()
        everything = TensorDataset(standardized(work.values), torch.from_numpy(work.labels))
        samples = range(len(work.labels))
        shards = (samples[work.shard(client)] for client in range(work.workload.clients))
        self.clients = [Subset(everything, shard) for shard in shards]

    def round(self, round: int) -> None:
        """Train the round's cohort and average its weights."""
        states = [
            self._train(copy.deepcopy(self.model), round, client)
            for client in self.work.cohort(round)
        ]
        self.model.load_state_dict({name: _mean(states, name) for name in states[0]})

    def _train(self, model: nn.Module, round: int, client: int) -> dict[str, Tensor]:
        load = self.workload
        optimizer = torch.optim.SGD(
            model.parameters(), lr=load.lr, momentum=load.momentum, weight_decay=load.weight_decay
        )
        model.train()
        for images, labels in self._batches(round, client):
            optimizer.zero_grad()
            loss = self.criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        return model.state_dict()

    def _batches(self, round: int, client: int) -> Iterator[list[Tensor]]:
        if self.style == "eager":
            images, labels = shard(self.work, client)
            for (index,) in self.work.batches(round, client):
                yield [images[index : index + 1], labels[index : index + 1]]
            return
        taken = min(self.workload.steps * self.workload.batch, self.workload.size)
        for order in self.work.epochs(round, client):
            yield from DataLoader(
                self.clients[client], self.workload.batch, sampler=order[:taken].tolist()
            )


def _mean(states: Sequence[dict[str, Tensor]], name: str) -> Tensor | int:
    return sum(state[name] / len(states) for state in states)


def main() -> None:
    """Serve FedAvg rounds; the result is the global weights."""
    options = arguments()
    loop, rounds = Loop(read_work(options.folder), options.style), count(1)
    serve(lambda: loop.round(next(rounds)), lambda: flat(loop.model.parameters()))


if __name__ == "__main__":
    main()
