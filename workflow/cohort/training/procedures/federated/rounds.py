"""What happens in a round of federated learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from cohort.cell.settings import local_work
from cohort.core.randomness import generator
from cohort.selection.abilities import Allocating, Probing, Screening
from cohort.selection.entropy import entropy_bits
from cohort.selection.selector import View
from cohort.training.contract import checked_participation, checked_server
from cohort.training.contract.checked_selector import CheckedSelector
from cohort.training.ledger import Ledger
from cohort.training.procedures.federated import Federated
from cohort.training.procedures.federated.choosing import choose, view_of
from cohort.training.procedures.federated.gathering import Needs, scattered
from cohort.training.procedures.federated.transfers import charge_transfers
from cohort.training.rounds import Rounds
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers import TRAINERS
from cohort.training.trainers.local_work import LocalWork, local_steps
from cohort.training.trainers.profiling import ProfilingTrainer
from cohort.training.updates import Updates, Weights, size_in_bytes

NORM_BYTES = 8  # a probed client sends one number


class Pool(NamedTuple):
    """The clients that a cohort is chosen from, and what is known of them when it is chosen.

    A pool that was asked or probed `has_model`, the global one; a probed pool comes with the local
    models that its clients trained so far.
    """

    clients: np.ndarray
    view: View
    has_model: bool = False
    probes: Updates | None = None


class Asked(NamedTuple):
    """The clients of a cohort, whether each responds, and on how many samples of each class it
    trains."""

    cohort: np.ndarray
    responds: np.ndarray
    label_counts: np.ndarray


class FederatedRounds(Rounds):
    """FedAvg's loop with a selector, an objective, a server rule and a participation of choice."""

    def __init__(self, procedure: Federated, task: Task):
        super().__init__(task)
        self.selector, self.server = CheckedSelector(task.selector), task.server
        self.needs = Needs(task.selector.needs, task)
        data = task.objective, task.train_samples, task.shards.indices
        kind = ProfilingTrainer if procedure.profiled else TRAINERS[task.trainer]
        self.trainer = kind(task.model, task.settings, *data)

    def begin(self) -> RunState:
        weights, rng = self.task.initial_weights(), generator(self.task.settings.seed, "selection")
        reports = self.needs.once()
        chosen = self.selector.begin(view_of(self.task, reports), rng)
        trainable = self.task.trainable(weights)
        memory = checked_server.begin(self.server, trainable, self.task.redrawn_weights)
        return RunState(weights, memory, chosen, reports=reports)

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        pool = self.screen(state, round, ledger)
        cohort = self.choose(state, pool, round, ledger)
        asked = self.ask(cohort, pool, round)
        ledger.responders = cohort[asked.responds]
        updates = self.train(state, asked, pool, round, ledger)
        reports = self.needs.after_training(updates, self.trainer, ledger)
        kept = self.keep(updates, reports)
        weights, memory = self.merge(state, updates, kept, asked, ledger)
        selector = self.learn(state, asked, reports, pool, ledger)
        charge_transfers(self.task.model, weights, 1, ledger)
        return replace(state, weights=weights, server=memory, selector=selector)

    def screen(self, state: RunState, round: int, ledger: Ledger) -> Pool:
        """The clients to choose from: everybody, or a pool that is asked or probed first."""
        if round == 1:
            self.needs.charge_setup(ledger)
        everybody, view = np.arange(self.task.settings.clients), view_of(self.task, state.reports)
        clients, selector = everybody, self.task.selector
        if isinstance(selector, Screening):
            clients = self.selector.draw_pool(everybody, view, self._draw("pool", round))
        if not (self.needs.gathered("before") or isinstance(selector, Probing)):
            return Pool(clients, view)
        ledger.sent("model", self._model_bytes(state), to="clients", copies=len(clients))
        reports = {
            **view.reports,
            **self.needs.before_choosing(state.weights, clients, ledger),
        }
        if not isinstance(selector, Probing):
            return Pool(clients, replace(view, reports=reports), has_model=True)
        probes = self._probe(state, clients, round, selector.batches, ledger)
        before = self.task.trainable(state.weights)
        norms = probes.only(before).distances(before).cpu().numpy()
        ledger.probe = clients, norms
        ledger.sent("probe_norm", NORM_BYTES, to="server", copies=len(clients))
        reports["probe_norm"] = scattered(norms, clients, len(everybody))
        return Pool(clients, replace(view, reports=reports), has_model=True, probes=probes)

    def choose(self, state: RunState, pool: Pool, round: int, ledger: Ledger) -> np.ndarray:
        """The cohort."""
        cohort = choose(self.task, state.selector, pool.clients, pool.view, round, ledger)
        if not pool.has_model:
            ledger.sent("model", self._model_bytes(state), to="clients", copies=len(cohort))
        return cohort

    def ask(self, cohort: np.ndarray, pool: Pool, round: int) -> Asked:
        """Which clients of the cohort respond, and how many samples of each class they use."""
        rng, held = self._draw("answers", round), self.task.shards.label_counts[cohort]
        responds = checked_participation.responds(self.task.participation, cohort, rng)
        label_counts = self.selector.quotas(cohort, pool.view, held)
        return Asked(cohort, responds, label_counts)

    def train(
        self, state: RunState, asked: Asked, pool: Pool, round: int, ledger: Ledger
    ) -> Updates:
        """Train the clients that respond and return their updates."""
        works = self.local_work(state, asked, pool, round)
        updates = self._trained(works, state, ledger)
        if pool.probes is not None:  # a client whose probe was all its work keeps the probe's loss
            rows = [pool.probes.clients.index(client) for client in updates.clients]
            went_on = (updates.steps > 0).to(updates.losses.device)
            losses = updates.losses.where(went_on, pool.probes.losses[rows])
            updates = replace(updates, losses=losses)
        ledger.stepped(int(updates.steps.sum()))
        ledger.sent("model", self._model_bytes(state), to="server", copies=len(updates.clients))
        self.local_models = updates
        return updates

    def local_work(self, state: RunState, asked: Asked, pool: Pool, round: int) -> list[LocalWork]:
        """What each client that responds does: all of J on all its samples, unless the selector
        grants it fewer samples, it is a straggler, or it continues from its probe."""
        settings, efforts, works = self.task.settings, self._efforts(round), []
        selector, trainable = self.task.selector, self.task.trainable(state.weights)
        most, epochs = local_work(settings.J)
        for row in np.flatnonzero(asked.responds):
            client = int(asked.cohort[row])
            samples = self.task.shards.indices[client]
            if isinstance(selector, Allocating):
                samples = self._portion(client, asked.label_counts[row], round)
            per_epoch = local_steps(len(samples), settings)[1]
            weights, begin, end = state.weights, 0, None
            if efforts[client] < most:
                end = efforts[client] * (per_epoch if epochs else 1)
            if pool.probes is not None and isinstance(selector, Probing):
                weights = pool.probes.of_client(pool.probes.clients.index(client))
                begin = per_epoch if epochs else selector.batches
            work = LocalWork(
                client=client,
                round=round,
                weights=weights,
                samples=samples,
                lr=self.trainer.lr(round),
                begin=begin,
                end=end,
                correction=partial(
                    checked_server.control_variate, self.server, state.server, client, trainable
                ),
            )
            works.append(work)
        return works

    def keep(self, updates: Updates, reports: Mapping[str, np.ndarray]) -> np.ndarray:
        """The rows of the updates that count: not those of clients without samples, nor those that
        the selector leaves out."""
        sizes = updates.sizes.cpu().numpy()
        return np.flatnonzero(self.selector.keep(reports, sizes) & (sizes > 0))

    def merge(
        self, state: RunState, updates: Updates, kept: np.ndarray, asked: Asked, ledger: Ledger
    ) -> tuple[Weights, Weights]:
        """The new global weights, and the memory of the server rule. Without any update that counts
        nothing changes."""
        labels = asked.label_counts[asked.responds][kept].sum(axis=0)
        ledger.measured(cohort_entropy=float(entropy_bits(labels)))
        if len(kept) < len(asked.cohort):
            ledger.measured(updates_used=len(kept))
        if not len(kept):
            return state.weights, state.server
        heard, before = updates.of_rows(kept.tolist()), self.task.trainable(state.weights)
        statistics = heard.only(state.weights.keys() - before.keys()).mean(heard.shares())
        heard = heard.only(before)
        ledger.measured(
            train_loss=float(heard.losses.mean()), update_norm=float(heard.distances(before).mean())
        )
        merged, memory, measured = checked_server.apply(self.server, before, heard, state.server)
        ledger.measured(**measured)
        return merged | statistics, memory

    def learn(
        self,
        state: RunState,
        asked: Asked,
        reports: Mapping[str, np.ndarray],
        pool: Pool,
        ledger: Ledger,
    ) -> dict[str, np.ndarray]:
        """The selector's memory after the round: reports come as one row for each client of the
        cohort, NaN for one that did not answer."""
        rows, size = np.flatnonzero(asked.responds), len(asked.cohort)
        with ledger.timed("selecting"), ledger.scoring():
            full = {need: scattered(values, rows, size) for need, values in reports.items()}
            return self.selector.observe(state.selector, asked.cohort, full, pool.view)

    def _probe(
        self, state: RunState, clients: np.ndarray, round: int, batches: int, ledger: Ledger
    ) -> Updates:
        """Train each client of the pool for its first batches."""
        works = self.trainer.work(state.weights, clients, round)
        works = [replace(work, end=batches) for work in works]
        probes = self._trained(works, state, ledger)
        ledger.stepped(int(probes.steps.sum()))
        return probes

    def _trained(self, works: list[LocalWork], state: RunState, ledger: Ledger) -> Updates:
        """The updates after this work, which may be the second part of a round's."""
        with ledger.timed("training"):
            updates = self.trainer.train(works, state.weights, self.cursor.next_work())
        if isinstance(self.trainer, ProfilingTrainer):
            ledger.profile.append(self.trainer.profile())
        return updates

    def _portion(self, client: int, quota: np.ndarray, round: int) -> np.ndarray:
        """As many of a client's samples of each class as its quota says, drawn in each round."""
        rng = self._draw("portion", round, client)
        indices = rng.permutation(self.task.shards.indices[client])
        labels = self.task.train_samples.labels[indices].cpu().numpy()
        return np.concatenate(
            [indices[labels == label][:count] for label, count in enumerate(quota)]
        )

    def _efforts(self, round: int) -> list[int]:
        """How many epochs (or steps) of J each client completes."""
        settings = self.task.settings
        draws = (self._draw("stragglers", number) for number in (0, round))
        most = local_work(settings.J)[0]
        given = self.task.participation, settings.clients, most
        return checked_participation.efforts(*given, *draws).tolist()

    def _draw(self, purpose: str, round: int, client: int = 0) -> np.random.Generator:
        return generator(self.task.settings.seed, purpose, round=round, client=client)

    def _model_bytes(self, state: RunState) -> int:
        """The size in bytes of one transfer of the model, in either direction."""
        return self.server.copies * size_in_bytes(state.weights)
