"""Finished runs of a study as pandas frames, from records or from a release."""

from pathlib import Path
from typing import Any

from cohort.core.errors import UserError
from cohort.core.paths import RELEASED, RESULTS
from cohort.plan import load as load_plan
from cohort.plan import require_study
from cohort.records.record import read
from cohort.results.release.folder import (
    MANIFEST,
    RunFrames,
    read_tables,
    release_folders,
    tables_of,
)


def load(study: str, source: str = "results", **config: Any) -> RunFrames:
    """Load the finished runs of a study as pandas frames, from its records (`results`), the
    repository's releases (`released`), or the release in another folder. `config` overrides keys of
    config/config.yaml."""
    if source == RESULTS:
        plan = load_plan({"studies": require_study(study), **config})
        paths = (Path(plan.cells[digest].path) for digest in plan.digests(study))
        records = [read(path) for path in paths if path.exists()]
        if not records:
            hint = ', or load its release with source="released"'
            more = hint if study in release_folders([study]) else ""
            where = f"{study} has no finished run at scale {plan.scale}"
            raise UserError(f"{where}; train it first{more}")
        return RunFrames.of(tables_of(records))
    if source == "released":
        return RunFrames.of(read_tables(release_folders([study]).get(study, Path(RELEASED, study))))
    root = Path(source)
    return RunFrames.of(read_tables(root if (root / MANIFEST).exists() else root / study))
