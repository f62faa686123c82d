"""`cohort doctor`: whether this machine and folder have what training needs: file locks, a GPU,
SLURM, and the data."""

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cohort.commands.shared import add_studies, load_plan, paint
from cohort.core.errors import UserError, explain_errors
from cohort.core.files import check_writable, is_locked, try_lock
from cohort.core.lazy import lazy
from cohort.core.paths import RESULTS
from cohort.data.raw import RawFile, files_in_mirror
from cohort.pipeline.slurm import SLURM_COMMANDS, check_slurm
from cohort.plan import Plan

if TYPE_CHECKING:
    import torch
else:
    torch = lazy("torch")

LOCAL = ("package:", "file:")  # sources of data that nobody downloads

add_arguments = add_studies


def run(options: argparse.Namespace) -> None:
    """Print what each check finds. Raise UserError if one fails."""
    plan, failed = load_plan(options), []
    for name, state, sentence in findings(plan):
        print(f"{paint(state.ljust(8), state)} {name}: {sentence}")
        failed += [name] if state == "failed" else []
    if failed:
        raise UserError(f"cells cannot be trained here: {', '.join(failed)}")


def findings(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield what was checked, how it ended (ok, warning or failed), and a sentence on it."""
    if locks_hold(Path(RESULTS) if Path(RESULTS).exists() else Path()):
        yield "locks", "ok", "work on this machine; whether other nodes see them is up to the mount"
    else:
        yield "locks", "failed", "the file system has none; two jobs might train one cell"
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        yield "GPU", "ok", ", ".join(map(torch.cuda.get_device_name, range(count)))
    elif plan.config["device"] == "cuda":
        yield "GPU", "failed", "device is cuda, but PyTorch sees none"
    else:
        yield "GPU", "ok", "PyTorch sees none; cells train on the CPU"
    if not any(map(shutil.which, SLURM_COMMANDS)):
        yield "SLURM", "ok", "not on this machine; cells train here"
    else:
        try:
            check_slurm()
            yield "SLURM", "ok", "its controller answers"
        except UserError as error:
            yield "SLURM", "warning", str(error)
    yield from (("data", *finding) for finding in check_raw_files(plan))


def locks_hold(folder: Path) -> bool:
    """Whether a locked file in this folder is seen as locked, and free once it is closed."""
    check_writable(folder)
    with explain_errors(folder), tempfile.TemporaryDirectory(dir=folder) as temporary:
        path = Path(temporary, "lock")
        if (file := try_lock(path)) is None:
            return False
        was_locked = is_locked(path)
        file.close()
        return was_locked and not is_locked(path)


def check_raw_files(plan: Plan) -> Iterator[tuple[str, str]]:
    """Whether the listed studies' data are here, in the mirror, or have to be downloaded."""
    mirror = plan.config.get("data_mirror", "")
    for planned in plan.data.values():
        dataset, prepared = planned.settings["dataset"], Path(planned.path).exists()
        raw = plan.datasets[dataset]["files"]
        missing = (item for item in planned.inputs.items() if not Path(item[1]).exists())
        absent = [(Path(path).name, RawFile(**raw[name])) for name, path in missing]
        fetched = [pair for pair in absent if not pair[1].source.startswith(LOCAL)]
        names = ({name, file.source_name} for name, file in fetched)
        if prepared or not fetched:
            yield "ok", f"{dataset} is {'prepared' if prepared else 'here'}"
        elif all(files_in_mirror(mirror, pair) for pair in names):
            yield "ok", f"{dataset} is in the mirror, {mirror}"
        else:
            where = f"not in the mirror, {mirror}" if mirror else "no data_mirror is set"
            login = next((file.login for _, file in fetched if file.login), "")
            how = f"is behind a login ({login})" if login else "has to be downloaded"
            yield "warning", f"{dataset} {how}; {where}"
