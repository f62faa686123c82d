"""FedConcat: clusters of clients with like labels train a network each, and one classifier learns from all of these together."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cohort.cell.evaluations import is_evaluated
from cohort.core.components import build, parameter
from cohort.core.randomness import generator, torch_seed
from cohort.selection import SELECTORS, Selector
from cohort.selection.entropy import entropy_bits
from cohort.training.procedures.federated import view_of
from cohort.training.procedures.procedure import Load, Procedure

if TYPE_CHECKING:
    from cohort.training.procedures.concat.network import Concatenated
    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.trainers.serial import SerialTrainer
    from cohort.training.updates import Updates

Trained = dict[str, "Updates"]  # by how the names of the weights begin that were trained


@dataclass(frozen=True, kw_only=True)
class Concat(Procedure):
    """Stage 1: FedAvg within each cluster, among those of its clients that the cohort has. Stage 2: the networks are frozen, and the cohort
    trains a linear classifier on what their last layers see, by a few batches each; every client counts the same.

    All rounds together are those of the settings, so that a client of the cohort is asked as often as in FedAvg. The learning rate decays
    from its first value in each stage: one that went on from stage 1 would leave nothing to learn with. What the authors' code does not
    report, the model of stage 1, is here the mean of the answers of all clusters' networks.
    """

    name: ClassVar[str] = "concat"
    clusters: int = parameter(minimum=1, help="how many clusters")
    classifier: float = parameter(
        0.2,
        exclusiveMinimum=0,
        exclusiveMaximum=1,
        help="share of the rounds that train the classifier",
    )
    steps: int = parameter(
        3,
        minimum=1,
        help="batches that a client trains the classifier by, of one pass over its samples at most",
    )
    balanced: int = parameter(
        0,
        minimum=0,
        maximum=1,
        help="1: no cluster has more than 1.2 times the mean number of clients",
    )
    warm: int = parameter(
        0,
        minimum=0,
        maximum=1,
        help="1: the classifier begins as the sum of the clusters' own, not at random",
    )

    def check(self, settings: Mapping[str, Any]) -> None:
        selector = build(SELECTORS, settings["selector"])
        if settings["schedule"] != "constant":
            raise ValueError(
                f"follows lr_decay, not the schedule '{settings['schedule']}', which is for centralized runs; leave it out"
            )
        if self.clusters > settings["clients"]:
            raise ValueError(
                f"makes {self.clusters} clusters, but there are only {settings['clients']} clients"
            )
        if settings["rounds"] < 2:
            raise ValueError(
                "needs a round for the clusters and one for the classifier: rounds must be at least 2"
            )
        if settings["server"]["name"] != "average":
            raise ValueError(
                f"averages within clusters, and has no use for the server rule '{settings['server']['name']}'"
            )
        if settings["participation"] != "full":
            raise ValueError(
                f"hears everybody whom it asks: participation is '{settings['participation']}'; leave it out"
            )
        if type(selector).quotas is not Selector.quotas or type(selector).keep is not Selector.keep:
            raise ValueError(
                f"trains every client that is asked on all that it has: the selector '{selector.name}' wants it otherwise"
            )
        if selector.probing() or selector.needs - {"label_counts"}:
            raise ValueError(
                f"has no global model to show to the selector '{selector.name}': it takes one that sees label counts at most"
            )

    def stage(self, round: int, rounds: int) -> int:
        """Which stage a round is in: at least one round is in each."""
        return 1 if round <= self.load(rounds).rounds else 2

    def load(self, rounds: int) -> Load:
        last = min(max(1, round(self.classifier * rounds)), rounds - 1)
        return Load(rounds - last, last * self.steps * self.clusters, self.clusters)

    def network(self, task: Task, round: int) -> Concatenated:
        from cohort.training.procedures.concat.network import Concatenated

        network = Concatenated(
            task.model, self.clusters, torch_seed(task.settings.seed, "classifier")
        )
        network.joined = self.stage(round, task.settings.rounds) == 2
        return network

    def of_clients(self, state: RunState) -> dict[str, np.ndarray]:
        return {"cluster": state.server["cluster"].cpu().numpy()}

    def begin(self, task: Task) -> RunState:
        import torch

        from cohort.training.procedures.concat.clusters import clustered
        from cohort.training.procedures.concat.network import begun
        from cohort.training.state import RunState

        seed = task.settings.seed
        found = clustered(
            task.shards.label_counts,
            self.clusters,
            generator(seed, "clusters"),
            bool(self.balanced),
        )
        weights = begun(self.network(task, 0), task.initial_weights())
        memory = task.selector.begin(view_of(task), generator(seed, "selection"))
        return RunState(weights, {"cluster": torch.from_numpy(found)}, memory)

    def rounds(self, task: Task, state: RunState) -> Iterator[RunState]:
        from cohort.training.evaluation import all_finite, evaluate
        from cohort.training.needs import bytes_once
        from cohort.training.procedures.concat.network import merged
        from cohort.training.trainers.serial import SerialTrainer

        settings, selector, history = task.settings, task.selector, state.history
        data = (task.objective, task.train_samples, task.shards.indices)
        network = self.network(task, state.round)
        trainer = SerialTrainer(task.model, settings, *data)
        finisher = SerialTrainer(network, replace(settings, J=f"J{self.steps}"), *data)
        view, candidates = view_of(task), np.arange(settings.clients)
        once = bytes_once(selector.needs | {"label_counts"}, settings.clients, task.classes)

        for round in range(state.round + 1, settings.rounds + 1):
            started = time.perf_counter()
            stage = self.stage(round, settings.rounds)
            network.joined = stage == 2
            cohort = selector.select(
                state.selector, candidates, view, generator(settings.seed, "selection", round=round)
            )
            asked = cohort[task.sizes[cohort] > 0]  # clients without samples have no say
            if stage == 1:
                trained = self._networks(trainer, state, asked, round)
            else:
                trained = self._classifier(network, finisher, state, asked, round)
            state.weights, measured = merged(state.weights, trained)
            state.selector = selector.observe(state.selector, cohort, {}, view)
            state.round, state.diverged = round, not all_finite(state.weights)

            history.cohorts.append(cohort)
            measured |= {
                "cohort_entropy": float(entropy_bits(task.shards.label_counts[cohort].sum(axis=0))),
                "stage": stage,
            }
            history.add(
                round, **measured, **({"clusters_trained": len(trained)} if stage == 1 else {})
            )
            if (
                is_evaluated(settings.evaluate_every, round)
                or round == settings.rounds
                or state.diverged
            ):
                history.add(
                    round,
                    **evaluate(network, state.weights, task.test_samples, task.test).of("test"),
                )
                if len(task.validation):
                    history.add(
                        round,
                        **evaluate(network, state.weights, task.train_samples, task.validation).of(
                            "validation"
                        ),
                    )
            sent, returned = self._bytes(task, state)
            history.add_cost(
                round,
                bytes_down=sent,
                bytes_up=returned + (once if round == 1 else 0),
                client_steps=sum(int(updates.steps.sum()) for updates in trained.values()),
                selection_samples=0,
                seconds=time.perf_counter() - started,
            )
            yield state
            if state.diverged:
                return

    def _networks(
        self, trainer: SerialTrainer, state: RunState, asked: np.ndarray, round: int
    ) -> Trained:
        """Each client trains its cluster's network."""
        from cohort.training.procedures.concat.network import part, prefix_of

        clusters = state.server["cluster"].cpu().numpy()[asked]
        members = {
            prefix_of(cluster): asked[clusters == cluster]
            for cluster in np.unique(clusters).tolist()
        }
        return {
            prefix: trainer.train(part(state.weights, prefix), these, round)
            for prefix, these in members.items()
        }

    def _classifier(
        self,
        network: Concatenated,
        trainer: SerialTrainer,
        state: RunState,
        asked: np.ndarray,
        round: int,
    ) -> Trained:
        """Each client trains the classifier."""
        from cohort.training.procedures.concat.network import (
            CLASSIFIER,
            heads_joined,
            train_classifier,
        )

        settings = trainer.settings
        number = round - self.load(settings.rounds).rounds  # of the round within its stage
        if self.warm and number == 1:
            state.weights = state.weights | heads_joined(network, state.weights)
        if not len(asked):
            return {}
        lr = settings.lr * settings.lr_decay ** (number - 1)
        return {CLASSIFIER: train_classifier(network, trainer, state.weights, asked, round, lr)}

    def _bytes(self, task: Task, state: RunState) -> tuple[int, int]:
        """What the last round's cohort was sent and sent back: the networks of its clusters, or the classifier. With its first classifier a
        client is sent all networks, without their own last layers."""
        from cohort.training.procedures.concat.network import CLASSIFIER, head, part, prefix_of
        from cohort.training.updates import size_in_bytes

        cohorts, rounds = state.history.cohorts, task.settings.rounds
        whole = size_in_bytes(part(state.weights, prefix_of(0)))
        if self.stage(state.round, rounds) == 1:
            return len(cohorts[-1]) * whole, len(cohorts[-1]) * whole
        encoders = self.clusters * (whole - size_in_bytes(head(task.model).state_dict()))
        earlier = cohorts[self.load(rounds).rounds : -1]
        new = np.setdiff1d(cohorts[-1], np.concatenate(earlier) if earlier else [])
        classifiers = len(cohorts[-1]) * size_in_bytes(part(state.weights, CLASSIFIER))
        return classifiers + len(new) * encoders, classifiers
