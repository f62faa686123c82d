"""Concatenated networks: a linear classifier on the features of several networks."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from cohort.training.cursor import strip_prefix
from cohort.training.trainers.local_work import local_steps
from cohort.training.trainers.optimizers import local_optimizer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates, Weights, stack

CLASSIFIER = "classifier."


class Concatenated(nn.Module):
    """The networks of all clusters and one classifier on their concatenated features.

    Until the module is `joined`, its output is the logarithm of the networks' mean probabilities.
    Then it is that of the classifier; the networks are frozen feature extractors in evaluation
    mode.
    """

    def __init__(self, network: nn.Module, clusters: int, seed: int):
        super().__init__()
        self.networks = nn.ModuleList(
            copy.deepcopy(network) for _ in range(clusters)
        ).requires_grad_(False)
        last = last_linear(network)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            classifier = nn.Linear(
                clusters * last.in_features, last.out_features, dtype=last.weight.dtype
            )
        self.classifier = classifier.to(last.weight.device)
        self.joined = False

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.joined:
            answers = torch.stack([network(inputs).log_softmax(dim=1) for network in self.networks])
            return answers.logsumexp(dim=0) - math.log(len(self.networks))
        self.networks.eval()  # trainers set all modules to training mode
        with torch.no_grad():
            seen = torch.cat([features(network, inputs) for network in self.networks], dim=1)
        scores: Tensor = self.classifier(seen)
        return scores


def last_linear(network: nn.Module) -> nn.Linear:
    """The last linear layer of a network."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)][-1]


def features(network: nn.Module, inputs: Tensor) -> Tensor:
    """The input of a network's last linear layer."""
    seen: list[Tensor] = []
    with last_linear(network).register_forward_pre_hook(
        lambda layer, inputs_of_layer: seen.append(inputs_of_layer[0])
    ):
        network(inputs)
    return seen[0]


def initial_weights(network: Concatenated, weights: Weights) -> Weights:
    """The initial weights of concatenated networks: each network starts with a copy of `weights`,
    the classifier with its own."""
    parts = {
        f"{prefix_of(cluster)}{name}": tensor
        for cluster in range(len(network.networks))
        for name, tensor in weights.items()
    }
    return {
        name: tensor.detach().clone() for name, tensor in (network.state_dict() | parts).items()
    }


def summed_classifiers(network: Concatenated, weights: Weights) -> Weights:
    """The weights of a classifier whose outputs are the sums of the networks' outputs."""
    network.load_state_dict(weights)
    heads = [last_linear(network_of_cluster) for network_of_cluster in network.networks]
    weight, bias = (
        torch.cat([layer.weight for layer in heads], dim=1),
        torch.stack([layer.bias for layer in heads]).sum(dim=0),
    )
    return {f"{CLASSIFIER}weight": weight.detach(), f"{CLASSIFIER}bias": bias.detach()}


def train_classifier(
    network: Concatenated,
    trainer: SerialTrainer,
    weights: Weights,
    clients: np.ndarray,
    round: int,
    lr: float,
) -> Updates:
    """Train the classifier on each client for the local work J, but at most one epoch. The updates
    have equal sizes, because all clients take about the same number of steps."""
    settings, start = trainer.settings, strip_prefix(weights, CLASSIFIER)
    network.load_state_dict(weights)
    anchor = [weights[name] for name, _ in network.named_parameters()]
    models, losses = [], []
    for work in trainer.full_work(weights, clients, round):
        network.classifier.load_state_dict(start)
        optimizer = local_optimizer(settings, network.classifier.parameters(), lr)
        once = replace(work, end=local_steps(len(work.samples), settings)[1])
        losses.append(trainer.run(once, optimizer, anchor))
        models.append(copy_weights(network.classifier.state_dict()))
    sizes = torch.ones(len(models), dtype=torch.float64, device=losses[0].device)
    steps = torch.tensor([len(values) for values in losses])
    means = torch.stack([values.mean() for values in losses])
    return Updates(stack(models), sizes, steps, means)


def copy_weights(weights: Mapping[str, Tensor]) -> Weights:
    """Copy weights, so that training does not change the originals."""
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


def prefix_of(cluster: int) -> str:
    """The prefix of the names of a cluster's weights."""
    return f"networks.{cluster}."


def merge_parts(
    weights: Weights, trained: Mapping[str, Updates]
) -> tuple[Weights, dict[str, float]]:
    """Replace each trained part of the weights by the mean of its updates, weighted by data size.
    `trained` holds the updates by the prefix of a part's weights. Returns the new weights and the
    mean training loss and update norm."""
    changed, losses, norms = dict(weights), [], []
    for prefix, updates in trained.items():
        mean = updates.mean(updates.sizes / updates.sizes.sum())
        changed |= {f"{prefix}{name}": tensor for name, tensor in mean.items()}
        losses.append(updates.losses)
        norms.append(updates.distances(strip_prefix(weights, prefix)))
    measured = {"train_loss": losses, "update_norm": norms} if trained else {}
    return changed, {name: float(torch.cat(values).mean()) for name, values in measured.items()}
