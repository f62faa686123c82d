"""`cohort restore`: turn released runs into records, which are not trained again."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from cohort.commands.shared import add_whole_studies, load_plan
from cohort.core.errors import UserError
from cohort.core.paths import RELEASED
from cohort.core.process import tracked
from cohort.core.text import counted
from cohort.pipeline.driver import lock_directory
from cohort.plan import all_studies
from cohort.records.record import Record
from cohort.results.names import METRICS
from cohort.results.release.folder import MANIFEST, release_folders
from cohort.results.release.restoring import RestoreOutcome, restore

SHOWN = 5  # runs that are named
METRIC = "test_accuracy"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, and --from."""
    add_whole_studies(parser, default="all that have a release")
    text = f"a folder with releases, one for each study (default: {RELEASED})"
    parser.add_argument("--from", dest="source", metavar="DIR", default=RELEASED, help=text)


def run(options: argparse.Namespace) -> None:
    """Turn the released runs of these studies, or of all that a release exists of, into records,
    and print how many of each release were restored."""
    plan = load_plan(options)
    for study in tracked(all_studies(), "planning"):
        plan.study(study)
    with lock_directory():
        for folder in _release_folders(options.source, options.studies):
            outcome = restore(folder, str(folder), plan.cells)
            print(*_outcome_lines(str(folder), outcome), sep="\n")


def _release_folders(source: str, studies: list[str]) -> list[Path]:
    root, ours = Path(source), release_folders(all_studies()) if source == RELEASED else {}
    manifests = [*root.glob(MANIFEST), *sorted(root.glob(f"*/{MANIFEST}"))]
    every = list(ours.values()) or [file.parent for file in manifests]
    if not (folders := [ours.get(study, root / study) for study in studies] or every):
        raise UserError(f"{source} holds no release; cohort export writes one")
    return folders


def _outcome_lines(address: str, outcome: RestoreOutcome) -> Iterator[str]:
    counts = {
        "restored": outcome.restored,
        "here already, bit by bit the same": outcome.present,
        "here already, with other numbers": outcome.different,
        "that no study plans, not restored": outcome.unplanned,
        "that a process here is training, not restored": outcome.training,
    }
    texts = (f"{counted(len(runs), 'run')} {text}" for text, runs in counts.items() if runs)
    yield f"{address}: {'; '.join(texts)}"
    for digest, (here, released) in [*outcome.different.items()][:SHOWN]:
        yield f"  {digest}: {_run_text(here)} here, {_run_text(released)} in the release"
    if outcome.unplanned:
        more = ", ..." if len(outcome.unplanned) > SHOWN else ""
        yield f"  not planned: {', '.join(outcome.unplanned[:SHOWN])}{more}"


def _run_text(record: Record) -> str:
    """A run's last accuracy and where it was trained: `52.69 % (native on AMD EPYC)`."""
    value = METRICS[METRIC].scale * record.history.last(METRIC)
    provenance = record.header["provenance"]
    return f"{value:.2f} % ({provenance['trainer']} on {', '.join(provenance['devices'])})"
