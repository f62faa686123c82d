"""A study's tables and verdicts from any results, in a folder of their own, without Snakemake."""

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from cohort.core.paths import CLAIMS_TABLE, RELEASED, digest_in
from cohort.core.sealed_json import write_sealed
from cohort.pipeline.stages import claims_spec, experiment_plan, spec_of
from cohort.plan import Plan, load
from cohort.results.claims.judged import JudgedClaim, judged_claims, write_judged
from cohort.results.collect import PLACEHOLDER_ROW, CellResult, collect, result_of_record
from cohort.results.comparison import Comparison
from cohort.results.release.folder import read_release
from cohort.results.tables.tabulate import compare_table, tabulate

ROOT = Path(__file__).resolve().parents[1]


def work_folder() -> tempfile.TemporaryDirectory[str]:
    """Make a temporary folder with the project's config and papers' values."""
    folder = tempfile.TemporaryDirectory()
    for name in ("config", "resources"):
        Path(folder.name, name).symlink_to(ROOT / name)
    return folder


def collect_results(plan: Plan, study: str, result_of: Callable[[str], CellResult]) -> None:
    """Write the metrics of a study's experiments from each cell's result by its digest."""
    for experiment in plan.study(study).experiments:
        file, content = experiment_plan(plan, study, experiment)
        write_sealed(file, content, sync=False)
        output = plan.layout.metrics(study, experiment)
        collect(file, output, result_of=lambda path: result_of(digest_in(path)))


@functools.cache
def collect_released(study: str) -> tuple[tempfile.TemporaryDirectory[str], Plan]:
    """A folder with the metrics of a study's released runs, made once per process; the plan."""
    folder, source = work_folder(), f"{RELEASED}/{study}"
    runs = read_release(ROOT / source) if (ROOT / source).exists() else []
    restored = {"restored": [{"release": source}]}
    records = {run.header["digest"]: replace(run, header=run.header | restored) for run in runs}
    missing = CellResult("missing", PLACEHOLDER_ROW.iloc[:0])

    @functools.cache
    def result_of(digest: str) -> CellResult:
        return result_of_record(records[digest]) if digest in records else missing

    with contextlib.chdir(folder.name):
        plan = load({"studies": study})
        collect_results(plan, study, result_of)
    return folder, plan


@contextlib.contextmanager
def released(study: str) -> Iterator[Plan]:
    """Work, in this block, in a folder with the metrics of a study's released runs."""
    folder, plan = collect_released(study)
    with contextlib.chdir(folder.name):
        yield plan


def compared_table(plan: Plan, study: str, name: str) -> Comparison:
    """What the collected results say in a table."""
    spec = spec_of(plan, study, name)
    return compare_table(spec, plan.layout.metrics(study, spec["experiment"]))


def judged(plan: Plan, study: str) -> list[JudgedClaim]:
    """The verdicts on a study's claims by the collected results."""
    return judged_claims(claims_spec(plan, study))


def markdown_tables(plan: Plan, study: str) -> dict[str, str]:
    """A study's tables by name, and last the one of its claims, from the collected results."""
    layout, texts = plan.layout, {}
    for name in plan.study(study).tables:
        spec, files = spec_of(plan, study, name), layout.table(study, name)
        tabulate(spec, layout.metrics(study, spec["experiment"]), files)
        texts[name] = _markdown(files)
    if plan.study(study).claims:
        write_judged(claims_spec(plan, study, layout), layout.table(study, CLAIMS_TABLE))
        texts[CLAIMS_TABLE] = _markdown(layout.table(study, CLAIMS_TABLE))
    return texts


def _markdown(files: Iterable[str]) -> str:
    (file,) = (Path(file) for file in files if file.endswith(".md"))
    return file.read_text(encoding="utf-8").strip()
