"""What the Snakefile asks for: input functions, params and targets.

The driver (Snakemake's main process) holds the plan. A job on a cluster reads the Snakefile anew: it holds none and reads only the plan
files that the driver froze, so that a study can be edited, even broken, while its jobs wait.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from cohort.cell.planned import PLAN_FOLDER, Planned, frozen, plan_file
from cohort.claims.paper import paper_files
from cohort.core.errors import UserError
from cohort.core.files import code_hash
from cohort.metrics.paper import paper_file
from cohort.plan import CLAIMS_TABLE, Plan, Study, all_studies, drawn_names
from cohort.plan.requests import Requests
from cohort.tables.sizes import needs_no_runs

FIGURE_FORMATS = ("png", "pdf", "svg")
TABLE_FORMATS = ("csv", "md", "tex")

Wildcards = Any
Files = list[str]


class Stages:
    """The stages of the workflow, for a driver (with its plan) or for a job on a cluster (without)."""

    def __init__(self, plan: Plan | None, local: bool = False):
        self._plan = plan
        self._hashes: dict[str, str] = {}
        self.requests = Requests(self.planned, plan.datasets if plan else None, local)

    @property
    def plan(self) -> Plan:
        """The driver's plan."""
        assert self._plan is not None, "only the driver plans"
        return self._plan

    def planned(self, digest: str) -> Planned:
        """What a digest means."""
        if self._plan is None:
            return frozen(plan_file(digest))
        return next(
            things[digest]
            for things in (self.plan.cells, self.plan.shards, self.plan.data)
            if digest in things
        )

    def raw(self, wildcards: Wildcards) -> dict[str, Any]:
        """Where a raw file comes from and its checksums."""
        return dict(self.plan.datasets[wildcards.dataset]["files"][wildcards.file])

    def sources(self, wildcards: Wildcards) -> Files:
        """What prepared data or shards are made from."""
        return list(self.planned(wildcards.digest).inputs.values())

    def train_inputs(self, wildcards: Wildcards) -> Files:
        """What is not there yet of what a missing record needs: its shards, which bring the data along, or the data alone. A record
        that exists needs neither, also when they were deleted."""
        planned = self.planned(wildcards.digest)
        needed = (
            []
            if os.path.exists(planned.path)
            else [planned.inputs["shards"], planned.inputs["data"]]
        )
        return [file for file in needed if not os.path.exists(file)][:1]

    def records(self, study: str, experiment: str) -> Files:
        """The records of an experiment."""
        return [
            self.plan.cells[row.digest].path
            for row in self.plan.study(study).experiments[experiment].rows
        ]

    def measured(self, study: str, experiments: Iterable[str]) -> Files:
        """The metrics of experiments, which ask for their records, and the records that are missing under metrics that are there."""
        metrics = metrics_files(self.plan, self.plan.study(study), experiments)
        below = (
            record
            for experiment, file in metrics.items()
            if os.path.exists(file)
            for record in self.records(study, experiment)
        )
        return [*metrics.values(), *(record for record in below if not os.path.exists(record))]

    def collect_inputs(self, wildcards: Wildcards) -> Files:
        """The records that a table of metrics is made from."""
        return self.records(wildcards.study, wildcards.experiment)

    def collect_plan(self, wildcards: Wildcards) -> str:
        """The plan file of an experiment. Its name changes with the set of cells, which has them collected again."""
        return experiment_file(experiment_plan(self.plan, wildcards.study, wildcards.experiment))

    def metrics(self, wildcards: Wildcards) -> Files:
        """The metrics that a figure or table shows, and the paper's values where it names them."""
        study = self.plan.study(wildcards.study)
        spec = study.drawn()[wildcards.name]
        paper = paper_file(study.name, spec)
        metrics = (
            [] if needs_no_runs(spec) else [metrics_file(self.plan, study, spec["experiment"])]
        )
        return [*metrics, *([str(paper)] if paper else [])]

    def spec(self, wildcards: Wildcards) -> str:
        """All that a figure or table is told, as a text that changes when any of it does."""
        return json.dumps(spec_of(self.plan, wildcards.study, wildcards.name))

    def claim_inputs(self, wildcards: Wildcards) -> Files:
        """The metrics that claims are judged by, and the paper's values."""
        study = self.plan.study(wildcards.study)
        metrics = metrics_files(self.plan, study, study.claimed()).values()
        return [*metrics, *(str(file) for file in paper_files(study.name) if file.exists())]

    def claims(self, wildcards: Wildcards) -> str:
        """All that judging is told."""
        return json.dumps(claims_spec(self.plan, wildcards.study))

    def page_inputs(self, wildcards: Wildcards) -> Files:
        """Every figure and table of the listed studies, and the metrics behind them."""
        studies = [self.plan.study(name) for name in self.plan.listed]
        metrics = (
            file
            for study in studies
            for file in metrics_files(self.plan, study, study.experiments).values()
        )
        return [*metrics, *(file for study in studies for file in all_drawn(self.plan, study))]

    def page_spec(self, wildcards: Wildcards) -> str:
        """All that the page is told."""
        return json.dumps(page_spec(self.plan, self.plan.listed))

    def code(self, *packages: str) -> Callable[[Wildcards], str]:
        """A param that changes when the code of these packages does."""
        return lambda wildcards: self._hashes.setdefault(" ".join(packages), code_hash(*packages))

    def targets(
        self, check: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[str, Callable[[Wildcards], Files]]]:
        """The named targets: `all`, each study, and each of its figures and tables. A job on a cluster knows its own target.

        They are the first thing that Snakemake asks for, so that what `check` raises is said before it looks at any job.
        """
        if self._plan is None:
            return
        yield "all", shortly(self._all, check)
        for name in all_studies():
            yield name, shortly(partial(self._study_target, name), check)
            for drawn in drawn_names(name):
                yield f"{name}_{drawn}", shortly(partial(self._drawn_target, name, drawn), check)

    def _all(self, wildcards: Wildcards) -> Files:
        page = (
            [] if self.plan.config.get("only") else [f"results/{self.plan.scale}/report/index.html"]
        )
        return [
            *page,
            *(file for name in self.plan.listed for file in self._study_target(name, wildcards)),
        ]

    def _study_target(self, name: str, wildcards: Wildcards) -> Files:
        only, study = self.plan.config.get("only", ""), self.plan.study(name)
        if only:
            return [self.plan.cells[digest].path for digest in self.plan.digests(name, only)]
        return self.measured(name, study.experiments) + all_drawn(self.plan, study)

    def _drawn_target(self, name: str, drawn: str, wildcards: Wildcards) -> Files:
        study = self.plan.study(name)
        spec = study.drawn().get(drawn)
        if spec is None and drawn != CLAIMS_TABLE:  # all of its cells are skipped, as a note says
            return []
        experiments = (
            study.claimed() if spec is None else [] if needs_no_runs(spec) else [spec["experiment"]]
        )
        return self.measured(name, experiments) + drawn_files(self.plan, study, drawn)


def shortly(
    files: Callable[[Wildcards], Files], check: Callable[[], None]
) -> Callable[[Wildcards], Files]:
    """A target whose study is planned only now. A mistake in it ends Snakemake, which would show another exception with a traceback."""

    def asked(wildcards: Wildcards) -> Files:
        try:
            check()
            return files(wildcards)
        except UserError as error:
            sys.exit(f"error: {error}")

    return asked


def experiment_plan(plan: Plan, study: str, experiment: str) -> dict[str, Any]:
    """The cells of an experiment with their labels: what collecting needs to know."""
    rows = plan.study(study).experiments[experiment].rows
    cells = [
        {"digest": row.digest, "path": plan.cells[row.digest].path, "labels": row.labels}
        | _mark(plan, row.digest)
        for row in rows
    ]
    return {"study": study, "experiment": experiment, "cells": cells}


def _mark(plan: Plan, digest: str) -> dict[str, bool]:
    """That a cell is of generated data, where it is."""
    return {"generated": True} if plan.cells[digest].settings.get("generated") else {}


def experiment_file(content: dict[str, Any]) -> str:
    """Where an experiment's plan is frozen."""
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
    return f"{PLAN_FOLDER}/experiments/{content['study']}-{content['experiment']}-{digest}.json"


def metrics_file(plan: Plan, study: Study, experiment: str) -> str:
    """The metrics of an experiment."""
    return f"results/{plan.scale}/metrics/{study.name}/{experiment}.parquet"


def metrics_files(plan: Plan, study: Study, experiments: Iterable[str]) -> dict[str, str]:
    """The metrics of each of some experiments."""
    return {experiment: metrics_file(plan, study, experiment) for experiment in experiments}


def all_drawn(plan: Plan, study: Study) -> Files:
    """The files of every figure and table of a study, and of its claims."""
    names = [*study.drawn(), *([CLAIMS_TABLE] if study.claims else [])]
    return [file for name in names for file in drawn_files(plan, study, name)]


def drawn_files(plan: Plan, study: Study, name: str) -> Files:
    """The files of a figure or table, or of the claims."""
    kind, formats = (
        ("figures", FIGURE_FORMATS) if name in study.figures else ("tables", TABLE_FORMATS)
    )
    return [f"results/{plan.scale}/{kind}/{study.name}/{name}.{suffix}" for suffix in formats]


def spec_of(plan: Plan, study: str, name: str) -> dict[str, Any]:
    """A figure's or table's entry in the study, the file with the paper's values that it names, and how its values look."""
    spec = plan.study(study).drawn()[name]
    paper = paper_file(study, spec)
    known = {
        "study": study,
        "name": name,
        "scale": plan.scale,
        "look": plan.look(study, spec["experiment"]),
    }
    return spec | known | ({"paper_values": str(paper)} if paper else {})


def claims_spec(plan: Plan, name: str) -> dict[str, Any]:
    """The claims of a study with all that judging them needs to know."""
    study = plan.study(name)
    told = {
        "titles": plan.titles(name, study.strategies(study.claimed())),
        "metrics": metrics_files(plan, study, study.claimed()),
    }
    return {"study": name, "scale": plan.scale, "claims": study.claims} | told


def page_spec(plan: Plan, studies: list[str]) -> dict[str, Any]:
    """What the page shows."""

    def entries(study: Study, drawn: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "title": spec.get("title", name),
                "caption": spec.get("caption", ""),
                "files": drawn_files(plan, study, name),
                "metrics": ""
                if needs_no_runs(spec)
                else metrics_file(plan, study, spec["experiment"]),
                **{
                    key: spec[key]
                    for key in ("kind", "joined")
                    if name in study.tables and key in spec
                },
            }
            for name, spec in drawn.items()
        ]

    shown = [
        {
            "name": study.name,
            "title": study.title,
            "description": study.description,
            "figures": entries(study, study.figures),
            "tables": entries(study, study.tables),
            "titles": plan.titles(study.name, study.strategies(study.experiments)),
            "claims": drawn_files(plan, study, CLAIMS_TABLE) if study.claims else [],
        }
        for study in map(plan.study, studies)
    ]
    return {"scale": plan.scale, "notes": plan.notes, "studies": shown}
