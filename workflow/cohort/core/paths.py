"""Paths of the pipeline's files, relative to the working directory. The rules repeat them as
patterns, which Snakemake must see; a test compares the two."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = "results"
CELLS = f"{RESULTS}/cells"
SHARDS = f"{RESULTS}/shards"
RELEASED = "resources/released"
PLAN_FOLDER = f"{RESULTS}/plan"
RUN_OPTIONS = Path(PLAN_FOLDER, "run.json")
DRIVER_LOCK = Path(PLAN_FOLDER, "driver.lock")

FIGURE_ENDINGS = (".png", ".pdf", ".json", "-narrow.png")  # the last for phones
TABLE_FORMATS = ("csv", "md", "tex", "json")
CLAIMS_TABLE = "claims"  # the name of the table that a study's claims are judged in
CELL_FOLDERS = ("dataset", "model", "partition", "J", "strategy")
CELL_LABELS = (*CELL_FOLDERS, "seed")
"""The labels that every cell has; its experiment's axes are the others."""


def raw_file(dataset: str, name: str) -> str:
    """Path of a raw file, as its publisher provides it."""
    return f"resources/raw/{dataset}/{name}"


def data_file(dataset: str, digest: str) -> str:
    """Path of a prepared data set."""
    return f"resources/data/{dataset}-{digest}.h5"


def shards_file(settings: Mapping[str, Any], digest: str) -> str:
    """Path of the shards of a data set's partition."""
    folder = f"{SHARDS}/{settings['dataset']}/{settings['partition']}"
    return f"{folder}/clients{settings['clients']}-seed{settings['seed']}-{digest}.h5"


def record_file(settings: Mapping[str, Any], digest: str) -> str:
    """Path of the record of a cell."""
    folder = "/".join(settings[key] for key in CELL_FOLDERS)
    return f"{CELLS}/{folder}/seed{settings['seed']}-{digest}.h5"


def digest_in(path: str | Path) -> str:
    """The digest that ends the name of a record, of shards or of prepared data."""
    return Path(path).stem.rpartition("-")[2]


def state_folder(record: str | Path) -> Path:
    """The folder of a cell's lease, checkpoints and unpublished record. No rule declares it, so
    Snakemake neither deletes nor trusts what is in it."""
    return Path(record).with_suffix(".state")


def train_log(record: str | Path) -> Path:
    """Path of the log of a cell's training jobs."""
    return Path(RESULTS, "logs/train", Path(record).relative_to(CELLS)).with_suffix(".log")


def plan_file(digest: str) -> Path:
    """Path of the frozen plan of a cell, of shards or of prepared data."""
    return Path(PLAN_FOLDER, f"{digest}.json")


@dataclass(frozen=True)
class Layout:
    """Paths of the metrics, figures, tables and pages of one scale. Previews of unfinished studies
    (`partial`) have a folder of their own: Snakemake would take them for outputs up to date."""

    scale: str
    partial: bool = False

    @property
    def folder(self) -> str:
        """Root folder of this layout's files."""
        return f"{RESULTS}/{self.scale}" + ("/partial" if self.partial else "")

    def metrics(self, study: str, experiment: str) -> str:
        """Path of the metrics of an experiment."""
        return f"{self.folder}/metrics/{study}/{experiment}.parquet"

    def runs(self, study: str, experiment: str) -> str:
        """Path of the settings and provenance of an experiment's records, next to its metrics."""
        return f"{self.folder}/metrics/{study}/{experiment}.json"

    def figure(self, study: str, name: str) -> list[str]:
        """Paths of a figure, one for each format."""
        return [f"{self.folder}/figures/{study}/{name}{ending}" for ending in FIGURE_ENDINGS]

    def table(self, study: str, name: str) -> list[str]:
        """Paths of a table, one for each format."""
        return [f"{self.folder}/tables/{study}/{name}.{suffix}" for suffix in TABLE_FORMATS]

    def page(self, study: str) -> list[str]:
        """Paths of a study's page and of its card for the index."""
        return [f"{self.folder}/report/{study}.html", f"{self.folder}/report/{study}.json"]

    def index(self) -> str:
        """Path of the page with a card for each study."""
        return f"{self.folder}/report/index.html"


def relative_path(path: str | Path) -> str:
    """The path relative to the working directory if it lies there, else unchanged."""
    absolute = Path(os.path.normpath(Path.cwd() / path))
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else path)
