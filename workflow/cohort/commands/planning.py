"""The arguments that commands share, and the plan that they ask for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from cohort import plan as planning
    from cohort.plan import Plan, yaml_files
else:  # `cohort run` of a plan file plans nothing
    planning = lazy("cohort.plan")
    yaml_files = lazy("cohort.plan.yaml_files")


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add --config."""
    parser.add_argument(
        "--config",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="override keys of config/config.yaml, as with snakemake, e.g. scale=smoke",
    )


def add_studies(parser: argparse.ArgumentParser) -> None:
    """Add --config and the names of studies."""
    add_config(parser)
    parser.add_argument(
        "studies",
        nargs="*",
        metavar="STUDY",
        help="a study (default: those that config/config.yaml lists)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def load_plan(options: argparse.Namespace) -> Plan:
    """The plan for --config and the studies that were named."""
    overrides = dict(yaml_files.parse_override(text) for text in options.config)
    if getattr(options, "studies", None):
        overrides["studies"] = options.studies
    return planning.load(overrides)
