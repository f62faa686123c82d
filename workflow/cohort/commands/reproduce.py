"""`cohort reproduce`: one figure or table, compared with the paper's."""

from __future__ import annotations

import argparse

from cohort.commands.item import add_run_arguments, find_item, run_item


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the figure or table."""
    parser.add_argument("item", metavar="STUDY.NAME", help="a figure or table, e.g. fedentopt.tab1")
    add_run_arguments(parser)


def run(options: argparse.Namespace) -> None:
    """Print the estimated cost of the figure or table, run it, and compare it with the paper."""
    run_item(find_item(options.item, options), options, against=False)
