"""Skip cells whose data set is behind a login and not here, or whose procedure needs a package that
is not installed, with a note, not an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError, errors_at
from cohort.core.text import counted
from cohort.data.raw import check_data_path, check_mirror, files_in_mirror
from cohort.plan.resolution import Resolver
from cohort.plan.study import Row, Study
from cohort.settings import PlannedFile
from cohort.training.cell import Cell

Lack = tuple[bool, str]


def generated_notes(study: Study, resolver: Resolver) -> Iterator[str]:
    """A note for each experiment with cells on generated stand-in data."""
    for name, experiment in study.experiments.items():
        cells = [resolver.cells[row.digest] for row in experiment.rows]
        if generated := [cell.settings.dataset for cell in cells if cell.generated]:
            datasets = ", ".join(dict.fromkeys(generated))
            yield (
                f"{study.name}.{name}: {len(generated)} of {len(cells)} cells are of generated "
                f"stand-in data ({datasets}): their numbers are no reproduction of any paper"
            )


class Availability:
    """Which data sets can be had, downloaded or the user's own, and which procedures can run."""

    def __init__(self, datasets: Mapping[str, Any], config: Mapping[str, Any]):
        self._paths, self._mirror = config.get("data_paths", {}), config.get("data_mirror", "")
        self._logins = {
            name: file["login"]
            for name, info in datasets.items()
            for file in info["files"].values()
            if "login" in file
        }
        self._available: dict[str, bool] = {}
        if self._mirror:
            with errors_at("config/config.yaml or --config"):
                check_mirror(self._mirror)
        for dataset, path in self._paths.items():
            if dataset not in self._logins:
                raise UserError(
                    f"config/config.yaml or --config: data_paths.{dataset} is given, but only data "
                    "sets behind a login are taken from there "
                    f"({', '.join(self._logins) or 'none'}); "
                    "name a folder with its files as data_mirror"
                )
            check_data_path(dataset, path)

    def filter(self, study: Study, resolver: Resolver) -> tuple[Study, list[str]]:
        """Split off the cells that cannot be run here: return the study without them, and a note on
        each experiment that lost some.

        Cells that have a record stay; figures and tables that lose all their cells go.
        """
        data = {planned.path: planned for planned in resolver.data.values()}
        experiments, skipped, notes = {}, {}, []
        for name, experiment in study.experiments.items():
            rows: list[Row] = []
            lost: list[tuple[Row, list[Lack]]] = []
            for row in experiment.rows:
                cell = resolver.cells[row.digest]
                lacks = list(self._lacks(cell, data[cell.inputs["data"]]))
                if lacks and not Path(cell.path).exists():
                    lost.append((row, lacks))
                else:
                    rows.append(row)
            if rows:
                experiments[name] = replace(experiment, rows=rows)
            if lost:
                skipped[name] = [(row, _reasons(lacks)) for row, lacks in lost]
                drawn = study.drawn_items().items()
                gone = [key for key, spec in drawn if spec["experiment"] == name and not rows]
                undrawn = f" ({', '.join(gone)} cannot be drawn)" if gone else ""
                all_cells = counted(len(experiment.rows), "cell")
                number = len({row.digest for row, _ in lost})
                why = _reasons(chain.from_iterable(lacks for _, lacks in lost))
                notes.append(
                    f"{study.name}.{name}: {number} of {all_cells} skipped: {why}{undrawn}"
                )
        figures, tables = (
            dict(filter(lambda item: item[1]["experiment"] in experiments, drawn.items()))
            for drawn in (study.figures, study.tables)
        )
        rest = replace(study, experiments=experiments, figures=figures, tables=tables)
        return replace(rest, skipped=skipped), notes

    def _lacks(self, cell: Cell, data: PlannedFile) -> Iterator[Lack]:
        """Yield what a cell needs to run here and lacks, and whether it is behind a login."""
        dataset = data.settings["dataset"]
        if dataset not in self._available:
            self._available[dataset] = (
                dataset not in self._logins or dataset in self._paths or self._is_here(data)
            )
        if not self._available[dataset]:
            yield True, f"{dataset} is behind a login ({self._logins[dataset]})"
        if package := cell.procedure.missing_package():
            yield (
                False,
                f"procedure '{cell.procedure}' needs the package {package}, which is not "
                f"installed; pip install {package}",
            )

    def _is_here(self, data: PlannedFile) -> bool:
        """Whether the data set is prepared, or all its raw files are in place or in the mirror."""
        missing = [Path(file) for file in data.inputs.values() if not Path(file).exists()]
        return Path(data.path).exists() or all(
            files_in_mirror(self._mirror, {file.name}) for file in missing
        )


def _reasons(lacking: Iterable[Lack]) -> str:
    """A text on why cells wait: `pacs is behind a login (https://...); set data_paths`."""
    unique = dict.fromkeys(lacking)
    logins = ", ".join(text for is_login, text in unique if is_login)
    packages = (text for is_login, text in unique if not is_login)
    return "; ".join([*([f"{logins}; set data_paths"] if logins else []), *packages])
