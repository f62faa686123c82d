"""Data sets behind a login that are not here: their cells are left out, and a note says so, instead of an error in the middle of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cohort.cell.planned import Planned
from cohort.core.errors import UserError
from cohort.data.places import check_given, in_mirror
from cohort.plan.resolve import Resolver
from cohort.plan.study import Study


def stand_ins(study: Study, resolver: Resolver) -> Iterator[str]:
    """A note for each experiment with cells on generated data."""
    for name, experiment in study.experiments.items():
        cells = [resolver.cells[row.digest].settings for row in experiment.rows]
        if generated := [settings["dataset"] for settings in cells if settings.get("generated")]:
            sets = ", ".join(dict.fromkeys(generated))
            yield (
                f"{study.name}.{name}: {len(generated)} of {len(cells)} cells are of generated stand-in data ({sets}): "
                "their numbers are no reproduction of any paper"
            )


class Absent:
    """Knows which data sets cannot be had."""

    def __init__(self, datasets: Mapping[str, Any], config: Mapping[str, Any]):
        self.paths, self.mirror = config.get("data_paths", {}), config.get("data_mirror", "")
        self._logins = {
            name: file["login"]
            for name, facts in datasets.items()
            for file in facts["files"].values()
            if "login" in file
        }
        self._known: dict[str, bool] = {}
        for dataset, path in self.paths.items():
            if dataset not in self._logins:
                raise UserError(
                    f"config/config.yaml or --config: data_paths.{dataset} is given, but only what is behind a login is taken from there "
                    f"({', '.join(self._logins) or 'none'}); name a folder with its files as data_mirror"
                )
            check_given(dataset, path)

    def is_absent(self, data: Planned) -> bool:
        """Whether a data set is behind a login, and neither here nor said to be anywhere."""
        dataset = data.settings["dataset"]
        if dataset not in self._known:
            self._known[dataset] = (
                dataset in self._logins and dataset not in self.paths and not self._is_here(data)
            )
        return self._known[dataset]

    def without(self, study: Study, resolver: Resolver, notes: list[str]) -> Study:
        """The study without cells whose data are absent, but for those with a record; and without figures and tables that lose them all."""
        data = {planned.path: planned for planned in resolver.data.values()}
        experiments = {}
        for name, experiment in study.experiments.items():
            cells = [resolver.cells[row.digest] for row in experiment.rows]
            lost = {
                cell.digest: cell
                for cell in cells
                if self.is_absent(data[cell.inputs["data"]]) and not Path(cell.path).exists()
            }
            kept = [row for row in experiment.rows if row.digest not in lost]
            if kept:
                experiments[name] = replace(experiment, rows=kept)
            if lost:
                undrawn = [
                    drawn
                    for drawn, spec in study.drawn().items()
                    if spec["experiment"] == name and not kept
                ]
                notes.append(
                    f"{study.name}.{name}: {len(lost)} of {len(cells)} cells skipped: "
                    + self._phrase(
                        dict.fromkeys(cell.settings["dataset"] for cell in lost.values())
                    )
                    + (f" ({', '.join(undrawn)} cannot be drawn)" if undrawn else "")
                )
        figures, tables = (
            {name: spec for name, spec in drawn.items() if spec["experiment"] in experiments}
            for drawn in (study.figures, study.tables)
        )
        return replace(study, experiments=experiments, figures=figures, tables=tables)

    def _is_here(self, data: Planned) -> bool:
        """Prepared, in its place as a raw file, or in the mirror."""
        missing = [Path(file) for file in data.inputs.values() if not Path(file).exists()]
        return Path(data.path).exists() or all(
            in_mirror(self.mirror, {file.name}) for file in missing
        )

    def _phrase(self, datasets: Mapping[str, None]) -> str:
        """`pacs is behind a login (https://...); set data_paths`."""
        return (
            ", ".join(f"{name} is behind a login ({self._logins[name]})" for name in datasets)
            + "; set data_paths"
        )
