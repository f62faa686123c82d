"""Rounds of federated learning, step by step as in the papers' algorithm boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from cohort.cell.settings import local_work
from cohort.core.randomness import generator
from cohort.selection.entropy import entropy_bits
from cohort.selection.selector import State, View
from cohort.training.contract import checked_participation, checked_server
from cohort.training.contract.checked_selector import CheckedSelector
from cohort.training.ledger import Ledger
from cohort.training.procedures.federated import Federated
from cohort.training.procedures.federated.allocating import allocated_samples
from cohort.training.procedures.federated.choosing import choice_metrics, select, view_of
from cohort.training.procedures.federated.gathering import NeedGatherer, scatter_rows
from cohort.training.procedures.federated.probing import NORM_BYTES, Probes, probing_work
from cohort.training.procedures.federated.timing import Clock
from cohort.training.rounds import Rounds
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers import TRAINERS
from cohort.training.trainers.local_work import LocalWork, local_steps
from cohort.training.trainers.profiling import StepRecordingTrainer
from cohort.training.updates import Updates, Weights, size_in_bytes


class Pool(NamedTuple):
    """The clients that a cohort is chosen from, and what the selector knows of them. A pool whose
    clients were asked or probed has the global model already (`has_model`)."""

    clients: np.ndarray
    view: View
    has_model: bool = False
    probes: Probes | None = None


class Responders(NamedTuple):
    """A cohort (client), which of its clients respond (client), and on how many samples of each
    class each of them trains (client, class)."""

    cohort: np.ndarray
    responds: np.ndarray
    label_counts: np.ndarray


class FederatedRounds(Rounds):
    """FedAvg's loop with a selector, an objective, a server rule and a participation of choice."""

    def __init__(self, procedure: Federated, task: Task):
        super().__init__(task)
        self.selector, self.server = CheckedSelector(task.selector), task.server
        self.needs, self.clock = NeedGatherer(task.selector.needs, task), Clock(task)
        data = task.objective, task.train_samples, task.shards.indices
        kind = StepRecordingTrainer if procedure.profiled else TRAINERS[task.trainer]
        self.trainer = kind(task.model, task.settings, *data)

    def begin(self) -> RunState:
        weights, rng = self.task.initial_weights(), generator(self.task.settings.seed, "selection")
        reports = self.needs.gather_once(self.expected_seconds(weights))
        selector = self.selector.begin(view_of(self.task, reports), rng)
        trainable = self.task.trainable(weights)
        memory = checked_server.begin(self.server, trainable, self.task.other_initial_weights)
        return RunState(weights, memory, selector, reports=reports)

    def expected_seconds(self, weights: Weights) -> np.ndarray:
        """The simulated seconds of each client for a round with all of J."""
        settings, sizes = self.task.settings, self.task.sizes
        steps = np.array([local_steps(size, settings)[0] for size in sizes])
        return self.clock.seconds(np.arange(len(sizes)), steps, 2 * self._model_bytes(weights))

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        pool = self.screen(state, round, ledger)
        cohort = self.choose(state, pool, round, ledger)
        responders = self.respond(cohort, pool, round, ledger)
        works = self.local_work(state, responders, pool, round)
        updates = self.train(state, works, pool, ledger)
        reports = self.report(state, works, updates, pool, ledger)
        kept = self.keep(updates, reports)
        weights, memory = self.merge(state, updates, kept, responders, ledger)
        selector = self.observe(state, responders, reports, pool, ledger)
        self.charge_transfers(1, ledger)
        return replace(state, weights=weights, server=memory, selector=selector)

    def screen(self, state: RunState, round: int, ledger: Ledger) -> Pool:
        """The pool to choose from: all clients, or those that the selector draws; asked or probed
        if the selector wants that."""
        if round == 1:
            self.needs.charge_setup(ledger)
        clients, view = np.arange(self.task.settings.clients), view_of(self.task, state.reports)
        if self.selector.draws_pool:
            clients = self.selector.draw_pool(clients, view, self._rng("pool", round))
        pool = Pool(clients, view)
        asks = bool(self.needs.gathered_at("before")) and self.selector.asks(state.selector, view)
        if asks or self.selector.probe_batches:
            ledger.sent(
                "model", self._model_bytes(state.weights), to="clients", copies=len(clients)
            )
        if asks:
            pool = self.ask(state, pool, round, ledger)
        pool = self.probe(state, pool, round, ledger) if self.selector.probe_batches else pool
        if asks or pool.probes:
            steps = pool.probes.updates.steps.cpu().numpy() if pool.probes else 0
            self.wait(
                clients,
                self.clock.seconds(clients, steps, self._model_bytes(state.weights)),
                ledger,
            )
        return pool

    def ask(self, state: RunState, pool: Pool, round: int, ledger: Ledger) -> Pool:
        """Gather what a pool's clients report of the global model; return the pool with these
        reports."""
        reports = self.needs.gather_before_choosing(state.weights, pool.clients, round, ledger)
        view = replace(pool.view, reports={**pool.view.reports, **reports})
        return pool._replace(view=view, has_model=True)

    def probe(self, state: RunState, pool: Pool, round: int, ledger: Ledger) -> Pool:
        """Train a pool's clients on their first batches; return the pool with their probes."""
        works = self.trainer.full_work(state.weights, pool.clients, round)
        batches = self.selector.probe_batches
        works = [probing_work(work, batches, self.task.settings) for work in works]
        probes = Probes(self._train_works(works, state, ledger), batches)
        norms = probes.norms(self.task.trainable(state.weights))
        ledger.probe = pool.clients, norms
        ledger.stepped(int(probes.updates.steps.sum()))
        ledger.sent("probe_norm", NORM_BYTES, to="server", copies=len(norms))
        rows = scatter_rows(norms, pool.clients, self.task.settings.clients)
        view = replace(pool.view, reports={**pool.view.reports, "probe_norm": rows})
        return pool._replace(view=view, has_model=True, probes=probes)

    def choose(self, state: RunState, pool: Pool, round: int, ledger: Ledger) -> np.ndarray:
        """Choose the cohort, send it the model, and record metrics of the choice."""
        chosen_from = self.selector, state.selector, pool.clients, pool.view
        cohort = select(self.task, *chosen_from, round, ledger)
        ledger.measured(**choice_metrics(self.task, *chosen_from, cohort))
        if not pool.has_model:
            ledger.sent("model", self._model_bytes(state.weights), to="clients", copies=len(cohort))
        return cohort

    def respond(self, cohort: np.ndarray, pool: Pool, round: int, ledger: Ledger) -> Responders:
        """Draw which clients of the cohort respond, and ask the selector for their quotas."""
        rng, held = self._rng("answers", round), self.task.shards.label_counts[cohort]
        responds = checked_participation.responds(self.task.participation, cohort, rng)
        ledger.responders = cohort[responds]
        return Responders(cohort, responds, self.selector.quotas(cohort, pool.view, held))

    def train(self, state: RunState, works: list[LocalWork], pool: Pool, ledger: Ledger) -> Updates:
        """Train the clients that respond and return their updates."""
        updates = self._train_works(works, state, ledger)
        if pool.probes is not None:
            updates = pool.probes.correct_losses(updates)
        ledger.stepped(int(updates.steps.sum()))
        ledger.sent(
            "model", self._model_bytes(state.weights), to="server", copies=len(updates.clients)
        )
        self.local_models = updates
        return updates

    def local_work(
        self, state: RunState, responders: Responders, pool: Pool, round: int
    ) -> list[LocalWork]:
        """The local work of each client that responds: all of J on all its samples, unless the
        selector grants it fewer samples, it is a straggler, or it continues from its probe."""
        settings, trainable = self.task.settings, self.task.trainable(state.weights)
        efforts, works = self._completed_work(round), []
        for row in np.flatnonzero(responders.responds):
            client = int(responders.cohort[row])
            samples = self.task.shards.indices[client]
            if self.selector.allocates:
                quota = responders.label_counts[row]
                samples = allocated_samples(self.task, client, quota, round)
            work = LocalWork(
                client=client,
                round=round,
                weights=state.weights,
                samples=samples,
                lr=self.trainer.lr(round),
                end=self._last_step(efforts[client], len(samples)),
                correction=partial(
                    checked_server.control_variate, self.server, state.server, client, trainable
                ),
            )
            works.append(
                work if pool.probes is None else pool.probes.remaining_work(work, settings)
            )
        return works

    def report(
        self, state: RunState, works: list[LocalWork], updates: Updates, pool: Pool, ledger: Ledger
    ) -> dict[str, np.ndarray]:
        """Gather what the selector needs to know of the clients that responded, after their
        simulated time."""
        size = self._model_bytes(state.weights) * (1 if pool.has_model else 2)
        seconds = self.clock.seconds(updates.clients, updates.steps.cpu().numpy(), size)
        trained = updates, self.trainer, ledger, seconds, works
        reports = self.needs.gather_after_training(state.weights, *trained)
        self.wait(updates.clients, seconds, ledger)
        return reports

    def wait(
        self, clients: Sequence[int] | np.ndarray, seconds: np.ndarray, ledger: Ledger
    ) -> None:
        """Add the simulated time of the slowest client, with all that it evaluated."""
        if self.clock.speeds is not None:
            evaluating = self.clock.evaluation_seconds(clients, ledger.evaluations)
            ledger.waited(float((seconds + evaluating).max(initial=0.0)))

    def keep(self, updates: Updates, reports: Mapping[str, np.ndarray]) -> np.ndarray:
        """The rows of the updates that count: not those of clients without samples, nor those that
        the selector filters out."""
        sizes = updates.sizes.cpu().numpy()
        return np.flatnonzero(self.selector.keep(reports, sizes) & (sizes > 0))

    def merge(
        self,
        state: RunState,
        updates: Updates,
        kept: np.ndarray,
        responders: Responders,
        ledger: Ledger,
    ) -> tuple[Weights, Weights]:
        """Apply the server rule: return the new global weights and the rule's new memory, both
        unchanged if no update counts."""
        labels = responders.label_counts[responders.responds][kept].sum(axis=0)
        ledger.measured(cohort_entropy=float(entropy_bits(labels)))
        if len(kept) < len(responders.cohort):
            ledger.measured(updates_used=len(kept))
        if not len(kept):
            return state.weights, state.server
        counted, before = updates.select_rows(kept.tolist()), self.task.trainable(state.weights)
        statistics = counted.only(state.weights.keys() - before.keys()).mean(counted.shares())
        counted = counted.only(before)
        ledger.measured(
            train_loss=float(counted.losses.mean()),
            update_norm=float(counted.distances(before).mean()),
        )
        merged, memory, metrics = checked_server.apply(self.server, before, counted, state.server)
        ledger.measured(**metrics)
        return merged | statistics, memory

    def observe(
        self,
        state: RunState,
        responders: Responders,
        reports: Mapping[str, np.ndarray],
        pool: Pool,
        ledger: Ledger,
    ) -> State:
        """The selector's memory after the round: reports reach it as one row for each client of the
        cohort, NaN for one that did not respond."""
        cohort, rows = responders.cohort, np.flatnonzero(responders.responds)
        with ledger.timed("selecting"), ledger.timed_scoring():
            by_need = {
                need: scatter_rows(values, rows, len(cohort)) for need, values in reports.items()
            }
            return self.selector.observe(state.selector, cohort, by_need, pool.view)

    def _train_works(self, works: list[LocalWork], state: RunState, ledger: Ledger) -> Updates:
        """Train each client by its local work, all of J or what a probe left; return the
        updates."""
        with ledger.timed("training"):
            updates = self.trainer.train(works, state.weights, self.cursor.next_call())
        ledger.profile += self.trainer.step_profile()
        return updates

    def _completed_work(self, round: int) -> list[int]:
        """How many of J's epochs (or steps) each client of the federation completes in a round."""
        settings = self.task.settings
        draws = (self._rng("stragglers", number) for number in (0, round))
        amount, _ = local_work(settings.J)
        arguments = self.task.participation, settings.clients, amount
        return checked_participation.efforts(*arguments, *draws).tolist()

    def _last_step(self, effort: int, size: int) -> int | None:
        """The step with which a client of so many samples ends; None if it does all of J."""
        amount, counts_epochs = local_work(self.task.settings.J)
        if effort == amount:
            return None
        return effort * (local_steps(size, self.task.settings)[1] if counts_epochs else 1)

    def _rng(self, purpose: str, round: int) -> np.random.Generator:
        return generator(self.task.settings.seed, purpose, round=round)

    def _model_bytes(self, weights: Weights) -> int:
        """The size in bytes of one transfer of the model, in either direction."""
        return self.server.copies * size_in_bytes(weights)
