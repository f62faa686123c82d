"""`python -m tools.cells`: the cells of every study, as tables in tests/plan/cells.

A row stands for all combinations of its values: `fedavg|loss` are two strategies, `0-4` five seeds.
Its last column holds the settings that differ from those in the rows `*`: the first has the most
common settings of the study that are no defaults, the others the parts of each strategy. `digests` is a hash of the
digests of the row's cells, which changes with everything that their numbers depend on.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cohort.core.files import write_text
from cohort.plan import Plan, all_studies, load
from cohort.plan.yaml_files import read_yaml
from cohort.settings import DEFAULTS

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests/plan/cells"
SCALES = ("full", "reduced", "smoke")
AXES = ("dataset", "model", "partition", "J", "cohort", "strategy", "seed")
COLUMNS = ("scale", "experiment", "series", *AXES, "digests", "settings")
MERGED = ("seed", "strategy", "partition", "cohort", "model", "dataset")
"""The columns in which a row may hold several values, in the order in which rows are merged."""

Row = dict[str, Any]
Settings = dict[str, Any]


def cells_table(study: str) -> str:
    """The cells of a study at each scale, as CSV text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for scale in SCALES:
        writer.writerows(_rows(plan_all(study, scale), study))
    return text.getvalue()


@functools.cache
def plan_all(study: str, scale: str = "full") -> Plan:
    """Plan a study as if all data behind logins were here."""
    with contextlib.chdir(ROOT), tempfile.TemporaryDirectory() as mirror:
        for info in read_yaml(Path("config/datasets.yaml")).values():
            for name in info["files"]:
                Path(mirror, name).touch()
        return load({"studies": study, "scale": scale, "data_mirror": mirror})


def _rows(plan: Plan, study: str) -> Iterator[Row]:
    """The rows of a study at the plan's scale."""
    cells = {digest: dict(_flat(cell.plain_settings())) for digest, cell in plan.cells.items()}
    common = _most_common(_part_of(cell, False) for cell in cells.values())
    by_strategy: dict[str, list[Settings]] = {}
    for cell in cells.values():
        by_strategy.setdefault(cell["strategy"], []).append(_part_of(cell, True))
    parts = {name: _most_common(settings) for name, settings in by_strategy.items()}
    head = {"scale": plan.scale, "experiment": "*"}
    changed = {key: value for key, value in common.items() if value != DEFAULTS.get(key)}
    yield head | {"settings": _text(changed)}
    for name in parts if plan.scale == "full" else ():
        yield head | {"strategy": name, "settings": _text(parts[name])}
    for name, experiment in plan.study(study).experiments.items():
        single = []
        for row in experiment.rows:
            cell = cells[row.digest]
            expected = common | parts[cell["strategy"]]
            differing = {
                key: cell[key] for key in cell if cell[key] != expected.get(key, cell[key])
            }
            fixed = {"experiment": name, "series": row.labels.get("series", "")}
            axes = {key: (cell[key],) for key in AXES}
            rest = {"settings": _text(differing), "digests": (row.digest,)}
            single.append({"scale": plan.scale} | fixed | axes | rest)
        yield from map(_written_row, merge_rows(single))


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a cell's settings, those of its strategy's parts with names like `selector.buffer`."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _part_of(cell: Settings, of_strategy: bool) -> Settings:
    """A cell's settings but the axes: those of its strategy, or the others."""
    return {
        key: value for key, value in cell.items() if key not in AXES and ("." in key) == of_strategy
    }


def _most_common(cells: Iterable[Settings]) -> Settings:
    """The most common value of each setting."""
    counts: dict[str, Counter[Any]] = {}
    for cell in cells:
        for key, value in cell.items():
            counts.setdefault(key, Counter())[value] += 1
    return {key: counter.most_common(1)[0][0] for key, counter in counts.items()}


def _text(settings: Settings) -> str:
    return "; ".join(f"{key}={value}" for key, value in settings.items())


def merge_rows(rows: list[Row]) -> list[Row]:
    """Join rows that differ in one column only, column by column."""
    for column in MERGED:
        joined: dict[str, Row] = {}
        for row in rows:
            others = str([row[key] for key in row if key not in (column, "digests")])
            first = joined.setdefault(others, row | {column: (), "digests": ()})
            for key in (column, "digests"):
                first[key] += tuple(value for value in row[key] if value not in first[key])
        rows = list(joined.values())
    return rows


def _written_row(row: Row) -> Row:
    """Format a row as the table is written."""
    digest = hashlib.sha256(" ".join(sorted(row["digests"])).encode()).hexdigest()[:8]
    seeds = row["seed"]
    written = {key: "|".join(map(str, row[key])) for key in AXES} | {"digests": digest}
    if len(seeds) > 1 and seeds == tuple(range(seeds[0], seeds[-1] + 1)):
        written["seed"] = f"{seeds[0]}-{seeds[-1]}"
    return row | written


def main() -> None:
    """Write the cells of every study, at each scale, as a CSV table in tests/plan/cells."""
    for study in all_studies():
        write_text(FOLDER / f"{study}.csv", cells_table(study))


if __name__ == "__main__":
    main()
