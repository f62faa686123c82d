"""`cohort doctor`: whether this machine and folder have what training needs."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.cell.settings import Settings
from cohort.commands.planning import add_json, add_studies, load_plan
from cohort.commands.screen import paint, print_json
from cohort.core.errors import UserError, explain_errors
from cohort.core.files import check_writable, is_locked, try_lock
from cohort.core.lazy import lazy
from cohort.core.paths import RESULTS
from cohort.data.raw import RawFile, files_in_mirror
from cohort.pipeline.slurm import SLURM_COMMANDS, check_slurm
from cohort.plan import Plan
from cohort.plan.yaml_files import read_yaml

if TYPE_CHECKING:
    import numpy as np
    import torch

    from cohort.data import samples as data
    from cohort.models import small
    from cohort.training.objectives import cross_entropy
    from cohort.training.trainers import native, serial
else:  # PyTorch is one of the things to check
    np = lazy("numpy")
    torch = lazy("torch")
    data = lazy("cohort.data.samples")
    small = lazy("cohort.models.networks")
    cross_entropy = lazy("cohort.training.objectives")
    native = lazy("cohort.training.trainers.native")
    serial = lazy("cohort.training.trainers.serial")

OK, WARNING, FAILED = "ok", "warning", "failed"
OLDEST_PYTHON = (3, 11)
LEAST_GB, LEAST_FILES = 10, 100_000  # that should be free
NETWORK_FILE_SYSTEMS = ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "fuse.sshfs")
MOST_DIFFERENCE = 1e-10  # between native code and PyTorch, in float64
LOCAL = ("package:", "file:")  # sources of data that nobody downloads
PROFILES = ("profiles", "~/.config/snakemake", "/etc/xdg/snakemake")

Finding = tuple[str, str]
"""How a check ended, and a sentence on it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies whose data are looked for, and --json."""
    add_studies(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print what each check finds. Raise UserError if one fails."""
    results = []
    for name, state, sentence in findings(load_plan(options)):
        results.append({"check": name, "state": state, "finding": sentence})
        if not options.json:
            print(f"{paint(state.ljust(8), state)} {name}: {sentence}", flush=True)
    if options.json:
        print_json(results)
    if failed := [result["check"] for result in results if result["state"] == FAILED]:
        raise UserError(f"cells cannot be trained here: {', '.join(failed)}")


def findings(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Each check in turn: its name, how it ended, and a sentence on it."""
    folder = Path(RESULTS) if Path(RESULTS).exists() else Path()
    checks: dict[str, Callable[[], Iterator[Finding]]] = {
        "Python": check_python,
        "PyTorch": check_pytorch,
        "GPU": lambda: check_gpu(plan.config["device"]),
        "native trainer": check_native_trainer,
        "SLURM": check_slurm_profiles,
        "locks": lambda: check_locks(folder),
        "disk": lambda: check_disk(folder),
        "data": lambda: check_raw_files(plan),
    }
    for name, check in checks.items():
        for state, sentence in _run_check(check):
            yield name, state, sentence


def _run_check(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Run a check and collect its findings. Whatever it raises is a failure."""
    try:
        return list(check())
    except Exception as error:  # a broken installation may raise anything
        reason = str(error) if isinstance(error, UserError) else repr(error)
        return [(FAILED, reason.splitlines()[0])]


def check_python() -> Iterator[Finding]:
    """Check that this Python is new enough."""
    oldest = ".".join(map(str, OLDEST_PYTHON))
    state = OK if sys.version_info >= OLDEST_PYTHON else FAILED
    yield state, f"{platform.python_version()} ({sys.executable}); {oldest} or newer is needed"


def check_pytorch() -> Iterator[Finding]:
    """Check that PyTorch can be imported and multiplies."""
    total = float((torch.ones(2, 2) @ torch.ones(2, 2)).sum())
    yield (OK if total == 8 else FAILED), f"{torch.__version__}, {torch.get_num_threads()} threads"


def check_gpu(device: str) -> Iterator[Finding]:
    """Name the GPUs that PyTorch sees; it must see one if the config wants one."""
    if not torch.cuda.is_available():
        state, sentence = (FAILED, "device is cuda, but") if device == "cuda" else (OK, "")
        yield state, f"{sentence} PyTorch sees none; cells train on the CPU".strip()
        return
    for index in range(torch.cuda.device_count()):
        free, total = (size / 2**30 for size in torch.cuda.mem_get_info(index))
        name = torch.cuda.get_device_name(index)
        yield OK, f"{index}: {name}, {free:.0f} of {total:.0f} GB free"


def check_native_trainer() -> Iterator[Finding]:
    """Check that generated machine code trains as plain PyTorch does."""
    rng = np.random.default_rng(0)
    samples = data.Samples(
        torch.from_numpy(rng.normal(size=(32, 1, 8, 8))),
        torch.from_numpy(rng.integers(0, 3, 32)),
        1.0,
        torch.zeros(1, dtype=torch.float64),
        torch.ones(1, dtype=torch.float64),
    )
    words = {"dataset": "none", "model": "small-mlp", "partition": "iid", "strategy": "none"}
    numbers = {"seed": 0, "clients": 1, "cohort": 1, "rounds": 1, "batch": 16, "lr": 0.1}
    settings = Settings(J="J2", precision="float64", **words, **numbers)  # type: ignore[arg-type]
    model = small.SmallMLP().build((1, 8, 8), 3).double()
    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    trained = []
    for kind in (serial.SerialTrainer, native.NativeTrainer):
        loss = cross_entropy.CrossEntropy()
        trainer = kind(model, settings, loss, samples, [np.arange(32)])
        trained.append(trainer.train(trainer.full_work(weights, [0], 1), weights).weights)
    plain, compiled = trained
    gap = max(float((plain[name] - compiled[name]).abs().max()) for name in plain)
    state = OK if gap < MOST_DIFFERENCE else FAILED
    yield state, f"two steps differ by {gap:.1e} from those of PyTorch"


def check_slurm_profiles() -> Iterator[Finding]:
    """Check that SLURM answers, and name the account and partition of each profile for it."""
    if not any(shutil.which(command) for command in SLURM_COMMANDS):
        yield OK, "not on this machine; cells train here"
        return
    try:
        check_slurm()
    except UserError as error:
        yield WARNING, str(error).splitlines()[0]
        return
    yield OK, "its controller answers"
    for file in (file for folder in PROFILES for file in _profiles(folder)):
        defaults = _default_resources(read_yaml(file) or {})
        named = [
            f"{key} {defaults.get(f'slurm_{key}', 'unset')}" for key in ("account", "partition")
        ]
        yield (WARNING if "unset" in " ".join(named) else OK), f"{file}: {', '.join(named)}"


def _profiles(folder: str) -> list[Path]:
    """List the Snakemake profiles in a folder that submit to SLURM."""
    files = sorted(Path(folder).expanduser().glob("*/*.yaml"))
    return [
        file
        for file in files
        if isinstance(content := read_yaml(file), dict) and content.get("executor") == "slurm"
    ]


def _default_resources(profile: dict[str, Any]) -> dict[str, Any]:
    """The default resources of a Snakemake profile by name, whether it states them as a mapping or
    as a list of `key=value`."""
    resources = profile.get("default-resources", {})
    if isinstance(resources, list):
        return dict(str(entry).partition("=")[::2] for entry in resources)
    return dict(resources)


def check_locks(folder: Path) -> Iterator[Finding]:
    """Check that a locked file in this folder is seen as locked, and free once it is closed."""
    check_writable(folder)
    with (
        explain_errors(folder),
        tempfile.TemporaryDirectory(dir=folder, prefix=".doctor-") as temporary,
    ):
        path = Path(temporary, "lock")
        file = try_lock(path)
        held = is_locked(path)
        if file is not None:
            file.close()
        works = file is not None and held and not is_locked(path)
    kind = _file_system(folder)
    if not works:
        yield FAILED, f"the file system ({kind}) has no file locks; two jobs might train one cell"
    elif kind in NETWORK_FILE_SYSTEMS:
        yield WARNING, f"work on this machine; whether other nodes see them is up to {kind}'s mount"
    else:
        yield OK, f"work ({kind})"


def _file_system(folder: Path) -> str:
    """The type of the file system of a folder, `unknown` where the system does not say."""
    mounts = Path("/proc/mounts")
    lines = mounts.read_text().splitlines() if mounts.exists() else []
    points = {fields[1]: fields[2] for fields in map(str.split, lines)}
    folder = folder.resolve()
    return next(
        (points[str(at)] for at in (folder, *folder.parents) if str(at) in points), "unknown"
    )


def check_disk(folder: Path) -> Iterator[Finding]:
    """State how much space and how many files are left in this folder; warn if few."""
    usage = os.statvfs(folder)
    gigabytes = usage.f_bavail * usage.f_frsize / 2**30
    yield (OK if gigabytes >= LEAST_GB else WARNING), f"{gigabytes:,.0f} GB are free"
    if usage.f_files:  # some file systems count no inodes
        state = OK if usage.f_favail >= LEAST_FILES else WARNING
        yield state, f"{usage.f_favail:,} more files may be made"


def check_raw_files(plan: Plan) -> Iterator[Finding]:
    """State whether the listed studies' data are here, in the mirror, or have to be downloaded."""
    mirror = plan.config.get("data_mirror", "")
    for planned in plan.data.values():
        dataset, entries = planned.settings["dataset"], planned.inputs.items()
        raw = plan.datasets[dataset]["files"]
        absent = {path: RawFile(**raw[name]) for name, path in entries if not Path(path).exists()}
        fetched = [item for item in absent.items() if not item[1].source.startswith(LOCAL)]
        if Path(planned.path).exists():
            yield OK, f"{dataset} is prepared"
        elif not fetched:
            yield OK, f"{dataset} is here"
        elif all(
            files_in_mirror(mirror, {Path(path).name, file.source_name}) for path, file in fetched
        ):
            yield OK, f"{dataset} is in the mirror, {mirror}"
        else:
            where = f"not in the mirror, {mirror}" if mirror else "no data_mirror is set"
            login = next((file.login for _, file in fetched if file.login), "")
            how = f"is behind a login ({login})" if login else "has to be downloaded"
            yield WARNING, f"{dataset} {how}; {where}"
