"""The ledger of a round's costs and metrics, and the cursor that says which clients are done."""

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import numpy as np
import torch

from cohort.records.history import TRAFFIC_COSTS, History
from cohort.training.updates import Weights


class Ledger:
    """Collects the costs and metrics of a round, which enter the history only when it is over.
    `costs` are recorded even if zero; `seconds` are those before the round was interrupted."""

    def __init__(self, costs: Iterable[str] = (), seconds: Mapping[str, float] | None = None):
        self.costs: dict[str, float] = dict.fromkeys(costs, 0)
        self.traffic: dict[str, dict[str, int]] = {}
        self.metrics: dict[str, float] = {}
        self.cohort = np.empty(0, dtype=np.int64)
        self.responders: np.ndarray | None = None  # everybody in the cohort
        self.probe: tuple[np.ndarray, np.ndarray] | None = None
        self.profile: list[np.ndarray] = []  # notes of local steps
        self.evaluations = Counter[int]()  # samples whose time is not charged yet, by client
        self._seconds: defaultdict[str, float] = defaultdict(float, seconds or {})
        self._timed_since: dict[str, float] = {}  # blocks of `timed` that are not over
        self._started = time.perf_counter()

    def add(self, cost: str, amount: float) -> None:
        """Add to a cost, such as `client_steps` or `seconds_transfers`."""
        self.costs[cost] = self.costs.get(cost, 0) + amount

    def add_traffic(
        self, name: str, size: int, *, to: Literal["server", "clients", "client"], copies: int = 1
    ) -> None:
        """Count bytes that were sent: `copies` messages of `size` bytes from clients to the server,
        from the server to clients, or from one client to another (`to="client"`)."""
        self.traffic.setdefault(name, dict.fromkeys(TRAFFIC_COSTS, 0))[to] += size * copies
        self.add(TRAFFIC_COSTS[to], size * copies)

    def add_evaluation(self, samples: int, client: int | None) -> None:
        """Count samples on which a client, or the server (None), evaluated for the selector."""
        self.add("selection_samples", samples)
        if client is not None:
            self.evaluations[client] += samples

    def add_wait(self, seconds: float) -> None:
        """Add simulated seconds that the round waited for clients."""
        self.add("simulated_seconds", seconds)
        self.evaluations.clear()

    def record(self, /, **values: float) -> None:
        """Record metrics of this round."""
        self.metrics |= values

    @contextlib.contextmanager
    def timed(self, purpose: Literal["training", "selecting", "evaluating"]) -> Iterator[None]:
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
            self.add("seconds_scoring", time.thread_time() - started)

    def exclude(self, seconds: float) -> None:
        """Leave out seconds that have just passed: the process worked on another run."""
        self._started += seconds
        for purpose in self._timed_since:
            self._timed_since[purpose] += seconds

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
            history.norms.append(self.probe[1].astype(np.float32))
        for notes in self.profile:
            history.profile.append(np.insert(notes, 0, round, axis=1))
        seconds = self.seconds()
        total = seconds.pop("total")
        by_purpose = {f"seconds_{name}": seconds[name] for name in sorted(seconds)}
        history.add_metrics(round, **self.metrics)
        history.add_cost(round, **self.costs, **by_purpose, seconds=total)
        history.add_traffic(self.traffic)


class Cursor:
    """The local work of the current round that is already done, for checkpoints and resuming. A
    checkpoint inside a round holds the state before it and the results of the clients that are
    done. The resumed round is replayed: all but local training is repeated, with the same draws,
    and trainers skip these clients."""

    def __init__(
        self,
        saved: Mapping[str, torch.Tensor] | None = None,
        is_due: Callable[[], bool] = lambda: False,
        write: Callable[[Weights], None] = lambda tensors: None,
    ):
        self.is_due, self._write = is_due, write
        self._saved: Mapping[str, torch.Tensor] = saved or {}
        self._collectors: list[Callable[[], Weights]] = []  # one for each call of a trainer
        self.ledger = Ledger()

    def begin_round(self, costs: tuple[str, ...]) -> Ledger:
        """Begin a round, or resume the interrupted one: return a new ledger for its costs and
        metrics, with the seconds that the round took before. `costs` are recorded even if zero."""
        seconds = strip_prefix(self._saved, "seconds/")
        self.ledger = Ledger(costs, {name: float(value) for name, value in seconds.items()})
        self._collectors = []
        return self.ledger

    def end_round(self) -> None:
        """Forget the work of a round that is over."""
        self._saved, self._collectors = {}, []

    def begin_call(self) -> Weights:
        """Register a call of a trainer in this round; return the results that were saved for it,
        empty if there are none."""
        done = strip_prefix(self._saved, f"work{len(self._collectors)}/finished/")
        self._collectors.append(lambda: done)
        return done

    def client_done(self, collect: Callable[[], Weights]) -> None:
        """Save a checkpoint here if one is due. `collect` returns the results of all clients of the
        last call that are done; it is called only when a checkpoint is written."""
        self._collectors[-1] = collect
        if self.is_due():
            self.save()

    def save(self) -> None:
        """Write a checkpoint inside the round."""
        seconds = self.ledger.seconds().items()
        tensors = dict(self._saved)  # of calls that this session has not reached again
        tensors |= {f"seconds/{name}": torch.tensor(value).double() for name, value in seconds}
        for number, collect in enumerate(self._collectors):
            results = collect().items()
            tensors |= {f"work{number}/finished/{name}": tensor for name, tensor in results}
        self._write(tensors)


def strip_prefix(tensors: Mapping[str, torch.Tensor], prefix: str) -> Weights:
    """The tensors whose names begin with a prefix, under their names without the prefix."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors[name] for name in names}
