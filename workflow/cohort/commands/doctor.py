"""`cohort doctor`: whether this machine and folder have what training needs: file locks, a GPU,
SLURM, and the data."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cohort.commands.planning import add_studies, load_plan
from cohort.commands.screen import paint
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

OK, WARNING, FAILED = "ok", "warning", "failed"
LOCAL = ("package:", "file:")  # sources of data that nobody downloads

Finding = tuple[str, str]
"""How a check ended, and a sentence on it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies whose data are looked for."""
    add_studies(parser)


def run(options: argparse.Namespace) -> None:
    """Print what each check finds. Raise UserError if one fails."""
    plan = load_plan(options)
    folder = Path(RESULTS) if Path(RESULTS).exists() else Path()
    findings = [
        ("locks", *check_locks(folder)),
        ("GPU", *check_gpu(plan.config["device"])),
        ("SLURM", *check_slurm_commands()),
        *(("data", *finding) for finding in check_raw_files(plan)),
    ]
    for name, state, sentence in findings:
        print(f"{paint(state.ljust(8), state)} {name}: {sentence}")
    if failed := [name for name, state, _ in findings if state == FAILED]:
        raise UserError(f"cells cannot be trained here: {', '.join(failed)}")


def check_locks(folder: Path) -> Finding:
    """Whether a locked file in this folder is seen as locked, and free once it is closed."""
    check_writable(folder)
    with explain_errors(folder), tempfile.TemporaryDirectory(dir=folder) as temporary:
        path = Path(temporary, "lock")
        file = try_lock(path)
        works = file is not None and is_locked(path)
        if file is not None:
            file.close()
        works = works and not is_locked(path)
    if not works:
        return FAILED, "the file system has no file locks; two jobs might train one cell"
    return OK, "work on this machine; whether other nodes see them is up to the mount"


def check_gpu(device: str) -> Finding:
    """The GPUs that PyTorch sees; it must see one if the config wants one."""
    if not torch.cuda.is_available():
        if device == "cuda":
            return FAILED, "device is cuda, but PyTorch sees none"
        return OK, "PyTorch sees none; cells train on the CPU"
    names = map(torch.cuda.get_device_name, range(torch.cuda.device_count()))
    return OK, ", ".join(names)


def check_slurm_commands() -> Finding:
    """Whether SLURM answers, if it is installed; cells train here even if it does not."""
    if not any(shutil.which(command) for command in SLURM_COMMANDS):
        return OK, "not on this machine; cells train here"
    try:
        check_slurm()
    except UserError as error:
        return WARNING, str(error).splitlines()[0]
    return OK, "its controller answers"


def check_raw_files(plan: Plan) -> Iterator[Finding]:
    """Whether the listed studies' data are here, in the mirror, or have to be downloaded."""
    mirror = plan.config.get("data_mirror", "")
    for planned in plan.data.values():
        dataset, entries = planned.settings["dataset"], planned.inputs.items()
        raw = plan.datasets[dataset]["files"]
        absent = {path: RawFile(**raw[name]) for name, path in entries if not Path(path).exists()}
        fetched = [item for item in absent.items() if not item[1].source.startswith(LOCAL)]
        if Path(planned.path).exists() or not fetched:
            yield OK, f"{dataset} is {'prepared' if Path(planned.path).exists() else 'here'}"
        elif all(
            files_in_mirror(mirror, {Path(path).name, file.source_name}) for path, file in fetched
        ):
            yield OK, f"{dataset} is in the mirror, {mirror}"
        else:
            where = f"not in the mirror, {mirror}" if mirror else "no data_mirror is set"
            login = next((file.login for _, file in fetched if file.login), "")
            how = f"is behind a login ({login})" if login else "has to be downloaded"
            yield WARNING, f"{dataset} {how}; {where}"
