"""Skip cells whose data set is behind a login and not here, or whose procedure needs a package that
is not installed, with a note, not an error."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cohort.cell.planned import PlannedFile
from cohort.core.errors import UserError
from cohort.core.text import counted
from cohort.data.raw import check_data_path, check_mirror, files_in_mirror
from cohort.plan.located import errors_at
from cohort.plan.resolution import Resolver
from cohort.plan.study import Experiment, Row, Study
from cohort.training.cell import Cell


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
        experiments, notes = {}, []
        skipped: dict[str, list[tuple[Row, str]]] = {}
        for name, experiment in study.experiments.items():
            missing = self._missing(experiment, resolver)
            kept = [row for row in experiment.rows if row.digest not in missing]
            if kept:
                experiments[name] = replace(experiment, rows=kept)
            if missing:
                gone = [row for row in experiment.rows if row.digest in missing]
                skipped[name] = [(row, self._reasons([missing[row.digest]])) for row in gone]
                lost = [
                    drawn
                    for drawn, spec in study.drawn_items().items()
                    if spec["experiment"] == name and not kept
                ]
                notes.append(
                    f"{study.name}.{name}: {len(missing)} of "
                    f"{counted(len(experiment.rows), 'cell')} skipped: "
                    + self._reasons(list(missing.values()))
                    + (f" ({', '.join(lost)} cannot be drawn)" if lost else "")
                )
        return (
            replace(
                study,
                experiments=experiments,
                figures=_items_of(experiments, study.figures),
                tables=_items_of(experiments, study.tables),
                skipped=skipped,
            ),
            notes,
        )

    def _missing(self, experiment: Experiment, resolver: Resolver) -> dict[str, Cell]:
        """The cells without a record whose data or packages are missing, by digest."""
        data = {planned.path: planned for planned in resolver.data.values()}
        cells = {row.digest: resolver.cells[row.digest] for row in experiment.rows}
        return {
            digest: cell
            for digest, cell in cells.items()
            if (
                not self._is_available(data[cell.inputs["data"]])
                or cell.procedure.missing_package()
            )
            and not Path(cell.path).exists()
        }

    def _is_available(self, data: PlannedFile) -> bool:
        dataset = data.settings["dataset"]
        if dataset not in self._available:
            self._available[dataset] = (
                dataset not in self._logins or dataset in self._paths or self._is_here(data)
            )
        return self._available[dataset]

    def _is_here(self, data: PlannedFile) -> bool:
        """Whether the data set is prepared, or all its raw files are in place or in the mirror."""
        missing = [Path(file) for file in data.inputs.values() if not Path(file).exists()]
        return Path(data.path).exists() or all(
            files_in_mirror(self._mirror, {file.name}) for file in missing
        )

    def _reasons(self, cells: Sequence[Cell]) -> str:
        """A text on why these cells wait: `pacs is behind a login (https://...); set data_paths`,
        and the same for packages."""
        datasets = dict.fromkeys(cell.settings.dataset for cell in cells)
        hidden = [name for name in datasets if not self._available[name]]
        logins = ", ".join(f"{name} is behind a login ({self._logins[name]})" for name in hidden)
        lacking = dict.fromkeys(
            f"procedure '{cell.procedure}' needs the package {package}, which is not "
            f"installed; pip install {package}"
            for cell in cells
            if (package := cell.procedure.missing_package())
        )
        return "; ".join([*([f"{logins}; set data_paths"] if hidden else []), *lacking])


def _items_of(experiments: Container[str], drawn: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of figures or tables that show one of these experiments."""
    return {name: spec for name, spec in drawn.items() if spec["experiment"] in experiments}
