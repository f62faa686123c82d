"""The files that hold an experiment's metrics: a Parquet file with the numbers, and beside it a
JSON file that says what the runs are. Both are verified whenever either is read.

Planning imports this module, so pandas is lazy.
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core.errors import FileAccessError, UserError, explain_errors
from cohort.core.files import atomic_write, sha256
from cohort.core.lazy import lazy
from cohort.core.sealed_json import DAMAGED, read_sealed, write_sealed
from cohort.core.text import counted

if TYPE_CHECKING:
    from pandas import DataFrame

pd = lazy("pandas")
PARQUET_SHA256, SOURCES = "parquet_sha256", "sources"
KIND = "metrics"
FIX = "delete it and run snakemake again, which collects it anew"


def write_metrics(
    file: str | Path, metrics: DataFrame, experiment: Mapping[str, Any], sources: str = ""
) -> None:
    """Write metrics to a Parquet file, and beside it as JSON the experiment, with the checksums of
    both; `sources` is a hash of the files that the metrics were collected from."""
    with atomic_write(file) as temporary:
        metrics.to_parquet(temporary, index=False)
        checksum = sha256(temporary)
    header = {**experiment, PARQUET_SHA256: checksum} | ({SOURCES: sources} if sources else {})
    write_sealed(Path(file).with_suffix(".json"), header)


def read_metrics(file: str | Path) -> DataFrame:
    """Read the metrics in a Parquet file. Raise UserError if it is missing or damaged."""
    return pd.read_parquet(_verified_bytes(Path(file)))


def read_experiment(file: str | Path) -> dict[str, Any]:
    """Read the JSON file beside a metrics file. Raise UserError if it is missing or damaged."""
    return read_sealed(file, KIND, FIX)


def read_sources_hash(file: str | Path) -> str:
    """Read the hash of the files behind metrics; empty if the metrics are missing or damaged."""
    try:
        _verified_bytes(Path(file))
        return str(read_experiment(Path(file).with_suffix(".json")).get(SOURCES, ""))
    except FileAccessError:
        raise
    except UserError:
        return ""


def _verified_bytes(file: Path) -> io.BytesIO:
    """Read a Parquet file, which must have the checksum in the JSON file beside it."""
    expected = read_experiment(file.with_suffix(".json"))[PARQUET_SHA256]
    try:
        with explain_errors(file):
            content = file.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{file}: is missing; start snakemake again, which writes it") from None
    if hashlib.sha256(content).hexdigest() != expected:
        raise UserError(f"{file}: cannot be read as {KIND} ({DAMAGED}); {FIX}")
    return io.BytesIO(content)


def restored_notes(files: Iterable[str | Path]) -> list[str]:
    """A sentence for each release that runs behind these metrics files were restored from."""
    experiments = (read_experiment(Path(file).with_suffix(".json")) for file in files)
    return restored_sentences(cell for content in experiments for cell in content.get("cells", ()))


def restored_sentences(cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each release that some of these cells' runs were restored from."""
    finished = {cell["digest"]: cell for cell in cells if "settings" in cell}
    names = (dict.fromkeys(cell.get("restored", ())) for cell in finished.values())
    counts = Counter(" ".join(" and ".join(releases).split()) for releases in names)
    runs = counted(len(finished), "finished run")
    return [f"Restored from {name}: {n:,} of {runs}." for name, n in counts.items() if name]
