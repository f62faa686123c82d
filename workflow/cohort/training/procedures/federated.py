"""Rounds of federated learning, step by step as in the papers' algorithm boxes."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from cohort.core import randomness
from cohort.core.components import explain_value_errors
from cohort.selection.entropy import entropy_bits
from cohort.selection.selector import Clients, Reports, State, View
from cohort.settings import local_work
from cohort.training import availability, contract
from cohort.training.ledger import Ledger
from cohort.training.procedures.gathering import NeedGatherer, scatter_rows
from cohort.training.procedures.procedure import Federated
from cohort.training.rounds import Rounds
from cohort.training.task import RunState, Task
from cohort.training.trainers import serial
from cohort.training.updates import Updates, Weights, Works, local_steps, size_in_bytes

NORM_BYTES = 8  # a probe's norm is sent as a float64
FORWARD = 1 / 3  # cost of evaluating a sample, relative to training on it
Rows = np.ndarray  # numbers of updates


class Pool(NamedTuple):
    """The clients that a cohort is chosen from, and the selector's view. `has_model`: they were
    asked or probed, so they hold the global model. `probes` are their models after a probe."""

    clients: np.ndarray
    view: View
    has_model: bool = False
    probes: Updates | None = None


class Responders(NamedTuple):
    """A cohort (client), which of its clients respond (client), the samples per class that each
    trains on (client, class), and each update's weight (client) if the selector gives any."""

    cohort: np.ndarray
    responds: np.ndarray
    label_counts: np.ndarray
    weights: np.ndarray | None = None


def select(
    task: Task, state: State, candidates: np.ndarray, view: View, round: int, ledger: Ledger
) -> contract.Chosen:
    """Choose the cohort of a round, and enter it, the time of the choice and its metrics into the
    ledger: the selector's own and, if some clients overlap with others, how it prefers these."""
    selector = contract.CheckedSelector(task.selector)
    rng = randomness.generator(task.settings.seed, "selection", round=round)
    with ledger.timed("selecting"), ledger.timed_scoring():
        chosen = selector.select(state, candidates, view, rng)
    cohort = ledger.cohort = chosen.clients
    if chosen.weights is not None:
        ledger.record(total_weight=float(chosen.weights.sum()))
    ledger.record(**selector.measure(state, candidates, cohort, view))
    overlapping = task.shards.overlapping()
    if overlapping.any():
        ledger.record(overlapping_chosen=float(overlapping[cohort].mean()))
    probabilities = selector.probabilities(state, candidates, view)
    among = overlapping[candidates]
    if probabilities is not None and among.any() and not among.all():
        # that of the mean overlapping client as a multiple of the mean other client's
        regular = probabilities[~among].mean()
        preference = probabilities[among].mean() / regular if regular else np.inf
        mass = float(probabilities[among].sum())
        ledger.record(overlapping_probability=mass, overlapping_preference=float(preference))
    return chosen


class FederatedRounds(Rounds):
    """FedAvg's loop with a selector, an objective, a server rule and a participation of choice."""

    def __init__(self, procedure: Federated, task: Task):
        super().__init__(task)
        self.selector, self.server = contract.CheckedSelector(task.selector), task.server
        self.needs = NeedGatherer(task.selector.needs, task)
        rng = randomness.generator(task.settings.seed, "devices")
        self.speeds = task.client_devices.speeds(task.settings.clients, rng)
        trainer = serial.StepRecordingTrainer if procedure.profiled else task.trainer
        self.trainer = trainer(task)
        # of one transfer of the model, in either direction
        self.model_bytes = self.server.copies * size_in_bytes(task.model.state_dict())

    def begin(self) -> RunState:
        task = self.task
        weights, rng = task.initial_weights(), randomness.generator(task.settings.seed, "selection")
        steps = np.array([local_steps(size, task.settings)[0] for size in task.sizes])
        clients, size = np.arange(len(steps)), self.model_bytes
        seconds = self.seconds(clients, steps, 2 * size)
        fields = {"seconds": seconds, "transfers": self.seconds(clients, 0 * steps, size)}
        reports = self.needs.gather("once", clients, Ledger(), **fields)
        if not self.selector.allocates and not self.selector.probe_batches:
            with explain_value_errors(f"participation '{task.settings.participation}': "):
                # a pool that was asked has the model before the choice
                asked = bool(self.needs.gathered_at("before"))
                arrival = self.seconds(clients, steps, size) if asked else seconds
                task.participation.check(arrival[task.sizes > 0])
        selector = self.selector.begin(task.view(reports), rng)
        memory = self.server.begin(task.trainable(weights), task.other_initial_weights)
        memory = contract.checked_memory(memory, "begin")
        return RunState(weights, memory, selector, reports=reports)

    def play(self, state: RunState, round: int, ledger: Ledger) -> RunState:
        pool = self.screen(state, round, ledger)
        if not len(pool.clients):
            return self.idle(state, ledger)
        chosen = self.choose(state, pool, round, ledger)
        responders = self.respond(chosen, pool, round, ledger)
        works = self.local_work(state, responders, pool, round)
        updates = self.train(state, works, pool, ledger)
        reports = self.report(state, works, updates, pool, ledger)
        used = self.keep(updates, reports, responders, ledger)
        weights, memory = self.merge(state, updates, used, responders, ledger)
        selector = self.observe(state, responders, reports, pool, ledger)
        ledger.add("seconds_transfers", self.transfer_seconds)
        return replace(state, weights=weights, server=memory, selector=selector)

    def screen(self, state: RunState, round: int, ledger: Ledger) -> Pool:
        """Return the pool to choose from: the available clients, or those that the selector draws
        from them, asked or probed first if it wants that. The cohort is no larger than the pool."""
        settings, view = self.task.settings, self.task.view(state.reports)
        if round == 1:
            self.needs.charge("once", settings.clients, ledger)
        clients = availability.available_clients(settings, state.history, round)
        if self.task.availability != availability.Always():
            ledger.record(available=len(clients))
        view = replace(view, cohort=min(view.cohort, len(clients)))
        if not len(clients):
            return Pool(clients, view)
        if self.selector.draws_pool:
            with ledger.timed("selecting"), ledger.timed_scoring():
                clients = self.selector.draw_pool(clients, view, self._rng("pool", round))
            view = replace(view, cohort=min(view.cohort, len(clients)))
        asks = bool(self.needs.gathered_at("before")) and self.selector.asks(state.selector, view)
        if not asks and not self.selector.probe_batches:
            return Pool(clients, view)
        size, reports = self.model_bytes, dict(view.reports)
        ledger.add_traffic("model", size, to="clients", copies=len(clients))
        if asks:
            fields = {"weights": state.weights, "round": round}
            for need, values in self.needs.gather("before", clients, ledger, **fields).items():
                reports[need] = scatter_rows(values, clients, settings.clients)
        probes, steps = None, np.zeros(len(clients))
        if self.selector.probe_batches:
            probes, norms = self.probe(state, clients, round, ledger)
            steps = probes.steps.cpu().numpy()
            reports["probe_norm"] = scatter_rows(norms, clients, settings.clients)
        self.wait(clients, self.seconds(clients, steps, size), ledger)
        return Pool(clients, replace(view, reports=reports), has_model=True, probes=probes)

    def idle(self, state: RunState, ledger: Ledger) -> RunState:
        """Play a round without any available client: nothing is chosen, trained or observed."""
        if self.selector.probe_batches:
            ledger.probe = np.empty(0, dtype=np.int64), np.empty(0)
        if self.speeds is not None:
            ledger.add_wait(3600 * self.task.availability.idle_hours)
        ledger.record(cohort_entropy=0.0)
        return state

    def probe(
        self, state: RunState, pool: np.ndarray, round: int, ledger: Ledger
    ) -> tuple[Updates, np.ndarray]:
        """Train a pool's clients on their first batches, but no more than an epoch if J counts
        epochs. Return the updates and their norms."""
        batches, settings = self.selector.probe_batches, self.task.settings
        _, counts_epochs = local_work(settings.J)
        works = []
        for work in self.trainer.full_work(state.weights, pool, round):
            per_epoch = local_steps(len(work.samples), settings)[1]
            works.append(replace(work, end=min(batches, per_epoch) if counts_epochs else batches))
        probes = self._train_works(works, state, ledger)
        trainable = self.task.trainable(state.weights)
        norms = probes.only(trainable).distances(trainable).cpu().numpy()
        ledger.probe = pool, norms
        ledger.add("client_steps", int(probes.steps.sum()))
        ledger.add_traffic("probe_norm", NORM_BYTES, to="server", copies=len(norms))
        return probes, norms

    def choose(self, state: RunState, pool: Pool, round: int, ledger: Ledger) -> contract.Chosen:
        """Choose the cohort and send it the model."""
        chosen = select(self.task, state.selector, pool.clients, pool.view, round, ledger)
        if not pool.has_model:
            ledger.add_traffic("model", self.model_bytes, to="clients", copies=len(chosen.clients))
        return chosen

    def respond(
        self, chosen: contract.Chosen, pool: Pool, round: int, ledger: Ledger
    ) -> Responders:
        """Ask the selector for quotas, and draw which clients respond, in time if that counts."""
        cohort, weights = chosen
        with ledger.timed("selecting"), ledger.timed_scoring():
            counts = self.selector.quotas(cohort, pool.view, self.task.shards.label_counts[cohort])
        participation, rng = self.task.participation, self._rng("answers", round)
        responding = participation.responds(contract.read_only(cohort), rng)
        responds = contract.checked_mask(responding, len(cohort), "responds")
        if participation.goes_by_time:
            responds = responds & self.in_time(cohort, counts, pool, ledger)
        if not responds.any():
            raise contract.WrongAnswer("no client responds")
        ledger.responders = cohort[responds]
        return Responders(cohort, responds, counts, weights)

    def in_time(
        self, cohort: np.ndarray, counts: np.ndarray, pool: Pool, ledger: Ledger
    ) -> np.ndarray:
        """Whether each client's update, of its label counts in this round, is in time. The steps
        and updates of the others are charged, but not computed, because they are not used."""
        settings, sizes = self.task.settings, counts.sum(axis=1)
        steps, per_epoch = np.array([local_steps(size, settings) for size in sizes]).T
        if pool.probes is not None:  # which is the whole first epoch if J counts epochs
            begin = per_epoch if local_work(settings.J)[1] else self.selector.probe_batches
            steps = np.maximum(steps - begin, 0)
        seconds = self.seconds(cohort, steps, self.model_bytes * (1 if pool.has_model else 2))
        arriving = self.task.participation.in_time(seconds, settings.cohort)
        in_time = contract.checked_mask(arriving, len(cohort), "in_time")
        ledger.add("client_steps", int(steps[~in_time].sum()))
        ledger.add_traffic("model", self.model_bytes, to="server", copies=int((~in_time).sum()))
        return in_time

    def local_work(self, state: RunState, responders: Responders, pool: Pool, round: int) -> Works:
        """The local work of each client that responds: all of J on all its samples, unless the
        selector grants it fewer samples, it is a straggler, or it continues from its probe."""
        task, works = self.task, []
        amount, counts_epochs = local_work(task.settings.J)
        rng = self._rng("stragglers", 0)
        efforts = np.asarray(task.participation.efforts(task.settings.clients, amount, rng))
        fits = efforts.shape == (task.settings.clients,) and efforts.dtype.kind in "iu"
        fits = fits and bool(((efforts >= 1) & (efforts <= amount)).all())
        wanted = f"a whole number from 1 to {amount} for each client"
        efforts = contract.require(fits, "efforts", efforts, wanted).tolist()
        rows = np.flatnonzero(responders.responds)
        whole = self.trainer.full_work(state.weights, responders.cohort[rows], round)
        for row, work in zip(rows, whole, strict=True):
            client, samples = work.client, work.samples
            if self.selector.allocates:
                portion = responders.label_counts[row], round if self.selector.redraws else 0
                samples = allocated_samples(task, client, *portion)
            per_epoch = local_steps(len(samples), task.settings)[1]
            steps = efforts[client] * (per_epoch if counts_epochs else 1)
            correction = partial(self.server.control_variate, state.server, client, work.lr)
            work = replace(work, samples=samples, end=steps, correction=correction)
            if pool.probes is not None:
                begin = per_epoch if counts_epochs else self.selector.probe_batches
                weights = pool.probes.client_weights(pool.probes.clients.index(client))
                work = replace(work, weights=weights, begin=begin)
            works.append(work)
        return works

    def train(self, state: RunState, works: Works, pool: Pool, ledger: Ledger) -> Updates:
        """Train the clients that respond and return their updates. A client whose probe was all its
        work keeps the loss of its probe."""
        updates, probes = self._train_works(works, state, ledger), pool.probes
        if probes is not None:
            rows = [probes.clients.index(client) for client in updates.clients]
            continued = (updates.steps > 0).to(updates.losses.device)
            updates = replace(updates, losses=updates.losses.where(continued, probes.losses[rows]))
        ledger.add("client_steps", int(updates.steps.sum()))
        ledger.add_traffic("model", self.model_bytes, to="server", copies=len(updates.clients))
        self.local_models = updates
        return updates

    def report(
        self, state: RunState, works: Works, updates: Updates, pool: Pool, ledger: Ledger
    ) -> dict[str, np.ndarray]:
        """Gather what the selector needs to know of the clients that responded."""
        size = self.model_bytes * (1 if pool.has_model else 2)
        clients = np.array(updates.clients, dtype=np.int64)
        seconds = self.seconds(clients, updates.steps.cpu().numpy(), size)
        fields = {"weights": state.weights, "local_models": updates, "works": works}
        fields |= {"seconds": seconds}
        reports = self.needs.gather("after", clients, ledger, **fields)
        are_missing = len(clients) < len(ledger.cohort)
        self.wait(clients, seconds, ledger, are_missing * self.task.participation.patience)
        return reports

    def seconds(self, clients: np.ndarray, steps: np.ndarray, size: int) -> np.ndarray:
        """The simulated seconds that each of these clients takes for so many steps (client), each
        on a full batch, and for sending and receiving so many bytes; 0 without a simulation."""
        if self.speeds is None:
            return np.zeros(len(clients))
        samples = steps * self.task.settings.batch
        return samples / self.speeds.samples[clients] + size / self.speeds.bytes[clients]

    def wait(self, clients: Clients, seconds: np.ndarray, ledger: Ledger, floor: float = 0) -> None:
        """Add the simulated time of the slowest client, evaluations included, or the `floor`."""
        if self.speeds is not None:
            samples = np.array([float(ledger.evaluations[client]) for client in clients.tolist()])
            evaluating = FORWARD * samples / self.speeds.samples[clients]
            ledger.add_wait(float((seconds + evaluating).max(initial=floor)))

    def keep(
        self, updates: Updates, reports: Reports, responders: Responders, ledger: Ledger
    ) -> Rows:
        """The rows of the updates that count: of clients with samples, and kept by the selector."""
        sizes = updates.sizes.cpu().numpy()
        with ledger.timed("selecting"), ledger.timed_scoring():
            used = np.flatnonzero(self.selector.keep(reports, sizes) & (sizes > 0))
        labels = responders.label_counts[responders.responds][used].sum(axis=0)
        ledger.record(cohort_entropy=float(entropy_bits(labels)))
        if len(used) < len(responders.cohort):
            ledger.record(updates_used=len(used))
        return used

    def merge(
        self, state: RunState, updates: Updates, used: Rows, responders: Responders, ledger: Ledger
    ) -> tuple[Weights, Weights]:
        """Apply the server rule: return new weights and memory, the old if no update counts."""
        if not len(used):
            return state.weights, state.server
        counted, before = updates.select_rows(used.tolist()), self.task.trainable(state.weights)
        shares = counted.shares()
        if responders.weights is not None:
            factors = torch.from_numpy(responders.weights[responders.responds][used]).to(shares)
            counted, shares = replace(counted, factors=factors), factors / factors.sum()
        statistics = counted.only(state.weights.keys() - before.keys()).weighted_sum(shares)
        counted = counted.only(before)
        ledger.record(train_loss=float(counted.losses.mean()))
        ledger.record(update_norm=float(counted.distances(before).mean()))
        merged, memory, metrics = contract.merge(self.server, before, counted, state.server)
        ledger.record(**metrics)
        return merged | statistics, memory

    def observe(
        self, state: RunState, responders: Responders, reports: Reports, pool: Pool, ledger: Ledger
    ) -> State:
        """The selector's memory after the round: reports reach it as one row for each client of the
        cohort, NaN for one that did not respond."""
        cohort, rows = responders.cohort, np.flatnonzero(responders.responds)
        with ledger.timed("selecting"), ledger.timed_scoring():
            by_need = {need: scatter_rows(reports[need], rows, len(cohort)) for need in reports}
            return self.selector.observe(state.selector, cohort, by_need, pool.view)

    def _train_works(self, works: Works, state: RunState, ledger: Ledger) -> Updates:
        with ledger.timed("training"):
            updates = self.trainer.train(works, state.weights, self.cursor)
        if isinstance(self.trainer, serial.StepRecordingTrainer):
            ledger.profile.append(self.trainer.step_profile())
        return updates

    def _rng(self, purpose: str, round: int) -> np.random.Generator:
        return randomness.generator(self.task.settings.seed, purpose, round=round)


def allocated_samples(task: Task, client: int, quota: np.ndarray, round: int) -> np.ndarray:
    """Draw a client's samples for a round, of each class its `quota` (class); return indices."""
    rng = randomness.generator(task.settings.seed, "portion", round=round, client=client)
    indices = rng.permutation(task.shards.indices[client])
    labels = task.train_samples.labels[indices].cpu().numpy()
    return np.concatenate([indices[labels == label][:count] for label, count in enumerate(quota)])
