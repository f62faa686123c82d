"""`cohort data add`: a data set of yours, checked, stored and declared in my/datasets.yaml."""

import argparse
import re
from pathlib import Path

import numpy as np
import yaml

from cohort.commands.shared import positive
from cohort.core import user_files
from cohort.core.errors import UserError
from cohort.core.files import atomic_write, sha256, write_text
from cohort.data.parsers.arrays import Arrays, read_user_data
from cohort.plan import load
from cohort.plan.loading import DATASET

FORMS = (
    "an .npz with x and y (or x_train, y_train, x_test, y_test), or a folder with a folder of "
    "pictures for each class (perhaps below train and test)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name and the path of the data, and how to read them."""
    parser.add_argument("action", choices=["add"], help="add a data set")
    parser.add_argument("name", metavar="NAME", help="the name that studies will use")
    parser.add_argument("path", type=Path, metavar="PATH", help=FORMS)
    parser.add_argument("--side", type=positive, help="resize pictures to SIDE x SIDE pixels")
    share = "the share held out for testing if unsplit (0.2)"
    parser.add_argument("--test", type=float, default=0.2, help=share)
    seed = "the seed by which that share is drawn (0)"
    parser.add_argument("--seed", type=int, default=0, help=seed)


def run(options: argparse.Namespace) -> None:
    """Store a data set of the user's in my/data, and write its entry in my/datasets.yaml."""
    name, own_file = options.name, user_files.folder() / "datasets.yaml"
    _check_options(options)
    before = own_file.read_text(encoding="utf-8").rstrip() + "\n\n" if own_file.exists() else ""
    try:
        yaml.safe_load(f"{before}entry: {{}}")
    except yaml.YAMLError:
        raise UserError(
            f"{own_file}: no entry can stand below what is there; write each of its entries as "
            "NAME: with its keys below, or delete the file if it has none"
        ) from None
    how = {"side": options.side, "share": options.test, "seed": options.seed}
    arrays, classes = read_user_data(options.path, **how)
    stored = user_files.folder() / "data" / f"{name}.npz"
    with atomic_write(stored) as temporary:
        np.savez(temporary, **arrays)  # type: ignore[arg-type]
    listed = ", ".join(classes[:10]) + (", ..." if len(classes) > 10 else "")
    file = {"source": f"file:{stored}", "bytes": stored.stat().st_size, "sha256": sha256(stored)}
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
    write_text(own_file, before + yaml.safe_dump({name: entry}, sort_keys=False, width=100))
    print(
        f"{name}: {count} samples for training and {entry['test']} for testing, of "
        f"{len(classes)} classes ({listed}), each {' x '.join(map(str, shape))}; see {own_file}"
    )


def _check_options(options: argparse.Namespace) -> None:
    """Raise UserError for a name that cannot be used, or an impossible share, seed or size."""
    name = options.name
    if name in load().datasets:
        raise UserError(f"there is a data set '{name}' already; give yours another name")
    if not re.fullmatch(DATASET, name):
        raise UserError(f"'{name}' must be a name of small letters, digits and -")
    if not options.path.exists():
        raise UserError(f"{options.path} does not exist")
    if not 0 < options.test < 1:
        raise UserError(f"--test is {options.test}, but must be above 0 and below 1")
    if options.seed < 0:
        raise UserError(f"--seed is {options.seed}, but must be at least 0")
