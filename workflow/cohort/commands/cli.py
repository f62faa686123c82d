"""The `cohort` command line. Run it in the directory that holds the Snakefile."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

import cohort
from cohort.core.errors import UserError, explain_errors, suggest
from cohort.core.process import freeze_objects

GROUPS = {
    "start": {
        "init": "make a folder in which snakemake runs Cohort, without a clone",
        "data": "add a data set of yours",
        "restore": "turn released runs into records, which are not trained again",
        "doctor": "check locks, GPUs, SLURM and data on this machine",
    },
    "plan and watch": {
        "status": "count the cells that are done, running or missing; their cost",
        "show": "print a record, why its cell would be trained, or a figure's files",
    },
    "compare": {
        "try": "run a figure or table, with strategies of yours, and compare",
        "check": "judge a claim by the paper's own values and the records",
        "draw": "draw figures, tables and a report from what exists",
    },
    "trust and share": {
        "verify": "train a finished cell again, and compare it bit by bit",
        "export": "release the finished runs of studies as Parquet",
        "run": "train one cell without Snakemake",
        "prune": "list, or delete, files that no study plans at any scale",
        "schema": "print a JSON Schema of study files, for editors",
    },
}
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
MODULES = {
    **dict.fromkeys(("init", "data", "doctor", "schema"), "start"),
    **dict.fromkeys(("restore", "export", "prune"), "records"),
    **{"draw": "check", "show": "status"},
}
"""The module of a command, where it has not the command's name."""
INTRODUCTION = """Which clients should train next? Plan, inspect, compare and clean up runs.
To train whole studies, use snakemake.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. Only its own module is imported, so that `cohort --help` answers at once."""
    os.environ["MPLBACKEND"] = "agg"  # a notebook's is a module that may not be installed here
    try:
        with explain_errors("this folder"):
            with freeze_objects():
                options = parse(sys.argv[1:] if arguments is None else arguments)
            options.run(options)
            sys.stdout.flush()
    except UserError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except BrokenPipeError:
        pass  # whoever read the output has seen enough


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. A mistake ends the program with the usage and what is possible."""
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        lines = [INTRODUCTION]
        for title, group in GROUPS.items():
            lines += [f"{title}:", *(f"  {key:9} {text}" for key, text in group.items()), ""]
        usage, form = "cohort [-h] [--version] COMMAND ...", argparse.RawDescriptionHelpFormatter
        parser = argparse.ArgumentParser("cohort", usage, "\n".join(lines), formatter_class=form)
        parser.add_argument("--version", action="version", version=f"cohort {cohort.__version__}")
        parser.parse_known_args(arguments or ["-h"])
        parser.error(f"there is no command '{name}'{suggest(name, COMMANDS)}")
    module = importlib.import_module(f"cohort.commands.{MODULES.get(name, name)}")
    parser = argparse.ArgumentParser(f"cohort {name}", description=COMMANDS[name])
    getattr(module, f"{name}_arguments", lambda parser: None)(parser)
    parser.set_defaults(run=getattr(module, f"{name}_command"))
    return parser.parse_args(arguments[1:])
