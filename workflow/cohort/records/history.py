"""The history of a run: what is recorded round by round while a cell trains."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

Series = dict[str, list[tuple[int, float]]]
TRAFFIC_COSTS = {"server": "bytes_up", "clients": "bytes_down", "client": "bytes_between"}
"""The cost that counts a message's bytes, by recipient: the server, clients, another client."""
PROFILE = ("round", "client", "step", "loss", "accuracy", "seconds")
"""The columns of `History.profile`."""
SECONDS_BITS = 13  # significant bits of recorded times (0.01 %); more would bloat releases
NOBODY = -1  # pads the cohorts of rounds that chose fewer clients than others


@dataclass
class History:
    """The history of a run, round by round: metrics and costs as (round, value) pairs, the cohort
    and those of its clients that responded.

    `traffic` holds the bytes sent in all rounds, by content and recipient (see TRAFFIC_COSTS). With
    a probing selector, `pools` and `norms` hold the clients probed in each round and their probes'
    norms (rounded to float32); with profiling, `profile` holds a row per local step (see PROFILE).
    """

    metrics: Series = field(default_factory=lambda: defaultdict(list))
    cost: Series = field(default_factory=lambda: defaultdict(list))
    cohorts: list[np.ndarray] = field(default_factory=list)
    responders: list[np.ndarray] = field(default_factory=list)
    pools: list[np.ndarray] = field(default_factory=list)
    norms: list[np.ndarray] = field(default_factory=list)
    traffic: dict[str, np.ndarray] = field(default_factory=dict)
    profile: list[np.ndarray] = field(default_factory=list)

    def add_metrics(self, round: int, /, **values: float) -> None:
        """Append a value of each of these metrics for a round, which may hold each only once."""
        for name, value in values.items():
            self.metrics[name].append((round, float(value)))

    def add_cost(self, round: int, /, **values: float) -> None:
        """Append a value of each of these costs for a round, which may hold each only once."""
        for name, value in values.items():
            number = _rounded(value) if name.startswith("seconds") else float(value)
            self.cost[name].append((round, number))

    def add_traffic(self, sent: Mapping[str, Mapping[str, int]]) -> None:
        """Add a round's bytes to the run's totals, by content and recipient."""
        for payload, by_recipient in sent.items():
            before = self.traffic.get(payload, np.zeros(len(TRAFFIC_COSTS), dtype=np.int64))
            added = [by_recipient.get(recipient, 0) for recipient in TRAFFIC_COSTS]
            self.traffic[payload] = before + np.array(added)

    def last(self, name: str) -> float:
        """The latest value of a metric, NaN if there is none yet."""
        return self.metrics[name][-1][1] if self.metrics.get(name) else float("nan")

    def all_responded(self) -> bool:
        """Whether every client of every cohort responded."""
        rounds = zip(self.cohorts, self.responders, strict=False)
        return all(len(cohort) == len(responders) for cohort, responders in rounds)

    def arrays(self) -> dict[str, np.ndarray]:
        """The whole history as arrays, by path in a record (`cohorts`, `metrics/test_loss/round`),
        without `responders` if every client of every cohort responded."""
        arrays = {"cohorts": _padded(self.cohorts, NOBODY)}
        if not self.all_responded():
            arrays["responders"] = _padded(self.responders, NOBODY)
        if self.pools:
            arrays["probes/pools"] = _padded(self.pools, NOBODY)
            arrays["probes/norms"] = _padded(self.norms, np.nan)
        if self.profile:
            columns = zip(PROFILE, np.concatenate(self.profile).T, strict=True)
            arrays |= {f"profile/{name}": column for name, column in columns}
        for group in ("metrics", "cost"):
            for name, pairs in getattr(self, group).items():
                rounds, values = zip(*pairs, strict=True) if pairs else ((), ())
                arrays[f"{group}/{name}/round"] = np.array(rounds, dtype=np.int64)
                arrays[f"{group}/{name}/value"] = np.array(values, dtype=np.float64)
        return arrays | {f"traffic/{name}": sizes for name, sizes in self.traffic.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Build a history from what `arrays` returned."""
        history = cls(
            cohorts=_rows(arrays["cohorts"]),
            responders=_rows(arrays.get("responders", arrays["cohorts"])),
            pools=_rows(arrays.get("probes/pools", ())),
        )
        norms = zip(arrays.get("probes/norms", ()), history.pools, strict=True)
        history.norms = [row[: len(pool)].astype(np.float32) for row, pool in norms]
        if "profile/round" in arrays:
            columns = [np.asarray(arrays[f"profile/{name}"]) for name in PROFILE]
            history.profile = [np.stack(columns, axis=1)]
        for path in arrays:
            if path.startswith("traffic/"):
                history.traffic[path.removeprefix("traffic/")] = np.asarray(arrays[path])
            elif path.endswith("/round") and path.startswith(("metrics/", "cost/")):
                group, name, _ = path.split("/")
                rounds, values = arrays[path].tolist(), arrays[f"{group}/{name}/value"].tolist()
                getattr(history, group)[name] = list(zip(rounds, values, strict=True))
        return history


def _rounded(seconds: float) -> float:
    """Round measured seconds to `SECONDS_BITS` significant bits."""
    mantissa, exponent = math.frexp(seconds)
    return math.ldexp(round(mantissa * 2**SECONDS_BITS), exponent - SECONDS_BITS)


def _padded(rows: Sequence[np.ndarray], padding: float) -> np.ndarray:
    """Stack the rows of all rounds into one array, shorter ones padded."""
    table = np.full((len(rows), max(map(len, rows), default=0)) if rows else (0,), padding)
    for index, row in enumerate(rows):
        table[index, : len(row)] = row
    return table


def _rows(table: Sequence[np.ndarray] | np.ndarray) -> list[np.ndarray]:
    """The clients of each round, without the padding of their array."""
    return [row[row != NOBODY] for row in table]
