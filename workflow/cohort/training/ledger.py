"""The books of one round: what it cost and what was measured."""

from __future__ import annotations

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import numpy as np

from cohort.records.history import History

Purpose = Literal["training", "selecting", "evaluating"]
BYTES = {"server": "bytes_up", "clients": "bytes_down", "client": "bytes_between"}


class Ledger:
    """Collects the costs and metrics of a round, which enter the history only when it is over.

    `costs` are those that the procedure has in every round, even if they are zero. `seconds` are
    those that the round had already taken when it was interrupted.
    """

    def __init__(self, costs: Iterable[str] = (), seconds: Mapping[str, float] | None = None):
        self.costs: dict[str, float] = dict.fromkeys(costs, 0)
        self.traffic: dict[str, dict[str, int]] = {}
        self.metrics: dict[str, float] = {}
        self.cohort = np.empty(0, dtype=np.int64)
        self.responders: np.ndarray | None = None  # everybody in the cohort
        self.probe: tuple[np.ndarray, np.ndarray] | None = None
        self.profile: list[np.ndarray] = []  # notes of local steps
        self.evaluations = Counter[int]()  # of which no wait tells yet, by client
        self._seconds: defaultdict[str, float] = defaultdict(float, seconds or {})
        self._timed_since: dict[str, float] = {}  # blocks of `timed` that are not over
        self._started = time.perf_counter()

    def sent(
        self, what: str, size: int, *, to: Literal["server", "clients", "client"], copies: int = 1
    ) -> None:
        """Count bytes that were sent: `copies` messages of `size` bytes from clients to the server,
        from the server to clients, or from one client to another (`to="client"`)."""
        way = self.traffic.setdefault(what, dict.fromkeys(BYTES, 0))
        way[to] += size * copies
        self._add(BYTES[to], size * copies)

    def stepped(self, steps: int) -> None:
        """Count local steps that clients took."""
        self._add("client_steps", steps)

    def transferred(self, seconds: float) -> None:
        """Add simulated seconds that a round waits for sending the model."""
        self._add("seconds_transfers", seconds)

    def evaluated(self, samples: int, client: int | None) -> None:
        """Count samples on which a client, or the server (None), evaluated a model for the
        selector."""
        self._add("selection_samples", samples)
        if client is not None:
            self.evaluations[client] += samples

    def waited(self, seconds: float) -> None:
        """Add simulated seconds that the round waited for clients."""
        self._add("simulated_seconds", seconds)
        self.evaluations.clear()

    def measured(self, **values: float) -> None:
        """Record metrics of this round."""
        self.metrics |= values

    @contextlib.contextmanager
    def timed(self, purpose: Purpose) -> Iterator[None]:
        """Add the time of the block to a purpose."""
        self._timed_since[purpose] = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[purpose] += time.perf_counter() - self._timed_since.pop(purpose)

    @contextlib.contextmanager
    def timed_scoring(self) -> Iterator[None]:
        """Count the processor time of the block, in which the server chooses clients or learns from
        reports: it is so short that other processes would disturb the time on a clock."""
        started = time.thread_time()
        try:
            yield
        finally:
            self._add("seconds_scoring", time.thread_time() - started)

    def seconds(self) -> dict[str, float]:
        """Seconds of this round so far, by purpose, and since its start as `total`."""
        now, seconds = time.perf_counter(), self._seconds.copy()
        for purpose, since in [*self._timed_since.items(), ("total", self._started)]:
            seconds[purpose] += now - since
        return dict(seconds)

    def close(self, history: History, round: int) -> None:
        """Append the round's metrics, costs and traffic to the history."""
        history.cohorts.append(self.cohort)
        history.responders.append(self.cohort if self.responders is None else self.responders)
        if self.probe is not None:
            history.pools.append(self.probe[0])
            history.norms.append(self.probe[1])
        for notes in self.profile:
            history.profile.append(np.insert(notes, 0, round, axis=1))
        seconds = self.seconds()
        total = seconds.pop("total")
        by_purpose = {f"seconds_{name}": seconds[name] for name in sorted(seconds)}
        history.add_metrics(round, **self.metrics)
        history.add_cost(round, **self.costs, **by_purpose, seconds=total)
        history.add_traffic(self.traffic)

    def _add(self, cost: str, amount: float) -> None:
        self.costs[cost] = self.costs.get(cost, 0) + amount
