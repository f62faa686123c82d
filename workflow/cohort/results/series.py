"""An experiment's metrics: the files that hold them, and what figures, tables and the report need
of them. `at` says at which rounds of a run a value is taken: a word, a round, or a range of rounds.

The metrics are one tidy table with a row per cell, metric and round or client, and a row without a
metric for each planned cell: a Parquet file, of which only the metrics asked for are read. A JSON
file beside it says what the runs are. Planning imports this module, so pandas is lazy.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core import FileAccessError, UserError, counted, lazy, paths
from cohort.core.files import atomic_write, sha256
from cohort.core.sealed_json import DAMAGED, explain_unreadable, read_sealed, write_sealed

if TYPE_CHECKING:
    from pandas import DataFrame, Series

pd, pyarrow_dataset = lazy("pandas"), lazy("pyarrow.dataset")
GROUP_ROWS = 100_000
PARQUET_SHA256, SOURCES = "parquet_sha256", "sources"
POSITIONS = ("round", "client", "label")
KIND = "metrics"
CELL = ("digest", "study", "experiment", "status", "share")
DERIVED = ("finished", "diverged", "classes")  # of a cell, worked out when metrics are read
OURS = re.compile(rf"{paths.RELEASED}/\w+")
"""The name of a release of this repository, whose runs were restored from no other."""
NON_LABEL_COLUMNS = (*CELL, *DERIVED, "metric", "round", "client", "label", "value", "end")
STATUSES = ("done", "diverged", "unfinished", "missing")
FULL = "full"  # the scale at which runs are as long as the paper's
NO_VALUE = "\N{EN DASH}"
NO_RUNS = "no runs yet"
WORST_IS_LARGEST = ("loss", "calibration_error", "swing", "best_round", "to_best")
"""The ends of the metrics of which a diverged run counts with the largest value."""
NO_MODEL = "majority_accuracy"  # depends on the data only
BELOW_CHANCE = (NO_MODEL, "tenth_percentile_accuracy", "holdout_worst_accuracy")
"""The accuracies that lie below chance level in sound runs too."""

WORDS = {
    "last": "last evaluation",
    "max": "highest evaluation",
    "min": "lowest evaluation",
    "mean": "mean of all evaluations",
    "median": "median of all evaluations",
    "last-10": "mean of the last ten rounds",
}
RANGE = r"[1-9][0-9]*-[1-9][0-9]*"
SIMPLE = "last, max, min, mean, median, last-10, a round"
AT_HELP = f"{SIMPLE}, or a range such as 21-30 (the mean of these rounds)"
AT_SCHEMA: dict[str, Any] = {"minimum": 1, "pattern": rf"^({'|'.join(WORDS)}|{RANGE})$"}

ENDED_EARLY = 0.9  # of a round: a run whose last evaluation is before has no value there


def write_metrics(
    file: str | Path, metrics: DataFrame, experiment: Mapping[str, Any], sources: str = ""
) -> None:
    """Write metrics as Parquet, and beside it the experiment as JSON with its checksum; `sources`
    is a hash of the files that the metrics were collected from."""
    planned = metrics.drop_duplicates("digest")
    planned = planned[~planned["digest"].isin(metrics["digest"][metrics["metric"].isna()])]
    planned = planned.drop(columns=["metric", *POSITIONS, "value"], errors="ignore")
    rows = pd.concat([metrics, planned])
    rows = rows.take(pd.factorize(rows["metric"], sort=True)[0].argsort(kind="stable"))
    with atomic_write(file) as temporary:
        rows.to_parquet(temporary, index=False, row_group_size=GROUP_ROWS)
        checksum = sha256(temporary)
    header = {**experiment, PARQUET_SHA256: checksum} | ({SOURCES: sources} if sources else {})
    write_sealed(Path(file).with_suffix(".json"), header)


def read_experiment(file: str | Path) -> dict[str, Any]:
    """Read the JSON file beside a metrics file. Raise UserError if it is missing or damaged."""
    return read_sealed(Path(file).with_suffix(".json"), KIND)


def read_sources_hash(file: str | Path) -> str:
    """Read the hash of the files behind metrics; empty if the metrics are missing or damaged."""
    try:
        _verified_bytes(Path(file))
        return str(read_experiment(file).get(SOURCES, ""))
    except FileAccessError:
        raise
    except UserError:
        return ""


def _verified_bytes(file: Path) -> io.BytesIO:
    """Read a Parquet file, which must have the checksum in the JSON file beside it."""
    expected = read_experiment(file)[PARQUET_SHA256]
    with explain_unreadable(file, KIND):
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != expected:
            raise ValueError(DAMAGED)
        return io.BytesIO(content)


def restored_notes(files: Iterable[str | Path], *, by_others: bool = False) -> list[str]:
    """Sentences on the releases, or only on those `by_others`, that runs were restored from."""
    cells = (cell for file in files for cell in read_experiment(file).get("cells", ()))
    return restored_sentences(cells, by_others=by_others)


def restored_sentences(cells: Iterable[Mapping[str, Any]], *, by_others: bool = False) -> list[str]:
    """A sentence for each release that some of these cells' runs were restored from, or only for
    those that are not of this repository, which name the strategies."""
    finished = {cell["digest"]: cell for cell in cells if "settings" in cell}
    by_origin: dict[tuple[str, ...], list[str]] = {}
    for cell in finished.values():
        if origin := tuple(dict.fromkeys(cell.get("restored", ()))):
            by_origin.setdefault(origin, []).append(cell["settings"]["strategy"])
    sentences, runs = [], counted(len(finished), "finished run")
    for origin, strategies in by_origin.items():
        is_ours = all(map(OURS.fullmatch, origin))
        names = "" if is_ours else f" ({', '.join(dict.fromkeys(strategies))})"
        if not (by_others and is_ours):
            name = " ".join(" and ".join(origin).split())
            sentences.append(f"Restored from {name}: {len(strategies):,} of {runs}{names}.")
    return sentences


def status_counts(statuses: Iterable[str]) -> dict[str, int]:
    """The number of planned runs, and how many of them have each status."""
    counts = Counter(statuses)
    return {"planned": counts.total()} | {status: counts[status] for status in STATUSES}


def runs_phrase(counts: Mapping[str, int]) -> str:
    """`1,224 runs`, or `n = 34 of 36 runs (1 diverged, 1 missing)`."""
    runs, others = counted(counts["planned"], "run"), STATUSES[1:]
    rest = ", ".join(f"{counts[status]:,} {status}" for status in others if counts[status])
    return f"n = {counts['done']:,} of {runs} ({rest})" if rest else runs


def count_runs(metrics: DataFrame) -> dict[str, int]:
    """Count the runs in metrics by status, each once; needs the columns digest and status only."""
    runs = metrics["digest"].str.partition(" ")[0]  # without the numbers of further panels
    return status_counts(metrics[~runs.duplicated()]["status"])


def read_metric(file: str | Path, *metrics: str) -> DataFrame:
    """Read the rows of these metrics, in a fixed order, with labels as text and the number of
    `classes` of each cell. A cell without any of them has one row without a metric. Raise
    UserError if the Parquet file is missing or damaged."""
    content = _verified_bytes(Path(file))
    field = pyarrow_dataset.field("metric")
    rows = pd.read_parquet(content, filters=field.isin(metrics) | field.is_null())
    has_value = rows["metric"].notna()
    has_none = ~rows["digest"].isin(rows["digest"][has_value].unique())
    order = ["digest", "metric", "round", "client"]
    frame = rows[has_value | has_none].sort_values(order, ignore_index=True)
    frame = frame.astype(dict.fromkeys(frame.select_dtypes("category"), "str"))
    if "label" in rows:
        options = {"filters": field == "label_count", "columns": ["digest", "label"]}
        classes = pd.read_parquet(content, **options).groupby("digest")["label"].max() + 1
        frame = frame.assign(classes=frame["digest"].map(classes).astype(float))
    for label in label_columns(frame):
        texts = {value: label_text(value) for value in frame[label].dropna().unique()}
        frame[label] = frame[label].astype(object).map(texts).fillna(NO_VALUE)
    return frame


def runs_without(metrics: DataFrame, left_out: Mapping[str, list[str]]) -> DataFrame:
    """Drop the rows of runs with any of these values of their labels."""
    for label, values in left_out.items():
        metrics = metrics[~metrics[label].isin(values)]
    return metrics


def label_columns(metrics: DataFrame) -> list[str]:
    """The columns that distinguish an experiment's cells: dataset, J, strategy, seed, and so on."""
    return [column for column in metrics.columns if column not in NON_LABEL_COLUMNS]


def cells_of(metrics: DataFrame) -> DataFrame:
    """One row per planned cell: its digest, labels and status."""
    columns = ["digest", *label_columns(metrics), "status"]
    return metrics.drop_duplicates("digest")[columns].reset_index(drop=True)


def finite_rows(metrics: DataFrame, metric: str) -> DataFrame:
    """The rows of a metric with finite values; a diverged run may end with others."""
    return metrics[(metrics["metric"] == metric) & (metrics["value"].abs() < float("inf"))]


def value_per_cell(metrics: DataFrame, metric: str, at: int | str) -> DataFrame:
    """One row per planned cell with its `value`, NaN if it has none, and the last round of its run,
    `end`. WORDS say what the words stand for. A round is the last evaluation up to it, a range of
    rounds their mean; both scale with the run, and a run that ended early has no value. Only finite
    values count. A diverged run has the worst value, an unfinished one its value so far."""
    rows = finite_rows(metrics, metric)
    if rounds_of(at):
        shares = shares_of(rows)
        limits = {share: rounds_of(at, share) or (0, 0) for share in set(shares)}
        first = shares.map({share: begin for share, (begin, _) in limits.items()})
        last = shares.map({share: end for share, (_, end) in limits.items()})
        reached = rows.groupby("digest")["round"].transform("max") >= ENDED_EARLY * last
        inside = rows[reached & (rows["round"] >= first) & (rows["round"] <= last)]
        runs = inside.sort_values("round").groupby("digest")["value"]
        values = runs.last() if str(at).isdigit() else runs.mean()
    elif at in ("max", "min", "mean", "median"):
        values = rows.groupby("digest")["value"].agg(str(at))
    else:
        end = rows.groupby("digest")["round"].transform("max")
        recent = rows[rows["round"] > end - (1 if at == "last" else 10)]
        values = recent.groupby("digest")["value"].mean()
    cells, ends = cells_of(metrics), metrics.groupby("digest")["round"].max()
    digests = cells["digest"]
    cells = cells.assign(value=digests.map(values).astype(float), end=digests.map(ends))
    worst = _worst_value(cells, metrics, metric)
    return cells.assign(value=cells["value"].mask(cells["status"] == "diverged", worst))


def chance_level(metrics: DataFrame) -> Series:
    """The accuracy of a guess in each cell, by digest; NaN where its classes are not known."""
    cells = metrics.drop_duplicates("digest").set_index("digest")
    return 1 / cells["classes"] if "classes" in cells else pd.Series(float("nan"), cells.index)


def _worst_value(cells: DataFrame, metrics: DataFrame, metric: str) -> Series:
    """The value that a diverged cell counts with: the lowest accuracy of the finished runs on its
    data set, chance level at most; the largest loss on its data set; else as measured."""
    datasets = cells["dataset"] if "dataset" in cells else pd.Series("", cells.index)
    if metric.endswith("accuracy") and metric != NO_MODEL:
        chance = cells["digest"].map(chance_level(metrics)).astype(float)
        done = cells["value"].where(cells["status"] == "done")
        lowest = done.groupby(datasets).transform("min")
        return chance.mask(lowest < chance, lowest)
    if not metric.endswith(WORST_IS_LARGEST):
        return cells["value"]
    return cells.groupby(datasets)["value"].transform("max")


def shares_of(metrics: DataFrame) -> Series:
    """The share of its run's full rounds that the scale trains, for each row; 1 if not said."""
    return metrics.get("share", pd.Series(1.0, metrics.index)).fillna(1.0)


def values_by_client(metrics: DataFrame, metric: str) -> DataFrame:
    """One row per client with its `value`, and its number as the label `client`, of the runs with
    the lowest seed of each setting only, because other seeds have other clients."""
    rows, labels = finite_rows(metrics, metric), label_columns(metrics)
    seeds, settings = rows["seed"].astype(int), [rows[name] for name in labels if name != "seed"]
    rows = rows[seeds == seeds.groupby(settings).transform("min")]
    return rows[["digest", *labels, "status", "value"]].assign(
        client=rows["client"].astype(int).astype(str)
    )


def subtract_partners(cells: DataFrame, minus: Mapping[str, str]) -> DataFrame:
    """Subtract the value of its partner, the run of another strategy with all other labels in
    common, from that of each cell whose strategy `minus` names (`{loss: fedavg}`), NaN without a
    partner; drop the other cells."""
    partners = cells.rename(columns={"strategy": "partner"})
    partners = partners[partners["partner"].isin(minus.values())]
    others = (name for name in label_columns(cells) if name != "strategy")
    # but parameters that no partner has, as FedAvg has no buffer
    keys = ["partner", *(name for name in others if (partners[name] != NO_VALUE).any())]
    partners = partners[[*keys, "value", "diverged", "finished"]]
    chosen = cells.assign(partner=cells["strategy"].map(minus)).dropna(subset="partner")
    joined = chosen.merge(partners, "left", keys, suffixes=("", "_base"), validate="many_to_one")
    return joined.assign(
        value=joined["value"] - joined["value_base"],
        diverged=joined["diverged"] | joined["diverged_base"].eq(True),
        finished=joined["finished"] & joined["finished_base"].eq(True),
    )[list(cells.columns)]


def label_text(value: Any) -> str:
    """A label's value as text, the same for 1, 1.0 and "1"; a dash for None."""
    if value is None or value != value:
        return NO_VALUE
    return f"{value:g}" if isinstance(value, float) else str(value)


def rounds_of(at: int | str, share: float = 1.0) -> tuple[int, int] | None:
    """The first and the last round of an `at`, a round or a range of rounds; None for a word. In a
    run of a share of its full rounds, ten rounds become this share of ten, one at least. A single
    round begins at 1, because the last evaluation up to it counts."""
    text = str(at)
    if re.fullmatch("[1-9][0-9]*", text):
        return 1, max(1, round(int(text) * share))
    if not re.fullmatch(RANGE, text):
        return None
    first, last = map(int, text.split("-"))
    end = max(1, round(last * share))
    before = math.floor(round((first - 1) * share, 9))  # rounding: 100 * 0.29 is 28.999...
    return min(before + 1, end), end


def at_in_words(at: int | str) -> str:
    """`at` in words, for the notes of tables."""
    first, _, last = str(at).partition("-")
    text = f"mean of rounds {first} to {last}" if last else f"evaluation of round {first}"
    return WORDS.get(str(at), text)


def check_at(at: int | str, rounds: int, owner: str) -> None:
    """Raise UserError if the range `at` runs backwards, or the runs of `owner` end before it."""
    limits = rounds_of(at)
    first, _, last = str(at).partition("-")
    if first.isdigit() and last.isdigit() and int(first) > int(last):
        raise UserError(f"at is '{at}', a range that ends before it begins")
    if limits and rounds < limits[1]:
        raise UserError(f"at is {at}, but {owner} end after {rounds} rounds")
