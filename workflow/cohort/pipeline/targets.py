"""The named targets: `all`, each study, and each of its figures and tables."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

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
    rf"{RESULTS}/\w+/(?:(?:figures|tables)/(\w+)/(\w+)\.\w+|"
    r"report/(?!index\.)(\w+)\.(?:html|json))"
)


def targets(
    plan: Plan | None, check: Callable[[], None] = lambda: None
) -> Iterator[tuple[str, Target]]:
    """Yield each target's name and the function that returns its files; none in a cluster's job.

    Snakemake calls such a function before it considers any job, and only for the targets that were
    asked for: then their study is planned, and `check` is called.
    """
    if plan is None:
        return

    def target(files: Callable[..., Files], *arguments: Any) -> Target:
        @exit_on_error
        def checked(wildcards: Wildcards) -> Files:
            check()
            return files(plan, *arguments)

        return checked

    yield "all", target(_all_files)
    for name, (study, item) in _target_names().items():
        yield name, target(_item_files, study, item) if item else target(_study_files, [study])


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


def _all_files(plan: Plan) -> Files:
    """The index and the pages of the listed studies, and all files behind them."""
    index = [] if plan.config.get("only") else [plan.layout.index()]
    return [*index, *_study_files(plan, plan.listed)]


def _study_files(plan: Plan, names: list[str]) -> Files:
    """The pages, metrics, figures, tables and claims of these studies, and missing records; with
    `only`, the records that it allows and nothing else."""
    if plan.config.get("only"):
        return [plan.cells[digest].path for digest in plan.digests(*names)]
    files = []
    for study in map(plan.study, names):
        files += _measured(plan, study.name, study.experiments) + drawn_files(plan, study)
        files += plan.layout.page(study.name)
    return files


def _item_files(plan: Plan, study_name: str, item: str) -> Files:
    """The files of a figure, a table or the claims of a study, and its experiments' metrics and
    missing records; with `only`, the records that it allows and nothing else."""
    study = plan.study(study_name)
    spec = study.drawn_items().get(item)
    if spec is None and item != CLAIMS_TABLE:  # all its cells are skipped, as a note says
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
        metrics = plan.layout.metrics(study, experiment)
        files.append(metrics)
        if os.path.exists(metrics):
            paths = record_files(plan, study, experiment)
            files += [record for record in paths if not os.path.exists(record)]
    return files
