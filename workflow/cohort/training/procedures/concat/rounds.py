"""Rounds of FedConcat: FedAvg within clusters, then one classifier for all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from cohort.core.randomness import generator, torch_seed
from cohort.selection.entropy import entropy_bits
from cohort.training.contract.checked_selector import CheckedSelector
from cohort.training.cursor import strip_prefix
from cohort.training.ledger import Ledger
from cohort.training.procedures.concat import Concat
from cohort.training.procedures.concat.clusters import cluster_clients
from cohort.training.procedures.concat.concatenated import (
    CLASSIFIER,
    Concatenated,
    initial_weights,
    last_linear,
    merge_parts,
    prefix_of,
    summed_classifiers,
    train_classifier,
)
from cohort.training.procedures.federated.choosing import choice_metrics, select, view_of
from cohort.training.procedures.federated.gathering import NeedGatherer
from cohort.training.rounds import Rounds
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers import TRAINERS
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates, size_in_bytes

Trained = dict[str, Updates]
"""Updates by the prefix of the weights that were trained."""


class ConcatRounds(Rounds):
    """Rounds of FedConcat: stage 1 trains a network in each cluster of clients by FedAvg, stage 2 a
    classifier on the concatenated features of all these networks."""

    def __init__(self, procedure: Concat, task: Task):
        super().__init__(task)
        self.procedure, self.selector = procedure, CheckedSelector(task.selector)
        self.needs = NeedGatherer(task.selector.needs | {"label_counts"}, task)
        data = task.objective, task.train_samples, task.shards.indices
        seed = task.settings.seed
        counts, rng = task.shards.label_counts, generator(seed, "clusters")
        self.cluster_of_client = cluster_clients(
            counts, procedure.clusters, rng, bool(procedure.balanced)
        )
        clusters = int(self.cluster_of_client.max()) + 1
        self.concatenated = Concatenated(task.model, clusters, torch_seed(seed, "classifier"))
        few_steps = replace(task.settings, J=f"J{procedure.steps}")
        self.trainer = TRAINERS[task.trainer](task.model, task.settings, *data)
        self.classifier_trainer = SerialTrainer(self.concatenated, few_steps, *data)

    def network(self, round: int) -> Concatenated:
        self.concatenated.joined = self._stage(round) == 2
        return self.concatenated

    def client_arrays(self, state: RunState) -> dict[str, np.ndarray]:
        return {"cluster": state.server["cluster"].cpu().numpy()}

    def begin(self) -> RunState:
        task, rng = self.task, generator(self.task.settings.seed, "selection")
        weights = initial_weights(self.concatenated, task.initial_weights())
        reports = NeedGatherer(task.selector.needs, task).gather_once()
        memory = self.selector.begin(view_of(task, reports), rng)
        clusters = {"cluster": torch.from_numpy(self.cluster_of_client)}
        return RunState(weights, clusters, memory, reports=reports)

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        cohort = self.choose(state, round, ledger)
        with ledger.timed("training"):
            if self._stage(round) == 1:
                start, trained = state, self.train_networks(state, cohort, round)
            else:
                start = self.begin_classifier(state, round)
                trained = self.train_classifier(start, cohort, round)
        weights = self.merge(start, trained, round, ledger)
        self.charge(state, trained, round, ledger)
        view = view_of(self.task, state.reports)
        selector = self.selector.observe(state.selector, ledger.cohort, {}, view)
        return replace(state, weights=weights, selector=selector)

    def choose(self, state: RunState, round: int, ledger: Ledger) -> np.ndarray:
        """Choose the cohort and return its clients that hold samples."""
        task, candidates = self.task, np.arange(self.task.settings.clients)
        view = view_of(task, state.reports)
        chosen_from = self.selector, state.selector, candidates, view
        cohort = select(task, *chosen_from, round, ledger)
        ledger.measured(**choice_metrics(task, *chosen_from, cohort))
        labels = task.shards.label_counts[cohort].sum(axis=0)
        ledger.measured(cohort_entropy=float(entropy_bits(labels)))
        return cohort[task.sizes[cohort] > 0]

    def train_networks(self, state: RunState, cohort: np.ndarray, round: int) -> Trained:
        """Train each client on its cluster's network."""
        clusters, trained = state.server["cluster"].cpu().numpy()[cohort], {}
        for cluster in np.unique(clusters).tolist():
            prefix = prefix_of(cluster)
            weights = strip_prefix(state.weights, prefix)
            works = self.trainer.full_work(weights, cohort[clusters == cluster], round)
            trained[prefix] = self.trainer.train(works, weights, self.cursor.next_call())
        return trained

    def begin_classifier(self, state: RunState, round: int) -> RunState:
        """The state, with a warm classifier if stage 2 begins with this round and starts warm."""
        if not self.procedure.warm or self._round_of_stage_2(round) > 1:
            return state
        network = self.network(round)
        return replace(state, weights=state.weights | summed_classifiers(network, state.weights))

    def train_classifier(self, state: RunState, cohort: np.ndarray, round: int) -> Trained:
        """Train the classifier on each client."""
        if not len(cohort):
            return {}
        settings, network = self.task.settings, self.network(round)
        lr = settings.lr * settings.lr_decay ** (self._round_of_stage_2(round) - 1)
        updates = train_classifier(
            network, self.classifier_trainer, state.weights, cohort, round, lr, self.cursor
        )
        return {CLASSIFIER: updates}

    def merge(
        self, state: RunState, trained: Trained, round: int, ledger: Ledger
    ) -> dict[str, torch.Tensor]:
        """Average networks or classifier over clients, and record metrics; return all weights."""
        weights, measured = merge_parts(state.weights, trained)
        stage = self._stage(round)
        ledger.measured(**measured, stage=stage)
        if stage == 1:
            ledger.measured(clusters_trained=len(trained))
        ledger.stepped(sum(int(updates.steps.sum()) for updates in trained.values()))
        return weights

    def charge(self, state: RunState, trained: Trained, round: int, ledger: Ledger) -> None:
        """Record the round's traffic: each client of the cohort downloads and uploads its cluster's
        network, or the classifier. With its first classifier a client also downloads all networks,
        without their last layers."""
        if round == 1:
            self.needs.charge_setup(ledger)
        cohort, cohorts = ledger.cohort, state.history.cohorts
        network = size_in_bytes(strip_prefix(state.weights, prefix_of(0)))
        if self._stage(round) == 1:
            ledger.sent("network", network, to="clients", copies=len(cohort))
            ledger.sent("network", network, to="server", copies=len(cohort))
            return
        encoder = network - size_in_bytes(last_linear(self.task.model).state_dict())
        earlier = cohorts[self.procedure.cluster_rounds(self.task.settings.rounds) :]
        new = np.setdiff1d(cohort, np.concatenate(earlier) if earlier else [])
        classifier = size_in_bytes(strip_prefix(state.weights, CLASSIFIER))
        ledger.sent("classifier", classifier, to="clients", copies=len(cohort))
        ledger.sent("classifier", classifier, to="server", copies=len(cohort))
        encoders = len(self.concatenated.networks) * encoder
        ledger.sent("encoders", encoders, to="clients", copies=len(new))

    def _stage(self, round: int) -> int:
        return self.procedure.stage(round, self.task.settings.rounds)

    def _round_of_stage_2(self, round: int) -> int:
        return round - self.procedure.cluster_rounds(self.task.settings.rounds)
