"""`cohort restore`: turn released runs into records, which are not trained again."""

import argparse
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cohort.commands.shared import add_whole_studies, load_plan
from cohort.core.errors import FileAccessError, UserError
from cohort.core.paths import RELEASED
from cohort.core.process import tracked
from cohort.core.text import counted
from cohort.data.download import fetch
from cohort.pipeline.driver import lock_directory
from cohort.plan import all_studies
from cohort.records.record import Record
from cohort.results.names import METRICS
from cohort.results.release.folder import MANIFEST, read_manifest, release_folders
from cohort.results.release.restoring import RestoreOutcome, restore

SHOWN = 5  # runs that are named
METRIC = "test_accuracy"
MANIFEST_BYTES, TABLE_BYTES = 10**6, 10**9  # the most that are fetched, if no manifest says less
ADVICE = "check the network, or fetch the release by hand and name its folder with --from"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, and --from."""
    add_whole_studies(parser, default="all that have a release")
    text = f"a folder with releases, one for each study, or its address (default: {RELEASED})"
    parser.add_argument("--from", dest="source", metavar="DIR|URL", default=RELEASED, help=text)


def run(options: argparse.Namespace) -> None:
    """Turn the released runs of these studies, or of all that a release exists of, into records,
    and print how many of each release were restored."""
    plan = load_plan(options)
    for study in tracked(all_studies(), "planning"):
        plan.study(study)
    with _release_folders(options.source, options.studies) as folders, lock_directory():
        for address, folder in folders.items():
            print(*_outcome_lines(address, restore(folder, address, plan.cells)), sep="\n")


@contextmanager
def _release_folders(source: str, studies: list[str]) -> Iterator[dict[str, Path]]:
    """Yield each release's folder by address; one on the web is downloaded to a temporary
    folder."""
    if not source.lower().startswith(("https://", "http://")):
        root, ours = Path(source), release_folders(all_studies()) if source == RELEASED else {}
        manifests = [*root.glob(MANIFEST), *sorted(root.glob(f"*/{MANIFEST}"))]
        every = list(ours.values()) or [file.parent for file in manifests]
        folders = [ours.get(study, root / study) for study in studies] or every
        if not folders:
            raise UserError(f"{source} holds no release; cohort export writes one")
        yield {str(folder): folder for folder in folders}
        return
    if not studies:
        raise UserError(f"name the studies whose releases are to be fetched from {source}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # or the folder would stay
    web = source.rstrip("/")
    with tempfile.TemporaryDirectory(prefix="cohort-release-") as name:
        addresses = {f"{web}/{study}": Path(name, study) for study in studies}
        try:
            for address, folder in addresses.items():
                folder.mkdir()
                fetch(f"{address}/{MANIFEST}", folder / MANIFEST, ADVICE, MANIFEST_BYTES)
                for file, entry in read_manifest(folder)["files"].items():
                    limit = min(entry.get("bytes", TABLE_BYTES), TABLE_BYTES)
                    fetch(f"{address}/{file}", folder / file, ADVICE, limit)
            yield addresses
        except FileAccessError:
            raise
        except UserError as error:  # of a file there, which the user knows by its address
            raise UserError(str(error).replace(name, web)) from None


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
