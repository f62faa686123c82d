"""Restore the runs of a release as records of the planned cells whose settings they have."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from cohort.core.errors import UserError
from cohort.core.files import sha256
from cohort.core.paths import digest_in, state_folder
from cohort.core.process import tracked
from cohort.data import shards
from cohort.records.record import CLIENT_ARRAYS, Record, read, write
from cohort.results.collect import differences_from, is_same
from cohort.results.names import METRICS
from cohort.results.release.folder import MANIFEST, read_digests, read_release
from cohort.selection.selector import Probing, UpdateWeighing
from cohort.settings import DEFAULTS
from cohort.training.availability import available_clients
from cohort.training.cell import Cell
from cohort.training.evaluators import EVALUATORS, MeanOverModels
from cohort.training.job.lease import lease
from cohort.training.participation import Participation
from cohort.training.procedures.procedure import Concat

CHOOSING = ("federated", "fedtan", "concat")
"""The procedures in which a selector chooses cohorts."""
COSTS = ("seconds", "bytes_down", "bytes_up", "client_steps", "selection_samples")
"""What each of their rounds costs, even if it is 0."""
OTHER_COSTS = (
    *("seconds_training", "seconds_selecting", "seconds_evaluating", "seconds_scoring"),
    *("seconds_transfers", "simulated_seconds", "bytes_between"),
)

Checks = Iterator[tuple[bool | np.bool, str, str]]
"""Whether a column of a release is wrong, its name, and what is wrong with it."""


@dataclass
class RestoreOutcome:
    """What became of a release's runs, by digest: restored, already here (identical or different),
    planned by no study, or in training here."""

    restored: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    different: dict[str, tuple[Record, Record]] = field(default_factory=dict)
    unplanned: list[str] = field(default_factory=list)
    training: list[str] = field(default_factory=list)


def restore(folder: Path, address: str, cells: Mapping[str, Cell]) -> RestoreOutcome:
    """Write a record, with `address` as its source, for each run of a release that is planned and
    has none. A record that exists stays; the same one, if it was restored, names this source too.
    Nothing is written unless all runs are valid and have the settings of their digests."""
    digests = read_digests(folder)
    planned = {digest: cells[digest] for digest in digests if digest in cells}
    records, dealt = read_release(folder, planned) if planned else [], dict[str, np.ndarray]()
    for record in records:
        cell = planned[record.header["digest"]]
        try:
            _check_settings(record, cell)
            check_run(record, cell)
            check_dealt(record, cell, dealt)
        except UserError as error:
            raise UserError(f"{address}: {error}; nothing was restored") from None
    outcome, new, named = RestoreOutcome(), {}, {}
    outcome.unplanned = [digest for digest in digests if digest not in cells]
    release = {"release": address, "manifest_sha256": sha256(folder / MANIFEST)}
    for record in tracked(records, "comparing"):
        digest = record.header["digest"]
        header, provenance = record.header, record.header["provenance"]
        copied = ("weights_sha256", "restored")  # to compare two runs, and to name earlier releases
        source = release | {key: header[key] for key in copied if key in header}
        source |= {key: provenance[key] for key in ("commit", "trainer", "devices", "versions")}
        if not Path(path := cells[digest].path).exists():
            new[path] = replace(record, header=header | {"restored": [source]})
        elif not is_same(here := read(path), record):
            outcome.different[digest] = here, record
        else:
            outcome.present.append(digest)
            sources = here.header.get("restored", [source])
            if source not in sources:
                named[path] = replace(here, header=here.header | {"restored": [*sources, source]})
    with ThreadPoolExecutor() as pool:  # most of the time a write waits for the disk
        list(pool.map(write, named.keys(), named.values()))
        written = pool.map(_write_new, new.keys(), new.values())
        for path, is_written in zip(new, tracked(written, "restoring", len(new)), strict=True):
            (outcome.restored if is_written else outcome.training).append(digest_in(path))
    return outcome


def _write_new(path: str, record: Record) -> bool:
    """Write a cell's record and return True, unless another process trains it or has done so."""

    def give_up() -> None:
        raise BlockingIOError

    folder = state_folder(path)
    try:
        with lease(folder, waiting=give_up):
            if is_new := not Path(path).exists():
                write(path, record)
    except BlockingIOError:
        return False
    with contextlib.suppress(OSError):  # it has a checkpoint, or another process waits there
        folder.rmdir()
    return is_new


def _check_settings(record: Record, cell: Cell) -> None:
    """Raise UserError if settings or science versions of a run contradict its planned cell."""
    try:
        differences = [*differences_from(record, cell)]
    except Exception as error:  # a part of its strategy is of a wrong type
        raise UserError(f"the settings of run {cell.digest} cannot be read ({error})") from None
    if differences:
        listed = "; ".join(differences)
        raise UserError(f"the settings of run {cell.digest} do not give this digest ({listed})")


def check_run(record: Record, cell: Cell) -> None:
    """Raise UserError, with run and column, if a run contradicts its cell's settings or has values
    that no run can have. Only training the cell again shows other invented numbers."""
    for checks in (_cohorts, _clients, _costs, _curves):
        try:
            problems = (f"{name} {how}" for is_wrong, name, how in checks(record, cell) if is_wrong)
            problem = next(problems, None)
        except Exception as error:  # values of a wrong type or shape may raise anything
            problem = f"{checks.__name__[1:]} cannot be read ({error or type(error).__name__})"
        if problem:
            raise UserError(f"run {cell.digest} is not valid: {problem}")


def check_dealt(record: Record, cell: Cell, dealt: dict[str, np.ndarray]) -> None:
    """Raise UserError unless a run's label counts are those of its shards here or, without these,
    of earlier runs with the same shards, which `dealt` collects."""
    path, counts = cell.inputs["shards"], record.clients["label_counts"]
    if path not in dealt:
        dealt[path] = shards.read(path).label_counts if Path(path).exists() else counts
    if not np.array_equal(counts, dealt[path]):
        raise UserError(f"run {cell.digest} is not valid: label_counts are not those of {path}")


def _cohorts(record: Record, cell: Cell) -> Checks:
    history, clients, rounds = record.history, cell.settings.clients, cell.settings.rounds
    sizes = [len(cohort) for cohort in history.cohorts]
    yield not 0 < len(sizes) <= rounds, "rounds_played", f"is {len(sizes)} of {rounds}"
    keys = {}
    named = {"cohort": history.cohorts, "responders": history.responders, "pool": history.pools}
    for name, rows in named.items():
        positions = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        numbers = np.concatenate([np.empty(0, np.int64), *rows])
        within = numbers.dtype.kind in "iu" and ((numbers >= 0) & (numbers < clients)).all()
        yield not within, name, f"has other clients than 0 to {clients - 1}"
        keys[name] = positions * clients + numbers
        yield len(np.unique(keys[name])) < len(numbers), name, "has a client twice in a round"
    chooses = cell.procedure.name in CHOOSING
    part = cell.participation
    low, high = (1, part.invited(cell.settings.cohort, clients)) if chooses else (0, clients)
    is_always = cell.settings.availability == DEFAULTS["availability"]
    low *= is_always
    yield min(sizes) < low or max(sizes) > high, "cohort", f"is not of {low} to {high} clients"
    if chooses and not is_always:
        played = range(1, len(sizes) + 1)
        there = [available_clients(cell.settings, history, round) for round in played]
        counts = list(zip(played, map(len, there), strict=True))
        yield history.metrics.get("available") != counts, "available", "is not how many are there"
        for cohort, present in zip(history.cohorts, there, strict=True):
            yield not np.isin(cohort, present).all(), "cohort", "has clients that are absent"
            yield len(present) > 0 == len(cohort), "cohort", "is empty though clients are there"
    chosen = np.isin(keys["responders"], keys["cohort"])
    yield not chosen.all(), "responders", "has clients that are not in the cohort"
    if type(part).responds is Participation.responds and not part.goes_by_time:
        yield len(chosen) < sum(sizes), "responders", "lacks clients, though all respond"
    may_probe = chooses or (bool(history.pools) and not _is_ours(cell))
    probes = may_probe and isinstance(cell.selector, Probing)
    probed = [len(pool) for pool in history.pools]
    yield len(probed) != len(sizes) * probes, "pool", "is not there for the rounds with probes"
    yield [len(norms) for norms in history.norms] != probed, "probe_norms", "is not one per probe"
    yield from _values("probe_norm", np.concatenate([*history.norms, []]))
    yield probes and not np.isin(keys["cohort"], keys["pool"]).all(), "cohort", "was not probed"


def _clients(record: Record, cell: Cell) -> Checks:
    clients, classes = record.clients, record.classes
    counts, size = clients["label_counts"], clients["size"]
    yield counts.ndim != 2 or not _are_counts(counts), "label_counts", "are not counts"
    is_wrong = not np.array_equal(counts.sum(axis=1), size) or not size.any()
    yield is_wrong, "size", "is not the sum of the label counts"
    for name in CLIENT_ARRAYS:
        yield from _values(name, clients[name])
    for name in classes:
        yield not _are_counts(classes[name]), name, "are not counts"
    if classes:
        right, tested = classes["right"], classes["tested"]
        yield (right > tested).any() or not tested.any(), "right", "is more than was tested"
    if isinstance(cell.procedure, Concat):
        cluster, last = clients["cluster"], cell.procedure.clusters - 1
        is_wrong = not np.array_equal(cluster, np.where(size == 0, -1, np.clip(cluster, 0, last)))
        yield is_wrong, "cluster", f"is not 0 to {last}, or -1 without samples"


def _costs(record: Record, cell: Cell) -> Checks:
    history = record.history
    needed, rounds = COSTS if cell.procedure.name in CHOOSING else COSTS[:1], len(history.cohorts)
    costs = {name: _numbers(series) for name, series in history.cost.items()}
    for name in sorted({*needed, *costs}):
        yield name not in (*COSTS, *OTHER_COSTS), name, "is not a cost"
        is_whole = name.startswith("seconds_") or len(costs.get(name, ())) == rounds
        yield not is_whole, name, "is not there in every round"  # some seconds are younger
        yield from _values(name, costs[name])
    yield min(map(np.min, history.traffic.values()), default=0) < 0, "traffic", "is negative"


def _curves(record: Record, cell: Cell) -> Checks:
    metrics, diverged = record.history.metrics, record.header["status"] == "diverged"
    last, procedure = len(record.history.cohorts) - diverged, cell.procedure.name
    required = {  # of evaluators that surely have something to evaluate
        "test": procedure != "masked-labels",
        "validation": cell.settings.validation > 0,
        "local": procedure in ("federated", "fedtan"),
        "own_samples": procedure in ("federated", "fedtan"),
    }
    declared = {"train_loss", "update_norm", "cohort_entropy", "updates_used"}
    declared |= {"total_weight"} if isinstance(cell.selector, UpdateWeighing) else set()
    declared |= {"available"} if cell.settings.availability != DEFAULTS["availability"] else set()
    for part in (cell.procedure, cell.selector, cell.server):
        declared.update(part.metrics)
    for evaluator in (kind() for kind in EVALUATORS.values()):
        due = [round for round in evaluator.rounds(cell) if round <= last]
        if isinstance(evaluator, MeanOverModels):  # of the cohort
            due = [round for round in due if len(record.history.cohorts[round - 1])]
        declared.update(evaluator.metrics if due else ())
        is_required = due and _is_ours(cell) and required.get(evaluator.name, False)
        if evaluator.setting == "evaluators":  # a user's, which may record some of its metrics only
            continue
        if is_required or metrics.keys() & evaluator.metrics.keys():
            for name in evaluator.metrics:
                rounds = [round for round, _ in metrics.get(name, ())]
                reason = f"has {len(rounds)} rounds, not the {len(due)} that are evaluated"
                yield rounds != due, name, reason
    for name, series in metrics.items():
        yield name not in declared, name, "is not a metric of this run"
        yield from _values(name, _numbers(series), diverged=diverged)
    profiled = bool(getattr(cell.procedure, "profiled", 0))
    reason = "is missing" if profiled else "should not be there"
    yield bool(record.history.profile) != profiled, "profiles", reason


def _values(name: str, values: np.ndarray, *, diverged: bool = False) -> Checks:
    """Check that the values of a metric are within its range."""
    impossible = values[~METRICS[name].is_plausible(values, diverged=diverged)]
    yield bool(len(impossible)), name, f"is {impossible[0]:g}" if len(impossible) else ""


def _numbers(series: Sequence[tuple[int, float]]) -> np.ndarray:
    return np.array([value for _, value in series])


def _is_ours(cell: Cell) -> bool:
    """Whether the cell's procedure is not a user's."""
    return type(cell.procedure).__module__.startswith("cohort.")


def _are_counts(values: np.ndarray) -> bool:
    return values.dtype.kind in "iu" and bool(values.min() >= 0)
