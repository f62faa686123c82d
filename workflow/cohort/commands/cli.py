"""`cohort`: what stands beside the workflow. Run it in the directory that holds the Snakefile."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core.errors import UserError, explained

if TYPE_CHECKING:
    from cohort.plan import Plan


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = _parser().parse_args(arguments)
    try:
        with explained("this folder"):
            options.command(options)
    except UserError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except BrokenPipeError:
        sys.stderr.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cohort",
        description="Which clients should train next? What stands beside the workflow.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str, command: Any, help: str, *, studies: str | None = None
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=help)
        sub.set_defaults(command=command)
        sub.add_argument(
            "--config",
            nargs="+",
            default=[],
            metavar="KEY=VALUE",
            help="as in snakemake --config, e.g. scale=smoke",
        )
        if studies is not None:
            sub.add_argument(
                "studies",
                nargs=studies,
                metavar="STUDY",
                help="a study; the ones that config.yaml lists where none is named",
            )
        return sub

    add("status", _status, "what is done, running, failed and missing", studies="*")
    add("cost", _cost, "cells, rounds and estimated hours of what is missing", studies="*")
    add(
        "draw",
        _draw,
        "draw figures, tables and a page from the records that exist, unfinished cells included",
        studies="*",
    )
    run = add("run", _run, "train one cell without Snakemake")
    run.add_argument(
        "cell", metavar="CELL", help="a record's path, a digest or its beginning, or a plan file"
    )
    run.add_argument(
        "--until",
        type=int,
        metavar="R",
        help="stop at a checkpoint after round R; the cell stays the full cell",
    )
    run.add_argument("--device", choices=["auto", "cpu", "cuda"], help="where to train")
    show = add("show", _show, "what a record says")
    show.add_argument("record", metavar="RECORD", help="the path of a record")
    shards = add(
        "shards",
        _shards,
        "what a partition of a data set looks like: sizes, classes, groups, label entropy, overlap",
    )
    shards.add_argument(
        "partition",
        metavar="PARTITION",
        help="as in a study, e.g. classes-2 or dir-0.1-overlap0.2x2",
    )
    shards.add_argument(
        "--dataset", required=True, metavar="NAME", help="a data set of config/datasets.yaml"
    )
    shards.add_argument(
        "--clients", required=True, type=int, metavar="N", help="how many clients there are"
    )
    shards.add_argument(
        "--seed",
        default=0,
        type=int,
        metavar="N",
        help="the seed of the cells that would train on it (0)",
    )
    shards.add_argument(
        "--samples",
        default=1.0,
        type=float,
        metavar="SHARE",
        help="share of the data set that is dealt (1.0)",
    )
    shards.add_argument(
        "--validation",
        default=0,
        type=int,
        metavar="N",
        help="samples set aside before dealing (0)",
    )
    shards.add_argument(
        "--holdout",
        default=0.0,
        type=float,
        metavar="SHARE",
        help="share of its samples that each client sets aside (0.0)",
    )
    prune = add(
        "prune",
        _prune,
        "records, shards and checkpoints that no study names at any scale, and the disk they use",
    )
    prune.add_argument("--delete", action="store_true", help="delete them")
    return parser


def _plan(options: argparse.Namespace) -> Plan:
    from cohort.plan import load
    from cohort.plan.yaml_files import parse_override

    overrides = dict(parse_override(text) for text in options.config)
    if getattr(options, "studies", None):
        overrides["studies"] = options.studies
    return load(overrides)


def _status(options: argparse.Namespace) -> None:
    from cohort.pipeline.status import print_status

    print_status(_plan(options))


def _cost(options: argparse.Namespace) -> None:
    from cohort.pipeline.status import print_cost

    print_cost(_plan(options))


def _draw(options: argparse.Namespace) -> None:
    from cohort.pipeline.preview import draw_partial

    plan = _plan(options)
    for study in plan.listed:
        print(draw_partial(plan, study))


def _run(options: argparse.Namespace) -> None:
    from cohort.commands.run import find_cell, run_cell

    file = Path(options.cell)
    if file.suffix == ".json" and file.exists():
        run_cell(None, file, options.until, options.device)
        return
    plan = _plan(options)
    run_cell(plan, find_cell(plan, options.cell), options.until, options.device)


def _show(options: argparse.Namespace) -> None:
    from cohort.pipeline.status import print_record

    print_record(options.record)


def _shards(options: argparse.Namespace) -> None:
    from cohort.cell.settings import SHARD_KEYS
    from cohort.commands.shards import print_shards

    print_shards(_plan(options), {key: getattr(options, key) for key in SHARD_KEYS})


def _prune(options: argparse.Namespace) -> None:
    from cohort.commands.prune import prune
    from cohort.plan import all_studies, load

    scales = load().scales
    prune(
        [load({"scale": scale, "studies": all_studies(), "only": ""}) for scale in scales],
        delete=options.delete,
    )
