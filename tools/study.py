"""A study's tables and verdicts from any results, in a folder of their own and without Snakemake."""

import contextlib
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


@contextlib.contextmanager
def work_folder() -> Iterator[None]:
    """Work, in this block, in a temporary folder with the project's config and papers' values."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in ("config", "resources"):
            Path(name).symlink_to(ROOT / name)
        yield


def collect_results(plan: Plan, study: str, result_of: Callable[[str], CellResult]) -> None:
    """Write the metrics of a study's experiments from each cell's result by its digest."""
    for experiment in plan.study(study).experiments:
        file, content = experiment_plan(plan, study, experiment)
        write_sealed(file, content, sync=False)
        collect(
            file,
            plan.layout.metrics(study, experiment),
            result_of=lambda path: result_of(digest_in(path)),
        )


@contextlib.contextmanager
def released(study: str) -> Iterator[Plan]:
    """Work, in this block, in a temporary folder with the metrics of a study's released runs."""
    source, folder = f"{RELEASED}/{study}", ROOT / RELEASED / study
    records = {
        record.header["digest"]: replace(
            record, header=record.header | {"restored": [{"release": source}]}
        )
        for record in (read_release(folder) if folder.exists() else [])
    }

    def result_of(digest: str) -> CellResult:
        if digest in records:
            return result_of_record(records[digest])
        return CellResult("missing", PLACEHOLDER_ROW.iloc[:0])

    with work_folder():
        plan = load({"studies": study})
        collect_results(plan, study, result_of)
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
