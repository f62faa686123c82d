"""Before the first run: `cohort init` makes a folder, `cohort data add` takes a data set of yours,
`cohort doctor` checks the machine, `cohort schema` helps to write studies."""

import argparse
import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import yaml

from cohort.commands import shared
from cohort.core import UserError, explain_errors, files, lazy, paths, user_files
from cohort.core.shipped import CONFIG_FILE, ROOT
from cohort.data.parsers.arrays import Arrays, read_user_data
from cohort.data.raw import RawFile, files_in_mirror
from cohort.pipeline.slurm import SLURM_COMMANDS, check_slurm
from cohort.plan import Plan
from cohort.plan.loading import DATASET, unexpanded_plan
from cohort.training.job.machine import check_device

torch = lazy("torch")
SNAKEFILE = Path("workflow/Snakefile")
CONTENT = '''"""Cohort's workflow, from the installed package. Rules of yours can stand below."""

from cohort.core.shipped import SNAKEFILE


include: SNAKEFILE


workflow.default_target = "all"  # Snakemake forgets the first rule of an included file
'''
LINK = "slurm"  # to the profile of that name, for --profile slurm
FORMS = """an .npz with x and y (or x_train, y_train, x_test, y_test), or a folder with a folder of
pictures for each class (perhaps below train and test)"""


def init_arguments(parser: argparse.ArgumentParser) -> None:
    text = "the folder to make, or one without a Snakefile, config or profiles"
    parser.add_argument("folder", type=Path, metavar="DIR", help=text)


def init_command(options: argparse.Namespace) -> None:
    """Write a Snakefile, the config and the profiles into a folder; keep what exists."""
    folder: Path = options.folder
    for name in (SNAKEFILE, "Snakefile", CONFIG_FILE, "profiles", LINK):
        if (folder / name).exists():
            raise UserError(f"{folder / name} exists already; name another folder")
    with explain_errors(folder):
        files.write_text(folder / SNAKEFILE, CONTENT)
        files.write_text(folder / CONFIG_FILE, (ROOT / CONFIG_FILE).read_text(encoding="utf-8"))
        shutil.copytree(ROOT / "profiles", folder / "profiles")
        (folder / LINK).symlink_to(f"profiles/{LINK}")
    go = shlex.join(["cd", str(folder)])
    print(f"written to {folder}; the demo, 36 small runs: {go} && snakemake")


def data_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["add"], help="add a data set")
    parser.add_argument("name", metavar="NAME", help="the name that studies will use")
    parser.add_argument("path", type=Path, metavar="PATH", help=FORMS)
    side = "resize pictures to SIDE x SIDE pixels"
    parser.add_argument("--side", type=shared.positive, help=side)
    share = "share held out for testing if there is no split (default: 0.2)"
    parser.add_argument("--test", type=shared.share, default=0.2, help=share)
    seed = "seed for drawing that share (default: 0)"
    parser.add_argument("--seed", type=shared.whole_number, default=0, help=seed)


def data_command(options: argparse.Namespace) -> None:
    """Store a data set of the user's in my/data, and write its entry in my/datasets.yaml."""
    name, own_file = options.name, user_files.folder() / "datasets.yaml"
    if name in unexpanded_plan().datasets:  # a study may ask for it already
        raise UserError(
            f"there is a data set '{name}' already; give yours another name, or delete its entry"
        )
    if not re.fullmatch(DATASET, name):
        raise UserError(f"'{name}' must be a name of small letters, digits and -")
    before = own_file.read_text(encoding="utf-8").rstrip() + "\n\n" if own_file.exists() else ""
    how = {"side": options.side, "share": options.test, "seed": options.seed}
    arrays, classes = read_user_data(options.path, **how)
    stored = user_files.folder() / "data" / f"{name}.npz"
    with files.atomic_write(stored) as temporary:
        np.savez(temporary, **arrays)  # type: ignore[arg-type]
    listed = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    file = {"source": f"file:{stored}", "bytes": stored.stat().st_size}
    file["sha256"] = files.sha256(stored)
    count, *shape = arrays["x_train"].shape
    entry = {
        "title": f"{name} ({listed})",
        "citation": f"taken from {options.path}",
        "licence": "none stated",
        "parser": Arrays.name,
        "files": {Arrays.file: file},
        "kind": "table" if len(shape) == 1 else "images",
        "shape": shape,
        "classes": len(classes),
        "train": count,
        "test": len(arrays["x_test"]),
        "scale": 1 if len(shape) == 1 else 255,
    }
    files.write_text(own_file, before + yaml.safe_dump({name: entry}, sort_keys=False, width=100))
    samples = f"{count} samples for training and {entry['test']} for testing"
    description = f"of {len(classes)} classes ({listed}), each {' x '.join(map(str, shape))}"
    print(f"{name}: {samples}, {description}; see {own_file}")


doctor_arguments = shared.add_studies


def doctor_command(options: argparse.Namespace) -> None:
    """Print what each check finds. Raise UserError if one fails."""
    plan, failed = shared.load_plan(options), []
    for name, state, sentence in findings(plan):
        print(f"{shared.paint(state.ljust(8), state)} {name}: {sentence}")
        failed += [name] if state == "failed" else []
    if failed:
        raise UserError(f"cells cannot be trained here: {', '.join(failed)}")


def findings(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield what was checked, how it ended (ok, warning or failed), and a sentence on it."""
    try:
        if locks_hold(Path(paths.RESULTS) if Path(paths.RESULTS).exists() else Path()):
            yield "locks", "ok", "work on this machine; if other nodes see them is up to the mount"
        else:
            yield "locks", "failed", "the file system has none; two jobs might train one cell"
    except UserError as error:
        yield "locks", "failed", str(error)
    try:
        check_device(plan.config["device"])
        names = map(torch.cuda.get_device_name, range(torch.cuda.device_count()))
        yield "GPU", "ok", ", ".join(names) or "PyTorch sees none; cells train on the CPU"
    except UserError as error:
        yield "GPU", "failed", str(error)
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
    files.check_writable(folder)
    with explain_errors(folder), tempfile.TemporaryDirectory(dir=folder) as temporary:
        path = Path(temporary, "lock")
        try:
            file = files.try_lock(path)
        except OSError:  # the file system refuses the call
            return False
        if file is None:
            return False
        was_locked = files.is_locked(path)
        file.close()
        return was_locked and not files.is_locked(path)


def check_raw_files(plan: Plan) -> Iterator[tuple[str, str]]:
    """Whether the listed studies' data are here, in the mirror, or have to be downloaded."""
    mirror = plan.config.get("data_mirror", "")
    for planned in plan.data.values():
        dataset = planned.settings["dataset"]
        names = (Path(path).name for path in planned.inputs.values() if not Path(path).exists())
        missing = [(name, RawFile(**plan.datasets[dataset]["files"][name])) for name in names]
        fetched = [item for item in missing if not item[1].source.startswith(("package:", "file:"))]
        if Path(planned.path).exists() or not fetched:
            yield "ok", f"{dataset} is here"
        elif all(files_in_mirror(mirror, {name, file.source_name}) for name, file in fetched):
            yield "ok", f"{dataset} is in the mirror, {mirror}"
        else:
            yield "warning", f"{dataset} has to be downloaded; data_mirror is '{mirror}'"
    yield from (("warning", note) for note in plan.notes)


def schema_command(options: argparse.Namespace) -> None:
    """Print the JSON Schema of studies; a broken one does not prevent that, since none is read."""
    print(json.dumps(unexpanded_plan().validator.self_contained("study"), indent=1))
