"""`cohort restore`: turn released runs into records, which are not trained again."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cohort.commands.planning import add_studies, load_plan
from cohort.core.errors import UserError
from cohort.core.layout import RELEASED
from cohort.data.fetch import fetch
from cohort.metrics.names import METRICS
from cohort.plan import all_studies
from cohort.records.record import Record
from cohort.release.folder import MANIFEST, read_manifest
from cohort.release.restoring import Outcome, restore

SHOWN = 5  # runs that are named
METRIC = "test_accuracy"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, and --from."""
    add_studies(parser)
    parser.add_argument(
        "--from",
        dest="source",
        metavar="DIR|URL",
        default=RELEASED,
        help=f"a folder with releases, one for each study, or its address (default: {RELEASED})",
    )


def run(options: argparse.Namespace) -> None:
    """Restore the releases of these studies, or all that there are."""
    plan = load_plan(options)
    for study in all_studies():
        plan.study(study)
    with _folder(options.source, options.studies) as source:
        folders = [source / study for study in options.studies] or sorted(
            file.parent for file in [*source.glob(MANIFEST), *source.glob(f"*/{MANIFEST}")]
        )
        if not folders:
            raise UserError(f"{source} holds no release; cohort export writes one")
        for folder in folders:
            for line in _lines(folder, restore(folder, plan.cells)):
                print(line)


@contextmanager
def _folder(source: str, studies: list[str]) -> Iterator[Path]:
    """The folder of the releases; those of an address are downloaded to a temporary one."""
    if not source.startswith(("https://", "http://")):
        yield Path(source)
        return
    if not studies:
        raise UserError(f"name the studies to restore from {source}")
    with tempfile.TemporaryDirectory(prefix="cohort-release-") as name:
        for study in studies:
            address, folder = f"{source.rstrip('/')}/{study}", Path(name, study)
            folder.mkdir()
            fetch(f"{address}/{MANIFEST}", folder / MANIFEST)
            for file in read_manifest(folder)["files"]:
                fetch(f"{address}/{file}", folder / file)
        yield Path(name)


def _lines(folder: Path, outcome: Outcome) -> Iterator[str]:
    counts = (
        (outcome.restored, "restored"),
        (outcome.present, "here already, bit by bit the same"),
        (outcome.different, "here already, with other numbers"),
        (outcome.unplanned, "that no study plans, not restored"),
    )
    yield f"{folder}: " + "; ".join(f"{len(runs)} runs {text}" for runs, text in counts if runs)
    for digest, (here, released) in [*outcome.different.items()][:SHOWN]:
        yield f"  {digest}: {_described(here)} here, {_described(released)} in the release"
    if outcome.unplanned:
        more = ", ..." if len(outcome.unplanned) > SHOWN else ""
        yield f"  not planned: {', '.join(outcome.unplanned[:SHOWN])}{more}"


def _described(record: Record) -> str:
    """The last accuracy of a run, and where it was trained: `52.69 % (native on AMD EPYC)`."""
    value = METRICS[METRIC].scale * record.history.last(METRIC)
    made = record.header["provenance"]
    return f"{value:.2f} % ({made['trainer']} on {', '.join(made['devices'])})"
