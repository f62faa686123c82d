"""The named targets: `all`, each study, and each of its figures and tables."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from cohort.core.errors import UserError
from cohort.core.paths import CLAIMS_TABLE, RESULTS
from cohort.pipeline.stages import (
    Files,
    Wildcards,
    drawn_files,
    exit_on_error,
    output_files,
    record_files,
)
from cohort.plan import Plan, all_studies, drawn_names
from cohort.plan.loading import study_file

Target = Callable[[Wildcards], Files]
DRAWN_FILE = re.compile(
    rf"{RESULTS}/\w+/(?:(?:figures|tables)/(\w+)/(\w+)\.(?:narrow\.)?\w+|"
    r"report/(?!index\.)(\w+)\.(?:html|json))"
)


def targets(
    plan: Plan | None, check: Callable[[], None] | None = None
) -> Iterator[tuple[str, Target]]:
    """Yield each target's name and the function that returns its files; none in a cluster's job.

    Snakemake calls such a function before it considers any job, and only for the targets that were
    asked for: then their study is planned, and `check` is called.
    """
    if plan is None:
        return
    files = _Targets(plan)
    yield "all", _checked_target(files.everything, check)
    makes: dict[str, str] = {}  # by target
    for study in all_studies():
        _take(makes, study, f"the study {study_file(study)}")
        yield study, _checked_target(partial(files.studies, [study]), check)
        for name in drawn_names(study):
            _take(makes, f"{study}_{name}", f"'{name}' of {study_file(study)}")
            yield f"{study}_{name}", _checked_target(partial(files.item, study, name), check)


def _take(makes: dict[str, str], target: str, what: str) -> None:
    """Note what a target makes. Raise UserError if it makes something else already."""
    if target in makes:
        raise UserError(
            f"the target {target} would be that of {makes[target]} and of {what}; rename one"
        )
    makes[target] = what


def requested_items(
    plan: Plan, targets: Iterable[str], renamed: Callable[[str], str] = str
) -> list[tuple[str, str]]:
    """Pairs of a study and a figure or table that these targets of a command line make; the latter
    is empty where a whole study is asked for. `renamed` gives a target the name that it has in a
    workflow that uses Cohort as a module."""
    items = []
    for target in targets or [renamed("all")]:
        if target in (renamed("all"), plan.layout.index()):
            items += [(study, "") for study in plan.listed]
        elif file := DRAWN_FILE.fullmatch(target):
            items.append((file[1] or file[3], file[2] or ""))
        else:
            items += [(study, name) for study, name in _items_of_target(target, renamed)]
    return list(dict.fromkeys(items))


def _items_of_target(target: str, renamed: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield the study of a target's name and an empty text, or its study and figure or table."""
    for study in all_studies():
        if target == renamed(study):
            yield study, ""
        for name in drawn_names(study):
            if target == renamed(f"{study}_{name}"):
                yield study, name


def _checked_target(files: Callable[[], Files], check: Callable[[], None] | None) -> Target:
    """A function that runs `check` and returns the files."""

    @exit_on_error
    def target(wildcards: Wildcards) -> Files:
        if check is not None:
            check()
        return files()

    return target


class _Targets:
    """The files of each named target; with `only`, the records that it allows and nothing else."""

    def __init__(self, plan: Plan):
        self.plan, self.only = plan, bool(plan.config.get("only"))

    def everything(self) -> Files:
        """The index and the pages of the listed studies, and all files behind them."""
        index = [] if self.only else [self.plan.layout.index()]
        return [*index, *self.studies(self.plan.listed)]

    def studies(self, names: list[str]) -> Files:
        """The pages, metrics, figures, tables and claims of these studies, and missing records."""
        if self.only:
            return [self.plan.cells[digest].path for digest in self.plan.digests(*names)]
        files = []
        for study in map(self.plan.study, names):
            files += self._measured(study.name, study.experiments) + drawn_files(self.plan, study)
            files += self.plan.layout.page(study.name)
        return files

    def item(self, study_name: str, item_name: str) -> Files:
        """The files of a figure, a table or the claims of a study, and its experiments' metrics and
        missing records; only the wanted records if the config restricts them by `only`."""
        study = self.plan.study(study_name)
        spec = study.drawn_items().get(item_name)
        if spec is None and item_name != CLAIMS_TABLE:  # all its cells are skipped, as a note says
            return []
        experiments = study.claimed() if spec is None else [spec["experiment"]]
        if self.only:
            rows = self.plan.rows([study_name])
            wanted = [row for key in experiments for row in rows.get((study_name, key), [])]
            return list(dict.fromkeys(self.plan.cells[row.digest].path for row in wanted))
        return self._measured(study_name, experiments) + output_files(self.plan, study, item_name)

    def _measured(self, study: str, experiments: Iterable[str]) -> Files:
        """The metrics of these experiments, and the missing records under metrics that exist.

        Snakemake would not notice those: it asks for a record only to make the metrics.
        """
        files = []
        for experiment in experiments:
            metrics = self.plan.layout.metrics(study, experiment)
            files.append(metrics)
            if os.path.exists(metrics):
                paths = record_files(self.plan, study, experiment)
                files += [record for record in paths if not os.path.exists(record)]
        return files
