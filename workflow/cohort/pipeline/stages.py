"""The input functions and params of the rules.

Snakemake's main process, the driver, holds the plan. A job on a cluster reads the Snakefile anew,
but has no plan: it reads only the plan files that the driver froze, so that a study can be edited,
or broken, while its jobs wait.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cohort.core.errors import UserError, suggest
from cohort.core.files import code_hash
from cohort.core.paths import CLAIMS_TABLE, digest_in, plan_file
from cohort.data.parsers import DatasetInfo
from cohort.pipeline.specs import (
    Spec,
    claims_spec,
    experiment_plan,
    frozen_experiment_path,
    page_spec,
    spec_of,
)
from cohort.plan import Plan, Study, all_studies, drawn_names
from cohort.plan.cost import MAX_RUNTIME, memory_mb, resource_request
from cohort.results.paper import paper_files
from cohort.settings import PlannedFile, options_of, read_plan, run_options
from cohort.training.cell import Cell, read_cell

Wildcards = Any
Files = list[str]
T = TypeVar("T")


def exit_on_error(function: Callable[..., T]) -> Callable[..., T]:
    """Wrap an input function, or a handler of an event, so that a UserError ends Snakemake with its
    message instead of a traceback."""

    @functools.wraps(function)
    def ending(*arguments: Any) -> T:
        try:
            return function(*arguments)
        except UserError as error:
            sys.exit(f"error: {error}")

    return ending


class Stages:
    """The rules' input functions and params, for the driver (with its plan) or a cluster's job.

    With `local`, cells are trained on this machine.
    """

    def __init__(self, plan: Plan | None, local: bool = False):
        self._plan = plan
        self.reported: dict[str, None] = {}  # the studies whose pages were asked for
        options = options_of(plan.config)["request"] if plan else run_options("request")
        self._local, self._longest = local, options.get("max_runtime", MAX_RUNTIME)

    @property
    def plan(self) -> Plan:
        """The driver's plan; a job on a cluster has none."""
        assert self._plan is not None, "only the driver plans"
        return self._plan

    def cell(self, digest: str) -> Cell:
        """The cell of this digest. Raise UserError if the plan has none."""
        if self._plan is None:
            return read_cell(plan_file(digest))
        return self._require_planned("cell", digest, self._plan.cells)

    def planned(self, digest: str) -> PlannedFile:
        """The planned shards or data of this digest, from the plan or its file. Raise UserError if
        the plan has none."""
        if self._plan is None:
            return read_plan(plan_file(digest))
        planned = self._plan.shards | self._plan.data
        return self._require_planned("shards or data", digest, planned)

    def _require_planned(self, what: str, digest: str, planned: Mapping[str, T]) -> T:
        if digest not in planned:
            raise UserError(
                f"no listed study has the {what} {digest} at scale {self.plan.scale}: "
                "add --config studies=STUDY scale=SCALE"
            )
        return planned[digest]

    def _info(self, cell: Cell) -> DatasetInfo:
        """What is declared of a cell's data set; a job reads it from the plan file of the data."""
        if self._plan is not None:
            return self._plan.dataset_info(cell)
        return self.planned(digest_in(cell.inputs["data"])).settings

    def raw(self, wildcards: Wildcards) -> dict[str, Any]:
        """The source and checksums of a raw file."""
        return dict(self.plan.datasets[wildcards.dataset]["files"][wildcards.file])

    @exit_on_error
    def sources(self, wildcards: Wildcards) -> Files:
        """The input files from which a data set is prepared or shards are dealt."""
        return list(self.planned(wildcards.digest).inputs.values())

    @exit_on_error
    def train_inputs(self, wildcards: Wildcards) -> Files:
        """The file that training still lacks: the shards, which need the data in turn, or the data.

        Nothing where the record exists: it stays valid when shards or data were deleted.
        """
        cell = self.cell(wildcards.digest)
        if os.path.exists(cell.path):
            return []
        needed = (cell.inputs["shards"], cell.inputs["data"])
        return [file for file in needed if not os.path.exists(file)][:1]

    def megabytes(self, wildcards: Wildcards, attempt: int) -> int:
        """The memory that a training job requests: on this machine, which its cells share, the
        estimate alone."""
        cell = self.cell(wildcards.digest)
        if self._local:
            return round(memory_mb(cell, self._info(cell)))
        return resource_request(cell, self._info(cell), attempt)[0]

    def minutes(self, wildcards: Wildcards, attempt: int) -> int:
        """The time that a training job requests."""
        cell = self.cell(wildcards.digest)
        return resource_request(cell, self._info(cell), attempt, self._longest)[1]

    @exit_on_error
    def collect_inputs(self, wildcards: Wildcards) -> Files:
        """The paths of an experiment's records, one for each cell."""
        study = self._study(wildcards)
        _require_entry(study, "experiment", wildcards.experiment, study.experiments)
        return record_files(self.plan, study.name, wildcards.experiment)

    def collect_plan(self, wildcards: Wildcards) -> str:
        """The path of an experiment's plan: a new name, and so a rerun, when its cells change."""
        experiment = experiment_plan(self.plan, wildcards.study, wildcards.experiment)
        return frozen_experiment_path(experiment)

    @exit_on_error
    def unknown(self, wildcards: Wildcards) -> Files:
        """Raise a UserError for a target whose name no rule fits."""
        names = [f"{study}_{name}" for study in all_studies() for name in drawn_names(study)]
        choices = suggest(wildcards.target, ["all", *all_studies(), *names])
        raise UserError(f"there is no target '{wildcards.target}'{choices}")

    def _study(self, wildcards: Wildcards) -> Study:
        """The study that a requested file names. Raise UserError for a file of another scale."""
        if wildcards.scale != self.plan.scale:
            raise UserError(
                f"results/{wildcards.scale} is of another scale than {self.plan.scale}: "
                f"add --config scale={wildcards.scale}"
            )
        if wildcards.study not in (names := all_studies()):
            choices = suggest(wildcards.study, names)
            raise UserError(f"there is no study '{wildcards.study}'{choices}")
        return self.plan.study(wildcards.study)

    @exit_on_error
    def item_inputs(self, wildcards: Wildcards) -> Files:
        """The input files of a figure or table: metrics, and the paper's values if it names any."""
        study = self._study(wildcards)
        spec = _require_entry(study, "figure or table", wildcards.name, study.drawn_items())
        paper = study.paper_file(spec)
        metrics = self.plan.layout.metrics(study.name, spec["experiment"])
        return [metrics, *([str(paper)] if paper else [])]

    def spec(self, wildcards: Wildcards) -> str:
        """The spec of a figure or table as JSON, a param: a rerun when any of it changes."""
        return _as_param(spec_of(self.plan, wildcards.study, wildcards.name))

    @exit_on_error
    def claim_inputs(self, wildcards: Wildcards) -> Files:
        """The input files by which a study's claims are judged: metrics and the paper's values."""
        study = self._study(wildcards)
        metrics = (self.plan.layout.metrics(study.name, key) for key in study.claimed())
        return [*metrics, *(str(file) for file in paper_files(study.name) if file.exists())]

    def claims(self, wildcards: Wildcards) -> str:
        """The spec of a study's claims as JSON, a param."""
        return _as_param(claims_spec(self.plan, wildcards.study))

    @exit_on_error
    def page_inputs(self, wildcards: Wildcards) -> Files:
        """The input files of a study's page: runs, metrics, figures, tables and claims."""
        study, layout = self._study(wildcards), self.plan.layout
        self.reported[study.name] = None
        files = [layout.runs(study.name, key) for key in study.experiments]
        files += [layout.metrics(study.name, key) for key in study.experiments]
        return [*files, *drawn_files(self.plan, study)]

    def page_spec(self, wildcards: Wildcards) -> str:
        """The spec of a study's page as JSON, a param."""
        return _as_param(page_spec(self.plan, wildcards.study))

    def cards(self, wildcards: Wildcards) -> Files:
        """Snakemake's input for the report: the cards of the listed studies."""
        return [self.plan.layout.page(name)[1] for name in self.plan.listed]

    def caption(self, wildcards: Wildcards) -> str:
        """The caption of a figure or table in Snakemake's own report."""
        spec = self.plan.study(wildcards.study).drawn_items()[wildcards.name]
        parts = (spec.get("title", wildcards.name), spec.get("caption", ""))
        return literal_rst(". ".join(part.removesuffix(".") for part in parts if part) + ".")

    def code(self, *subpackages: str) -> Callable[[Wildcards], str]:
        """Make a param that changes with the code of records and these subpackages of results."""
        patterns = ["records/**/*", "results/*", *(f"results/{name}/**/*" for name in subpackages)]
        code = functools.cache(lambda: code_hash(*patterns))
        return lambda wildcards: code()


def literal_rst(text: str) -> str:
    """Escape a text for reStructuredText, on one line, so that it is shown as it is: a directive in
    a caption could read any file into Snakemake's report.

    `<` becomes a substitution that `captions/item.rst` defines, see `_as_param`.
    """
    escaped = re.sub(r"[^\w\s]|_", r"\\\g<0>", " ".join(text.split()))
    return escaped.replace(r"\<", r"\ |lt|\ ")


def _as_param(spec: Spec) -> str:
    """Convert a spec to JSON without `<`: Snakemake's report shows params inside a script element,
    which `</script>` would end."""
    return json.dumps(spec).replace("<", r"\u003c")


def _require_entry(study: Study, kind: str, name: str, entries: Mapping[str, T]) -> T:
    """The study's entry of this name. Raise UserError if it has none."""
    if name not in entries:
        raise UserError(f"{study.name} has no {kind} '{name}'{suggest(name, entries)}")
    return entries[name]


def record_files(plan: Plan, study: str, experiment: str) -> Files:
    """The paths of the records of an experiment, each once."""
    rows = plan.study(study).experiments[experiment].rows
    return list(dict.fromkeys(plan.cells[row.digest].path for row in rows))


def drawn_files(plan: Plan, study: Study) -> Files:
    """The paths of all figures and tables of a study, and of its table of claims."""
    names = [*study.drawn_items(), *([CLAIMS_TABLE] if study.claims else [])]
    return [file for name in names for file in output_files(plan, study, name)]


def output_files(plan: Plan, study: Study, name: str) -> Files:
    """The paths of a figure or table, or of the table of claims, in all formats."""
    layout = plan.layout
    in_format = layout.figure if name in study.figures else layout.table
    return in_format(study.name, name)
