"""Flower's server and client apps: FedAvg on the drawn cohorts and batches."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from torch.nn.functional import cross_entropy

from benchmarks.protocol import Channel
from benchmarks.variants.inputs import flat, network, shard
from benchmarks.work import Work, read_work

client_app = ClientApp()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Run a client's local work on one thread, as there is one actor per core."""
    config = message.content["config"]
    work = _work(config["folder"])
    round, client = int(config["server-round"]), int(config["client"])
    load = work.workload
    model = network(work)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    model.train()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=load.lr, momentum=load.momentum, weight_decay=load.weight_decay
    )
    inputs, labels = shard(work, client)
    for batch in work.batches(round, client):
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs[batch]), labels[batch])
        loss.backward()
        optimizer.step()
    metrics = MetricRecord({"num-examples": load.size, "loss": float(loss.detach())})
    return Message(
        content=RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}),
        reply_to=message,
    )


@functools.cache
def _work(folder: str) -> Work:
    torch.set_num_threads(1)
    return read_work(Path(folder))


class DrivenFedAvg(FedAvg):
    """FedAvg that starts each round on the driver's command.

    The k-th sampled node trains as the k-th client of the drawn cohort.
    """

    def __init__(self, folder: Path, channel: Channel):
        self.folder, self.work, self.channel = folder, read_work(folder), channel
        load = self.work.workload
        super().__init__(
            fraction_train=(load.cohort + 0.5) / load.clients
            if load.cohort < load.clients
            else 1.0,
            fraction_evaluate=0.0,
            min_train_nodes=load.cohort,
            min_available_nodes=load.clients,
        )

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Wait for the driver, then address the round's messages to the drawn cohort."""
        if not self.channel.wait(lambda: flat(arrays.to_torch_state_dict().values())):
            raise SystemExit
        messages = list(super().configure_train(server_round, arrays, config, grid))
        for message, client in zip(messages, self.work.cohort(server_round), strict=True):
            instructions = ConfigRecord(
                {"server-round": server_round, "client": client, "folder": str(self.folder)}
            )
            message.content = RecordDict({"arrays": arrays, "config": instructions})
        return messages


def server(folder: Path, channel: Channel) -> ServerApp:
    """A server app that starts from the drawn weights and runs until the driver hangs up."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        strategy = DrivenFedAvg(folder, channel)
        weights = ArrayRecord(network(strategy.work).state_dict())
        strategy.start(
            grid=grid, initial_arrays=weights, train_config=ConfigRecord({}), num_rounds=10**6
        )

    return app
