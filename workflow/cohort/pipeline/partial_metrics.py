"""The metrics of those records and checkpoints of an experiment that exist."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from cohort.core.errors import UserError
from cohort.core.files import code_hash
from cohort.core.lazy import lazy
from cohort.core.paths import Layout, state_folder
from cohort.core.sealed_json import write_sealed
from cohort.pipeline.specs import experiment_plan, frozen_experiment_path
from cohort.plan import Plan
from cohort.results import collect
from cohort.results.files import read_sources_hash
from cohort.training.job.lease import CHECKPOINT

if TYPE_CHECKING:
    from cohort.training.job import checkpoint
else:  # it imports torch, which only unfinished cells need
    checkpoint = lazy("cohort.training.job.checkpoint")


def collect_partial(
    plan: Plan, study: str, experiment: str, temporary: str | Path | None = None
) -> str:
    """Collect the metrics of an experiment from what exists and return their file; keep a file that
    the current code collected from just that. Write into the folder `temporary` if there is one."""
    content = experiment_plan(plan, study, experiment)
    target = Layout(plan.scale, partial=True).metrics(study, experiment)
    digest = hashlib.sha256(json.dumps(content).encode())
    digest.update(code_hash("records/**/*", "results/*").encode())
    for path in (cell["path"] for cell in content["cells"]):
        for source in (Path(path), state_folder(path) / CHECKPOINT):
            if source.exists():
                version = source.stat()
                digest.update(f"{source} {version.st_mtime_ns} {version.st_size}\n".encode())
    if read_sources_hash(target) != digest.hexdigest():
        file = frozen_experiment_path(content)
        if temporary:
            target, file = (str(Path(temporary, path)) for path in (target, file))
        write_sealed(file, content, sync=False)
        collect.collect(file, target, result_of=_result_so_far, sources=digest.hexdigest())
    return target


def _result_so_far(record: str) -> collect.Result:
    """Read the result of a cell from its record, else from its checkpoint; empty without either."""
    if Path(record).exists():
        with contextlib.suppress(UserError):
            return collect.read_result(record)
    saved = state_folder(record) / CHECKPOINT
    history = checkpoint.load_history(saved) if saved.exists() else None
    if history is None:
        return collect.Result("missing", collect.EMPTY.iloc[:0])
    return collect.Result("unfinished", collect.rows_by_round(history))
