"""Rounds of FedConcat: FedAvg within clusters, then one classifier for all."""

import copy
import math
import warnings
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from cohort.core.randomness import generator, torch_seed
from cohort.selection.entropy import entropy_bits
from cohort.training import contract, rounds
from cohort.training.ledger import Ledger, strip_prefix
from cohort.training.procedures import federated, gathering
from cohort.training.procedures.procedure import Concat
from cohort.training.task import RunState, Task
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates, Weights, local_steps, size_in_bytes

NO_CLUSTER = -1  # the cluster of a client without samples
STARTS = 10  # runs of k-means, of which the best is used
MAX_STEPS = 100  # of balanced k-means
SLACK = 1.2  # largest size of a balanced cluster, relative to the mean
CLASSIFIER = "classifier."
PartUpdates = dict[str, Updates]  # by the prefix of the names of a part's weights


class ConcatRounds(rounds.Rounds):
    """Rounds of FedConcat: stage 1 trains a network in each cluster of clients by FedAvg, stage 2 a
    classifier on the concatenated features of all these networks."""

    def __init__(self, procedure: Concat, task: Task):
        super().__init__(task)
        self.procedure, self.selector = procedure, contract.CheckedSelector(task.selector)
        self.needs = gathering.NeedGatherer(task.selector.needs | {"label_counts"}, task)
        self.cluster_rounds = procedure.cluster_rounds(task.settings.rounds)
        rng, seed = generator(task.settings.seed, "clusters"), task.settings.seed
        wanted = procedure.clusters, rng, bool(procedure.balanced)
        self.cluster_of_client = cluster_clients(task.shards.label_counts, *wanted)
        clusters = int(self.cluster_of_client.max()) + 1
        self.concatenated = Concatenated(task.model, clusters, torch_seed(seed, "classifier"))
        few_steps = replace(task.settings, J=f"J{procedure.steps}")
        self.trainer = task.trainer(task)
        whole = replace(task, model=self.concatenated, settings=few_steps)
        self.classifier_trainer = ClassifierTrainer(whole)

    def network(self, round: int) -> "Concatenated":
        self.concatenated.joined = round > self.cluster_rounds
        return self.concatenated

    def client_arrays(self, state: RunState) -> dict[str, np.ndarray]:
        return {"cluster": state.server["cluster"].cpu().numpy()}

    def begin(self) -> RunState:
        task, rng = self.task, generator(self.task.settings.seed, "selection")
        weights = self.concatenated.initial_weights(task.initial_weights())
        needs, everybody = task.selector.needs, range(task.settings.clients)
        reports = gathering.NeedGatherer(needs, task).gather("once", everybody, Ledger())
        memory = self.selector.begin(task.view(reports), rng)
        clusters = {"cluster": torch.from_numpy(self.cluster_of_client)}
        return RunState(weights, clusters, memory, reports=reports)

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        task, view = self.task, self.task.view(state.reports)
        everybody = np.arange(task.settings.clients)
        cohort = federated.select(task, state.selector, everybody, view, round, ledger).clients
        labels = task.shards.label_counts[cohort].sum(axis=0)
        ledger.record(cohort_entropy=float(entropy_bits(labels)))
        start, holders = state.weights, cohort[task.sizes[cohort] > 0]
        is_first = round <= self.cluster_rounds
        with ledger.timed("training"):
            if is_first:
                trained = self.train_networks(state, holders, round)
            else:
                network = self.network(round)
                if self.procedure.warm and round == self.cluster_rounds + 1:
                    start = start | network.summed_classifiers(start)
                trained = self.train_classifier(start, holders, round)
        weights, measured = merge_parts(start, trained)
        ledger.record(**measured, stage=1 if is_first else 2)
        if is_first:
            ledger.record(clusters_trained=len(trained))
        ledger.add("client_steps", sum(int(updates.steps.sum()) for updates in trained.values()))
        self.charge(state, round, ledger)
        selector = self.selector.observe(state.selector, cohort, {}, view)
        return replace(state, weights=weights, selector=selector)

    def train_networks(self, state: RunState, cohort: np.ndarray, round: int) -> PartUpdates:
        """Train each client on its cluster's network; return updates by prefix of the weights."""
        clusters, trained = state.server["cluster"].cpu().numpy()[cohort], {}
        for cluster in np.unique(clusters).tolist():
            prefix = prefix_of(cluster)
            weights = strip_prefix(state.weights, prefix)
            works = self.trainer.full_work(weights, cohort[clusters == cluster], round)
            trained[prefix] = self.trainer.train(works, weights, self.cursor)
        return trained

    def train_classifier(self, weights: Weights, cohort: np.ndarray, round: int) -> PartUpdates:
        """Train the classifier on each client for a few steps, but at most one epoch. The updates
        have equal sizes, because all clients take about the same number of steps."""
        if not len(cohort):
            return {}
        trainer, works = self.classifier_trainer, []
        lr = trainer.lr(round if self.procedure.continued else round - self.cluster_rounds)
        for work in trainer.full_work(weights, cohort, round):
            epoch = local_steps(len(work.samples), trainer.settings)[1]
            works.append(replace(work, lr=lr, end=epoch))
        updates = trainer.train(works, weights, self.cursor)
        ones, parts = torch.ones_like(updates.sizes), strip_prefix(updates.weights, CLASSIFIER)
        return {CLASSIFIER: replace(updates, sizes=ones, weights=parts)}

    def charge(self, state: RunState, round: int, ledger: Ledger) -> None:
        """Record the round's traffic: each client receives and sends its cluster's network or the
        classifier; with its first one it also receives all networks without their last layers."""
        if round == 1:
            self.needs.charge("once", self.task.settings.clients, ledger)
        cohort, network = ledger.cohort, size_in_bytes(strip_prefix(state.weights, prefix_of(0)))
        classifier = size_in_bytes(strip_prefix(state.weights, CLASSIFIER))
        is_first = round <= self.cluster_rounds
        payload, size = ("network", network) if is_first else ("classifier", classifier)
        ledger.add_traffic(payload, size, to="clients", copies=len(cohort))
        ledger.add_traffic(payload, size, to="server", copies=len(cohort))
        if not is_first:
            encoder = network - size_in_bytes(last_linear(self.task.model).state_dict())
            earlier = state.history.cohorts[self.cluster_rounds :]
            new = np.setdiff1d(cohort, np.concatenate([[], *earlier]))
            size = len(self.concatenated.networks) * encoder
            ledger.add_traffic("encoders", size, to="clients", copies=len(new))


class ClassifierTrainer(SerialTrainer):
    """Trains the classifier of `Concatenated`, whose other weights are frozen."""

    def empty_rows(self, count: int) -> Weights:
        rows, part = super().empty_rows(count), strip_prefix(self.state, CLASSIFIER)
        self.state = {f"{CLASSIFIER}{name}": tensor for name, tensor in part.items()}
        return {name: rows[name] for name in self.state}


class Concatenated(nn.Module):
    """The networks of all clusters and one classifier on their concatenated features. Until the
    module is `joined`, its output is the logarithm of the networks' mean probabilities. Then it is
    that of the classifier; the networks are frozen feature extractors in evaluation mode."""

    def __init__(self, network: nn.Module, clusters: int, seed: int):
        super().__init__()
        copies = [copy.deepcopy(network) for _ in range(clusters)]
        self.networks = nn.ModuleList(copies).requires_grad_(False)
        last = last_linear(network)
        inputs, outputs = clusters * last.in_features, last.out_features
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            classifier = nn.Linear(inputs, outputs, dtype=last.weight.dtype)
        self.classifier = classifier.to(last.weight.device)
        self.joined = False

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.joined:
            answers = torch.stack([network(inputs).log_softmax(dim=1) for network in self.networks])
            return answers.logsumexp(dim=0) - math.log(len(self.networks))
        self.networks.eval()  # trainers set all modules to training mode
        with torch.no_grad():
            seen = torch.cat([features(network, inputs) for network in self.networks], dim=1)
        return self.classifier(seen)

    def initial_weights(self, weights: Weights) -> Weights:
        """Weights with which each network starts as a copy of `weights`, the classifier its own."""
        initial = self.state_dict()
        for cluster in range(len(self.networks)):
            initial |= {f"{prefix_of(cluster)}{name}": value for name, value in weights.items()}
        return {name: tensor.detach().clone() for name, tensor in initial.items()}

    def summed_classifiers(self, weights: Weights) -> Weights:
        """The weights of a classifier whose outputs are the sums of the networks' outputs."""
        self.load_state_dict(weights)
        heads = [last_linear(network) for network in self.networks]
        weight = torch.cat([layer.weight for layer in heads], dim=1)
        bias = torch.stack([layer.bias for layer in heads]).sum(dim=0)
        return {f"{CLASSIFIER}weight": weight.detach(), f"{CLASSIFIER}bias": bias.detach()}


def prefix_of(cluster: int) -> str:
    """The prefix of the names of a cluster's weights."""
    return f"networks.{cluster}."


def last_linear(network: nn.Module) -> nn.Linear:
    """The last linear layer of a network."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)][-1]


def features(network: nn.Module, inputs: Tensor) -> Tensor:
    """The input of a network's last linear layer."""
    seen: list[Tensor] = []
    with last_linear(network).register_forward_pre_hook(lambda layer, args: seen.append(args[0])):
        network(inputs)
    return seen[0]


def merge_parts(weights: Weights, trained: PartUpdates) -> tuple[Weights, dict[str, float]]:
    """Replace each trained part of the weights by the mean of its updates, weighted by data size;
    return the new weights and the mean training loss and update norm."""
    changed, losses, norms = dict(weights), [], []
    for prefix, updates in trained.items():
        mean = updates.weighted_sum(updates.shares())
        changed |= {f"{prefix}{name}": tensor for name, tensor in mean.items()}
        losses.append(updates.losses)
        norms.append(updates.distances(strip_prefix(weights, prefix)))
    measured = {"train_loss": losses, "update_norm": norms} if trained else {}
    return changed, {name: float(torch.cat(values).mean()) for name, values in measured.items()}


def cluster_clients(
    label_counts: np.ndarray, clusters: int, rng: np.random.Generator, balanced: bool = False
) -> np.ndarray:
    """Cluster clients by k-means on label distributions: the cluster of each client, NO_CLUSTER for
    one without samples. Clusters are numbered in the order of their first clients; there are fewer
    than `clusters` if there are fewer distinct distributions."""
    sizes = label_counts.sum(axis=1)
    holders = np.flatnonzero(sizes)
    shares = label_counts[holders] / sizes[holders, None]
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distributions than clusters
        kmeans = KMeans(min(clusters, len(holders)), n_init=STARTS, random_state=seed).fit(shares)
    labels = _balance_clusters(shares, kmeans.cluster_centers_) if balanced else kmeans.labels_
    _, first, label = np.unique(labels, return_index=True, return_inverse=True)
    of_client = np.full(len(label_counts), NO_CLUSTER)
    of_client[holders] = np.argsort(np.argsort(first))[label]
    return of_client


def _balance_clusters(shares: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Cluster clients by Lloyd's algorithm with optimal assignments within a limit of size."""
    clients, clusters = len(shares), len(centers)
    max_size = max(int(SLACK * clients / clusters), -(-clients // clusters))
    labels = np.full(clients, NO_CLUSTER)
    for _ in range(MAX_STEPS):
        distances = np.square(shares[:, None] - centers).sum(axis=2)
        taken = linear_sum_assignment(np.repeat(distances, max_size, axis=1))[1] // max_size
        if (taken == labels).all():
            break
        labels, centers = taken, centers.copy()
        for number in np.unique(labels):
            centers[number] = shares[labels == number].mean(axis=0)
    return labels
