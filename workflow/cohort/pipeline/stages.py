"""The input functions, params and named targets of the rules, and the specs of figures, tables,
claims and pages, ready for JSON. The driver, Snakemake's main process, holds the plan. A job on a
cluster reads the Snakefile anew, but has only the plan files that the driver froze, so that a study
can be edited, or broken, meanwhile."""

import functools
import hashlib
import json
import os
import re
import sys
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from cohort.core import UserError, check_allowed, paths, user_files
from cohort.core.errors import suggest
from cohort.core.files import code_hash
from cohort.data.parsers import DatasetInfo
from cohort.plan import Plan, Row, Study, all_studies, cost, drawn_names, require_study
from cohort.results.names import BASELINE
from cohort.results.paper import paper_files
from cohort.results.series import FULL
from cohort.settings import PlannedFile, options_of, read_plan, run_options
from cohort.training.cell import Cell, read_cell
from cohort.training.job.lease import GROUP

Wildcards = Any
Files = list[str]
Spec = dict[str, Any]
T = TypeVar("T")
PAGE_TEXTS = ("name", "title", "question", "key_figure", "description", "source", "notes")
"""The texts of a study that its page shows as they are."""


def exit_on_error(function: Callable[..., T]) -> Callable[..., T]:
    """Wrap what Snakemake calls, so that a UserError ends it with one line, not a traceback."""

    @functools.wraps(function)
    def ending(*arguments: Any) -> T:
        try:
            return function(*arguments)
        except UserError as error:
            sys.exit(f"error: {error}")

    return ending


class Stages:
    """The rules' input functions and params, for the driver, which has a plan, or a job. `on_train`
    is called for each training job of the driver's."""

    def __init__(
        self, plan: Plan | None, workflow: Any = None, on_train: Callable[[], None] = lambda: None
    ):
        self._plan, self._workflow, self._on_train = plan, workflow, on_train
        self.requested: dict[str, None] = {}  # the studies of which any file was asked for
        self.reported: dict[str, None] = {}  # those whose pages were
        options = options_of(plan.config)["request"] if plan else run_options("request")
        self._longest = options.get("max_runtime", cost.MAX_RUNTIME)

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
        """The planned shards or data of this digest. Raise UserError if the plan has none."""
        if self._plan is None:
            return read_plan(paths.plan_file(digest))
        planned = ChainMap(self._plan.shards, self._plan.data)
        return self._require_planned("shards or data", digest, planned)

    def _require_planned(self, kind: str, digest: str, planned: Mapping[str, T]) -> T:
        if digest not in planned:
            where = f"at scale {self.plan.scale}: add --config studies=STUDY scale=SCALE"
            raise UserError(f"no listed study has the {kind} {digest} {where}")
        return planned[digest]

    def _info(self, cell: Cell) -> DatasetInfo:
        """What is declared of a cell's data set, as in the plan of its data."""
        return self.planned(paths.digest_in(cell.inputs["data"])).settings

    @exit_on_error
    def raw(self, wildcards: Wildcards) -> dict[str, Any]:
        """The source and checksums of a raw file."""
        dataset, datasets = wildcards.dataset, self.plan.datasets
        check_allowed(dataset, datasets, f"there is no data set '{dataset}'")
        files = datasets[dataset]["files"]
        check_allowed(wildcards.file, files, f"{dataset} has no file '{wildcards.file}'")
        return dict(files[wildcards.file])

    @exit_on_error
    def sources(self, wildcards: Wildcards) -> Files:
        """The files that preparing a data set or dealing shards still lacks."""
        return _missing(self.planned(wildcards.digest).inputs.values())

    @exit_on_error
    def train_inputs(self, wildcards: Wildcards) -> Files:
        """The file that training still lacks: the shards, which need the data in turn, or the data.
        None where the record exists: it stays valid when shards or data were deleted. With options
        that make Snakemake train it nevertheless (-F, -R, -f) it needs them again."""
        cell = self.cell(wildcards.digest)
        if cell.path != (asked := f"{paths.CELLS}/{wildcards.cell}-{cell.digest}.h5"):
            raise UserError(f"{asked}: the cell of this digest is {cell.path}")
        if self._plan is None:  # note the cells of this job, for the processes that train them
            os.environ[GROUP] = f"{os.environ.get(GROUP, '')} {cell.digest}"
        else:
            self._on_train()
        if os.path.exists(cell.path) and not self._is_forced(cell.path):
            return []
        return _missing([cell.inputs["shards"], cell.inputs["data"]])[:1]

    def _is_forced(self, record: str) -> bool:
        options = self._workflow.dag_settings
        forced = {*options.forcerun, *(options.targets if options.forcetargets else ())}
        is_rule = any(trains(rule) for rule in self._workflow.rules if rule.name in forced)
        return options.forceall or is_rule or record in forced

    def megabytes(self, wildcards: Wildcards, attempt: int) -> int:
        """The memory that a training job requests: the estimate alone on this machine."""
        cell = self.cell(wildcards.digest)
        if self._plan is not None and trains_locally(self._workflow):
            return round(cost.memory_mb(cell, self._info(cell)))
        return cost.resource_request(cell, self._info(cell), attempt)[0]

    def minutes(self, wildcards: Wildcards, attempt: int) -> int:
        """The time that a training job requests."""
        cell = self.cell(wildcards.digest)
        return cost.resource_request(cell, self._info(cell), attempt, self._longest)[1]

    def at_most(self, minutes: int) -> int:
        """These minutes, or `max_runtime` if that is less."""
        return min(minutes, self._longest)

    @exit_on_error
    def collect_inputs(self, wildcards: Wildcards) -> Files:
        """The paths of an experiment's records, one for each cell."""
        study = self._study(wildcards)
        name, experiments = wildcards.experiment, study.experiments
        check_allowed(name, experiments, f"{study.name} has no experiment '{name}'")
        return record_files(self.plan, study.name, name)

    def collect_plan(self, wildcards: Wildcards) -> str:
        """The path of an experiment's plan: a new name, and so a rerun, when its cells change."""
        return experiment_plan(self.plan, wildcards.study, wildcards.experiment)[0]

    @exit_on_error
    def unknown(self, wildcards: Wildcards) -> Files:
        """Raise a UserError for a target whose name no rule fits. A file that exists, or that a
        rule of the user's makes, is not for this rule, which then lacks its input."""
        makers = [rule for rule in self._workflow.rules if rule.is_producer(wildcards.target)]
        if len(makers) > 1 or os.path.exists(wildcards.target):
            return [f"{wildcards.target}/none"]
        target, studies = wildcards.target, all_studies()
        names = [f"{study}_{name}" for study in studies for name in drawn_names(study)]
        own = tuple(f"{study}_" for study in studies if target.startswith(f"{study}_"))
        allowed = sorted(["all", *studies, *names], key=lambda name: not name.startswith(own))
        raise UserError(f"there is no target '{target}'{suggest(target, allowed)}")

    def _study(self, wildcards: Wildcards) -> Study:
        """The study that a requested file names. Raise UserError for a file of another scale."""
        if wildcards.scale != self.plan.scale:
            scale, hint = self.plan.scale, f"add --config scale={wildcards.scale}"
            raise UserError(f"results/{wildcards.scale} is of another scale than {scale}: {hint}")
        self.requested[require_study(wildcards.study)] = None
        return self.plan.study(wildcards.study)

    @exit_on_error
    def item_inputs(self, wildcards: Wildcards) -> Files:
        """The input files of a figure or table: metrics, and the paper's values if it names any."""
        study = self._study(wildcards)
        name, items = wildcards.name, study.drawn_items()
        check_allowed(name, items, f"{study.name} has no figure or table '{name}'")
        spec, paper = items[name], study.paper_file(items[name])
        metrics = self.plan.layout.metrics(study.name, spec["experiment"])
        return [metrics, *([str(paper)] if paper else [])]

    def spec(self, wildcards: Wildcards) -> str:
        """The spec of a figure or table as JSON, a param: a rerun when any of it changes."""
        return _as_param(spec_of(self.plan, wildcards.study, wildcards.name))

    @exit_on_error
    def claim_inputs(self, wildcards: Wildcards) -> Files:
        """The input files by which a study's claims are judged: metrics and the paper's values."""
        study = self._study(wildcards)
        if not study.claims:
            raise UserError(f"{study.name} has no claims")
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
        """The cards of the listed studies, of which the index is made."""
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
    a caption could read any file into Snakemake's report. `<`, which its page would take for a tag
    (see `_as_param`), becomes a substitution that `captions/item.rst` defines."""
    return re.sub(r"[^\w\s]|_", r"\\\g<0>", " ".join(text.split())).replace(r"\<", r"\ |lt|\ ")


def _as_param(spec: Spec) -> str:
    """Convert a spec to JSON without `<`, as `</script>` would end its element in a report."""
    return json.dumps(spec).replace("<", r"\u003c")


def record_files(plan: Plan, study: str, experiment: str) -> Files:
    """The paths of the records of an experiment, each once."""
    rows = plan.study(study).experiments[experiment].rows
    return list(dict.fromkeys(plan.cells[row.digest].path for row in rows))


def drawn_files(plan: Plan, study: Study) -> Files:
    """The paths of all figures and tables of a study, and of its table of claims."""
    names = [*study.drawn_items(), *([paths.CLAIMS_TABLE] if study.claims else [])]
    return [file for name in names for file in output_files(plan.layout, study, name)]


def output_files(layout: paths.Layout, study: Study, name: str) -> Files:
    """The paths of a figure or table, or of the table of claims, in all formats."""
    return (layout.figure if name in study.figures else layout.table)(study.name, name)


def targets(
    plan: Plan | None, check: Callable[[], None] = lambda: None
) -> Iterator[tuple[str, Callable[[Wildcards], Files]]]:
    """Yield each target's name and the function that returns its files, which Snakemake calls
    before it considers any job, and only for the targets that were asked for: then their study is
    planned, and `check` is called. None in a cluster's job."""
    if plan is None:
        return

    @exit_on_error
    def files_of(studies: list[str] | None, item: str, wildcards: Wildcards) -> Files:
        check()
        index = [] if studies or plan.config.get("only") else [plan.layout.index()]
        return [*index, *_target_files(plan, studies or plan.listed, item)]

    owners = {"all": ""}
    yield "all", functools.partial(files_of, None, "")
    for study in all_studies():
        for item in ("", *drawn_names(study)):
            name = f"{study}_{item}" if item else study
            if owners.setdefault(name, study) != study:
                raise UserError(f"studies {owners[name]} and {study}: both have a target {name}")
            yield name, functools.partial(files_of, [study], item)


def _target_files(plan: Plan, names: list[str], item: str) -> Files:
    """The pages, metrics, figures, tables and claims of these studies, or the files of one item of
    theirs, and missing records; with `only`, the records that it allows and nothing else."""
    experiments, files = list[tuple[str, str]](), list[str]()
    for study in map(plan.study, names):
        spec, keys = study.drawn_items().get(item), list[str]()
        if not item:
            keys = list(study.experiments)
            files += drawn_files(plan, study) + plan.layout.page(study.name)
        elif spec or item == paths.CLAIMS_TABLE:  # else a note says that all its cells are skipped
            keys = [spec["experiment"]] if spec else study.claimed()
            files += output_files(plan.layout, study, item)
        experiments += [(study.name, key) for key in keys]
    if plan.config.get("only"):
        rows = plan.rows(names)
        digests = dict.fromkeys(row.digest for key in experiments for row in rows.get(key, []))
        if not digests and item:
            raise UserError(f"only: no cell of {item} is as wanted")
        return [plan.cells[digest].path for digest in digests]
    needed = []
    for key in experiments:
        needed.append(plan.layout.metrics(*key))
        if os.path.exists(needed[-1]):  # then Snakemake would not ask for missing records
            needed += _missing(record_files(plan, *key))
    return needed + files


def experiment_plan(plan: Plan, study: str, experiment: str) -> tuple[str, Spec]:
    """An experiment's plan for `collect`, and its path, whose name has a digest of the content."""
    cells = []
    for row in plan.study(study).experiments[experiment].rows:
        planned = plan.cells[row.digest]
        cell: Spec = {"digest": row.digest, "path": planned.path, "labels": row.labels}
        cells.append(cell | ({"share": row.share} if row.share != 1 else {}))
    content = {"study": study, "experiment": experiment, "cells": cells}
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
    return f"{paths.PLAN_FOLDER}/experiments/{study}-{experiment}-{digest}.json", content


def spec_of(plan: Plan, study: str, name: str) -> Spec:
    """The spec of a figure or table: its entry in the study, and how to show its values."""
    spec = plan.study(study).drawn_items()[name]
    paper = plan.study(study).paper_file(spec)
    return {
        **spec,
        "study": study,
        "name": name,
        "scale": plan.scale,
        "style": style_of(plan, study, spec["experiment"]),
        **({"paper_values": str(paper)} if paper else {}),
    }


def style_of(plan: Plan, study: str, experiment: str) -> Spec:
    """How a figure or table shows labels: order, titles, colors, the word for a round. Strategies
    have the colors of the whole study: FedAvg the first, then those of its figures."""
    expanded = plan.study(study)
    in_order = expanded.strategies(expanded.experiments)
    in_figures = [figure["experiment"] for figure in expanded.figures.values()]
    strategies = expanded.strategies([*in_figures, *expanded.experiments])
    axes, rows = expanded.experiments[experiment].axes, expanded.experiments[experiment].rows
    names = sorted(axes["strategy"], key=in_order.index)
    round_names = {plan.cells[row.digest].procedure.round_name for row in rows}
    return {
        "orders": axes | {"strategy": names},
        "strategies": sorted(strategies, key=lambda name: name != BASELINE),
        "methods": expanded.methods,
        "titles": _titles_of(plan, expanded, names),
        "round": round_names.pop() if len(round_names) == 1 else "Round",
    }


def _titles_of(plan: Plan, study: Study, strategies: Iterable[str]) -> dict[str, dict[str, str]]:
    """The titles of label values: the study's own, and config/strategies.yaml's for others."""
    defaults = {name: plan.strategies[name]["title"] for name in strategies}
    return study.titles | {"strategy": defaults | study.titles.get("strategy", {})}


def claims_spec(plan: Plan, name: str, layout: paths.Layout | None = None) -> Spec:
    """The spec by which a study's claims are judged, by files of this layout or the plan's."""
    study, layout = plan.study(name), layout or plan.layout
    return {
        "study": name,
        "scale": plan.scale,
        "reproduces": any(file.exists() for file in paper_files(name)),
        "claims": study.claims,
        "titles": _titles_of(plan, study, study.strategies(study.claimed())),
        "metrics": {key: layout.metrics(name, key) for key in study.claimed()},
    }


def page_spec(plan: Plan, name: str, layout: paths.Layout | None = None) -> Spec:
    """The spec of a study's page, with files of this layout or the plan's own."""
    study, layout = plan.study(name), layout or plan.layout
    items = {}
    for key, spec in study.drawn_items().items():
        items[key] = spec_of(plan, name, key) | {
            "title": spec.get("title", key),
            "caption": spec.get("caption", ""),
            "files": output_files(layout, study, key),
            "command": _target_command(plan, f"{name}_{key}"),
        }
    return {
        "scale": plan.scale,
        **{key: getattr(study, key) for key in PAGE_TEXTS},
        "findings": [finding["text"] for finding in study.findings],
        "my": {module: user_files.version_of(module) for module in user_files.modules()},
        "titles": _titles_of(plan, study, study.strategies(study.experiments)),
        "experiments": {
            key: {"runs": layout.runs(name, key), "seconds": _seconds(plan, experiment.rows)}
            for key, experiment in study.experiments.items()
        },
        "figures": [items[key] for key in study.figures],
        "tables": [items[key] for key in study.tables],
        "claims": layout.table(name, paths.CLAIMS_TABLE) if study.claims else [],
        "quotes": {key: _quotes(claim) for key, claim in study.claims.items()},
        "claims_command": _target_command(plan, f"{name}_claims"),
        "command": _target_command(plan, name),
    }


def trains(rule: Any) -> bool:
    """Whether a rule makes records, whatever the name that a using workflow gives it."""
    return any(str(file).startswith(f"{paths.CELLS}/") for file in rule.output)


def trains_locally(workflow: Any) -> bool:
    """Whether jobs run on this machine. `--jobs 4` may mean a cluster, too, until Snakemake has set
    its executor, which a dry run never does."""
    if workflow.resource_settings.nodes is None:
        return True
    plugin = workflow.executor_plugin and workflow.executor_plugin.common_settings
    return bool(plugin) and plugin.local_exec and not plugin.dryrun_exec


def _missing(files: Iterable[str]) -> Files:
    return [file for file in files if not os.path.exists(file)]


def _target_command(plan: Plan, target: str) -> str:
    """The Snakemake command that makes a target at the plan's scale, with as many seeds."""
    config = [f"scale={plan.scale}"] if plan.scale != FULL else []
    config += [f"seeds={plan.config['seeds']}"] if plan.config.get("seeds") else []
    return " ".join(["snakemake", target, *(["--config", *config] if config else [])])


def _quotes(claim: Spec) -> dict[str, str]:
    """The paper's sentence that a claim quotes, the paper's numbers against it, and a reading."""
    return {key: str(claim.get(key, "")) for key in ("quote", "against", "reading")}


def _seconds(plan: Plan, rows: Iterable[Row]) -> dict[str, float]:
    """Estimate the seconds of each cell on one CPU core, to three digits, by digest."""
    cells = {row.digest: plan.cells[row.digest] for row in rows}
    seconds = {key: cost.seconds(cell, plan.dataset_info(cell)) for key, cell in cells.items()}
    return {key: float(f"{estimate:.3g}") for key, estimate in seconds.items()}
