"""`cohort data add`: a data set of yours, checked, stored and declared in my/datasets.yaml."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
import yaml

from cohort.core import user_files
from cohort.core.errors import UserError
from cohort.core.files import atomic_write, sha256, write_text
from cohort.data.intake import list_classes, read_user_data
from cohort.data.parsers.arrays import FILE
from cohort.plan import load
from cohort.plan.loading import DATASET


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name and the path of the data, and how to read them."""
    parser.add_argument("action", choices=["add"], help="add a data set")
    parser.add_argument("name", metavar="NAME", help="the name that studies will use")
    parser.add_argument(
        "path",
        type=Path,
        metavar="PATH",
        help="an .npz with x and y (or x_train, y_train, x_test, y_test), a .csv, or a folder with "
        "a folder of pictures for each class (perhaps below train and test)",
    )
    parser.add_argument(
        "--label", default="label", help="the column of a CSV that holds the class (label)"
    )
    parser.add_argument("--side", type=int, help="resize pictures to SIDE x SIDE pixels")
    parser.add_argument(
        "--test", type=float, default=0.2, help="the share held out for testing if unsplit (0.2)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the seed by which that share is drawn (0)"
    )


def run(options: argparse.Namespace) -> None:
    """Store a data set of the user's in my/data, and write its entry in my/datasets.yaml."""
    plan, name = load(), options.name
    if name in plan.datasets:
        raise UserError(f"there is a data set '{name}' already; give yours another name")
    if not re.fullmatch(DATASET, name):
        raise UserError(f"'{name}' must be a name of small letters, digits and -")
    if not options.path.exists():
        raise UserError(f"{options.path} does not exist")
    _check_options(options)
    own_file = user_files.folder() / "datasets.yaml"
    before = own_file.read_text(encoding="utf-8").rstrip() + "\n\n" if own_file.exists() else ""
    _check_extensible(own_file, before)
    samples = read_user_data(
        options.path, label=options.label, side=options.side, share=options.test, seed=options.seed
    )
    stored = user_files.folder() / "data" / f"{name}.npz"
    with atomic_write(stored) as temporary:
        np.savez(temporary, **samples.parts)  # type: ignore[arg-type]
    x_train, x_test = samples.parts["x_train"], samples.parts["x_test"]
    file = {"source": f"file:{stored}", "bytes": stored.stat().st_size, "sha256": sha256(stored)}
    entry = {
        "title": f"{name} ({list_classes(samples.classes)})",
        "citation": f"taken from {options.path}",
        "licence": "none stated",
        "parser": "arrays",
        "files": {FILE: file},
        "kind": samples.kind,
        "shape": list(x_train.shape[1:]),
        "classes": len(samples.classes),
        "train": len(x_train),
        "test": len(x_test),
        "scale": samples.scale,
    }
    write_text(own_file, before + yaml.safe_dump({name: entry}, sort_keys=False, width=100))
    shape = " x ".join(map(str, x_train.shape[1:]))
    print(
        f"{name}: {len(x_train)} samples for training and {len(x_test)} for testing, of "
        f"{len(samples.classes)} classes ({list_classes(samples.classes)}), each {shape}; "
        f"see {own_file}"
    )


def _check_options(options: argparse.Namespace) -> None:
    """Raise a UserError for a share, a seed or a size that is impossible."""
    if not 0 < options.test < 1:
        raise UserError(f"--test is {options.test}, but must be above 0 and below 1")
    if options.seed < 0:
        raise UserError(f"--seed is {options.seed}, but must be at least 0")
    if options.side is not None and options.side < 1:
        raise UserError(f"--side is {options.side}, but must be at least 1")


def _check_extensible(file: Path, text: str) -> None:
    """Raise a UserError unless an entry can stand below this text of a YAML file."""
    try:
        yaml.safe_load(f"{text}entry: {{}}")
    except yaml.YAMLError:
        raise UserError(
            f"{file}: no entry can stand below what is there; write each of its entries as NAME: "
            "with its keys below, or delete the file if it has none"
        ) from None
