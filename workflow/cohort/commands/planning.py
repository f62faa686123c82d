"""The options that commands share, and the plan that they ask for."""

import argparse
from typing import TYPE_CHECKING, Any

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from cohort import plan as planning
    from cohort.plan import yaml_files
else:  # `cohort run` of a plan file plans nothing
    planning, yaml_files = lazy("cohort.plan"), lazy("cohort.plan.yaml_files")

KEYS = ("scale", "only", "seeds")
"""The keys of config/config.yaml that have an option of their own."""
LISTED = "those that config/config.yaml lists"


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Add --config alone."""
    text = "override keys of config/config.yaml, as with snakemake, e.g. device=cpu"
    form: Any = {"nargs": "+", "action": "extend", "default": [], "metavar": "KEY=VALUE"}
    parser.add_argument("--config", help=text, **form)


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add --config, --scale and --seeds."""
    add_overrides(parser)
    parser.add_argument("--scale", metavar="NAME", help="a scale of config/scales.yaml")
    parser.add_argument("--seeds", metavar="N", help="number of seeds of every experiment")


def add_only(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the cells of a plan: --config, --scale, --seeds and --only."""
    add_config(parser)
    text = "a part of the matrix: strategy=fedavg|loss,seed=0"
    parser.add_argument("--only", metavar="LABEL=VALUE", help=text)


def add_studies(parser: argparse.ArgumentParser) -> None:
    """Add --config, --scale, --seeds, --only and the names of studies."""
    add_only(parser)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"a study (default: {LISTED})")


def add_whole_studies(parser: argparse.ArgumentParser, default: str = LISTED) -> None:
    """Add --config, --scale, --seeds and the names of studies; `default` says which ones are meant
    without a name."""
    add_config(parser)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"a study (default: {default})")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def positive(text: str) -> int:
    """The value of an argument that must be a whole number from 1 on."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def config_texts(options: argparse.Namespace) -> list[str]:
    """The KEY=VALUE texts of --config, and of the options that stand for one of its keys."""
    values = ((key, getattr(options, key, None)) for key in KEYS)
    return [*options.config, *(f"{key}={value}" for key, value in values if value)]


def load_plan(options: argparse.Namespace, **fixed: Any) -> "planning.Plan":
    """Load the plan for --config, the options that stand for its keys, and the studies that were
    named; `fixed` keys of the config take precedence."""
    overrides = dict(map(yaml_files.parse_override, config_texts(options)))
    if getattr(options, "studies", None):
        overrides["studies"] = list(map(planning.require_study, options.studies))
    return planning.load(overrides | fixed)
