"""The input functions and params of the rules, and the named targets: `all`, each study, and its
figures and tables.

Snakemake's main process, the driver, holds the plan. A job on a cluster reads the Snakefile anew,
but has no plan: it reads only the plan files that the driver froze, so that a study can be edited,
or broken, while its jobs wait.
"""

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from cohort.core import paths
from cohort.core.errors import UserError, suggest
from cohort.core.files import code_hash
from cohort.data.parsers import DatasetInfo
from cohort.pipeline import specs
from cohort.plan import Plan, Study, all_studies, cost, drawn_names
from cohort.plan.loading import study_file
from cohort.results.paper import paper_files
from cohort.settings import PlannedFile, options_of, read_plan, run_options
from cohort.training.cell import Cell, read_cell

Wildcards = Any
Files = list[str]
T = TypeVar("T")
DRAWN_FILE = re.compile(
    rf"{paths.RESULTS}/\w+/(?:(?:figures|tables)/(\w+)/(\w+)\.\w+|"
    r"report/(?!index\.)(\w+)\.(?:html|json))"
)


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
        self._local, self._longest = local, options.get("max_runtime", cost.MAX_RUNTIME)

    @property
    def plan(self) -> Plan:
        """The driver's plan; a job on a cluster has none."""
        assert self._plan is not None, "only the driver plans"
        return self._plan

    def cell(self, digest: str) -> Cell:
        """The cell of this digest. Raise UserError if the plan has none."""
        if self._plan is None:
            return read_cell(paths.plan_file(digest))
        return self._require_planned("cell", digest, self._plan.cells)

    def planned(self, digest: str) -> PlannedFile:
        """The planned shards or data of this digest, from the plan or its file. Raise UserError if
        the plan has none."""
        if self._plan is None:
            return read_plan(paths.plan_file(digest))
        planned = self._plan.shards | self._plan.data
        return self._require_planned("shards or data", digest, planned)

    def _require_planned(self, what: str, digest: str, planned: Mapping[str, T]) -> T:
        if digest not in planned:
            where = f"at scale {self.plan.scale}: add --config studies=STUDY scale=SCALE"
            raise UserError(f"no listed study has the {what} {digest} {where}")
        return planned[digest]

    def _info(self, cell: Cell) -> DatasetInfo:
        """What is declared of a cell's data set; a job reads it from the plan file of the data."""
        if self._plan is not None:
            return self._plan.dataset_info(cell)
        return self.planned(paths.digest_in(cell.inputs["data"])).settings

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
        needed = [] if os.path.exists(cell.path) else [cell.inputs["shards"], cell.inputs["data"]]
        return [file for file in needed if not os.path.exists(file)][:1]

    def megabytes(self, wildcards: Wildcards, attempt: int) -> int:
        """The memory that a training job requests: on this machine, which its cells share, the
        estimate alone."""
        cell = self.cell(wildcards.digest)
        if self._local:
            return round(cost.memory_mb(cell, self._info(cell)))
        return cost.resource_request(cell, self._info(cell), attempt)[0]

    def minutes(self, wildcards: Wildcards, attempt: int) -> int:
        """The time that a training job requests."""
        cell = self.cell(wildcards.digest)
        return cost.resource_request(cell, self._info(cell), attempt, self._longest)[1]

    @exit_on_error
    def collect_inputs(self, wildcards: Wildcards) -> Files:
        """The paths of an experiment's records, one for each cell."""
        study = self._study(wildcards)
        _require_entry(study, "experiment", wildcards.experiment, study.experiments)
        return record_files(self.plan, study.name, wildcards.experiment)

    def collect_plan(self, wildcards: Wildcards) -> str:
        """The path of an experiment's plan: a new name, and so a rerun, when its cells change."""
        return specs.experiment_plan(self.plan, wildcards.study, wildcards.experiment)[0]

    @exit_on_error
    def unknown(self, wildcards: Wildcards) -> Files:
        """Raise a UserError for a target whose name no rule fits."""
        names = [f"{study}_{name}" for study in all_studies() for name in drawn_names(study)]
        choices = suggest(wildcards.target, ["all", *all_studies(), *names])
        raise UserError(f"there is no target '{wildcards.target}'{choices}")

    def _study(self, wildcards: Wildcards) -> Study:
        """The study that a requested file names. Raise UserError for a file of another scale."""
        if wildcards.scale != self.plan.scale:
            scale, hint = self.plan.scale, f"add --config scale={wildcards.scale}"
            raise UserError(f"results/{wildcards.scale} is of another scale than {scale}: {hint}")
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
        return _as_param(specs.spec_of(self.plan, wildcards.study, wildcards.name))

    @exit_on_error
    def claim_inputs(self, wildcards: Wildcards) -> Files:
        """The input files by which a study's claims are judged: metrics and the paper's values."""
        study = self._study(wildcards)
        metrics = (self.plan.layout.metrics(study.name, key) for key in study.claimed())
        return [*metrics, *(str(file) for file in paper_files(study.name) if file.exists())]

    def claims(self, wildcards: Wildcards) -> str:
        """The spec of a study's claims as JSON, a param."""
        return _as_param(specs.claims_spec(self.plan, wildcards.study))

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
        return _as_param(specs.page_spec(self.plan, wildcards.study))

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


def _as_param(spec: specs.Spec) -> str:
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
    names = [*study.drawn_items(), *([paths.CLAIMS_TABLE] if study.claims else [])]
    return [file for name in names for file in output_files(plan, study, name)]


def output_files(plan: Plan, study: Study, name: str) -> Files:
    """The paths of a figure or table, or of the table of claims, in all formats."""
    in_format = plan.layout.figure if name in study.figures else plan.layout.table
    return in_format(study.name, name)


def targets(
    plan: Plan | None, check: Callable[[], None] = lambda: None
) -> Iterator[tuple[str, Callable[[Wildcards], Files]]]:
    """Yield each target's name and the function that returns its files; none in a cluster's job.

    Snakemake calls such a function before it considers any job, and only for the targets that were
    asked for: then their study is planned, and `check` is called.
    """
    if plan is None:
        return

    @exit_on_error
    def files_of(studies: list[str] | None, item: str, wildcards: Wildcards) -> Files:
        check()
        if item and studies:
            return _item_files(plan, studies[0], item)
        index = [] if studies or plan.config.get("only") else [plan.layout.index()]
        return [*index, *_study_files(plan, studies or plan.listed)]

    yield "all", functools.partial(files_of, None, "")
    for name, (study, item) in _target_names().items():
        yield name, functools.partial(files_of, [study], item)


def _target_names() -> dict[str, tuple[str, str]]:
    """Each target's name with its study, and with its figure or table (empty for the whole study).
    Raise a UserError for a name of two targets."""
    names: dict[str, tuple[str, str]] = {}
    for study in all_studies():
        for item in ("", *drawn_names(study)):
            name = f"{study}_{item}" if item else study
            if name in names:
                first, second = (
                    f"'{key}' of {study_file(owner)}" if key else f"the study {study_file(owner)}"
                    for owner, key in (names[name], (study, item))
                )
                raise UserError(f"the target {name} is that of {first} and of {second}; rename one")
            names[name] = study, item
    return names


def requested_items(
    plan: Plan, targets: Iterable[str], renamed: Callable[[str], str] = str
) -> list[tuple[str, str]]:
    """Pairs of a study and a figure or table that these targets of a command line make; the latter
    is empty where a whole study is asked for. `renamed` gives a target the name that it has in a
    workflow that uses Cohort as a module."""
    names = {renamed(name): pair for name, pair in _target_names().items()}
    items = []
    for target in targets or [renamed("all")]:
        if target in (renamed("all"), plan.layout.index()):
            items += [(study, "") for study in plan.listed]
        elif file := DRAWN_FILE.fullmatch(target):
            items.append((file[1] or file[3], file[2] or ""))
        elif target in names:
            items.append(names[target])
    return list(dict.fromkeys(items))


def _study_files(plan: Plan, names: list[str]) -> Files:
    """The pages, metrics, figures, tables and claims of these studies, and missing records; with
    `only`, the records that it allows and nothing else."""
    if plan.config.get("only"):
        return [plan.cells[digest].path for digest in plan.digests(*names)]
    files = []
    for study in map(plan.study, names):
        files += _measured(plan, study.name, study.experiments)
        files += drawn_files(plan, study) + plan.layout.page(study.name)
    return files


def _item_files(plan: Plan, study_name: str, item: str) -> Files:
    """The files of a figure, a table or the claims of a study, and its experiments' metrics and
    missing records; with `only`, the records that it allows and nothing else."""
    study = plan.study(study_name)
    spec = study.drawn_items().get(item)
    if spec is None and item != paths.CLAIMS_TABLE:  # all its cells are skipped, as a note says
        return []
    experiments = study.claimed() if spec is None else [spec["experiment"]]
    if plan.config.get("only"):
        rows = plan.rows([study_name])
        wanted = [row for key in experiments for row in rows.get((study_name, key), [])]
        return list(dict.fromkeys(plan.cells[row.digest].path for row in wanted))
    return _measured(plan, study_name, experiments) + output_files(plan, study, item)


def _measured(plan: Plan, study: str, experiments: Iterable[str]) -> Files:
    """The metrics of these experiments, and the missing records under metrics that exist.

    Snakemake would not notice those: it asks for a record only to make the metrics.
    """
    files = []
    for experiment in experiments:
        files.append(plan.layout.metrics(study, experiment))
        if os.path.exists(files[-1]):
            records = record_files(plan, study, experiment)
            files += [record for record in records if not os.path.exists(record)]
    return files
