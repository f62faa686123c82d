"""The `cohort` command line. Run it in the directory that holds the Snakefile."""

import argparse
import importlib
import sys
from collections.abc import Sequence

import cohort
from cohort.core.errors import UserError, closest_choice, explain_errors, suggest

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
        "prune": "list, or delete, what no study has at any scale",
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
    arguments = config_last(sys.argv[1:] if arguments is None else arguments)
    try:
        with explain_errors("this folder"):
            options = parse(arguments)
            options.run(options)
            sys.stdout.flush()
    except UserError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except BrokenPipeError:
        pass  # whoever read the output has seen enough


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. A mistake ends the program with the usage, and with what was meant."""
    named = next((word for word in arguments if not word.startswith("-")), "")
    lines = [INTRODUCTION]
    for title, group in GROUPS.items():
        lines += [f"{title}:", *(f"  {name:9} {text}" for name, text in group.items()), ""]
    parser = argparse.ArgumentParser(
        prog="cohort",
        usage="cohort [-h] [--version] COMMAND ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="\n".join(lines),
    )
    parser.add_argument("--version", action="version", version=f"cohort {cohort.__version__}")
    kind = {"metavar": "COMMAND", "help": argparse.SUPPRESS}
    commands = parser.add_subparsers(prog="cohort", required=True, **kind)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, description=f"{text[0].upper()}{text[1:]}.")
        if name == named:
            module = importlib.import_module(f"cohort.commands.{MODULES.get(name, name)}")
            getattr(module, f"{name}_arguments", lambda parser: None)(command)
            command.set_defaults(run=getattr(module, f"{name}_command"), parser=command)
    if named and named not in COMMANDS:
        parser.error(f"there is no command '{named}'{suggest(named, COMMANDS)}")
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        known = (name for action in options.parser._actions for name in action.option_strings)
        near = closest_choice(unknown[0].partition("=")[0], known)
        hint = f"; did you mean '{near}'?" if near else ""
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return options


def config_last(arguments: Sequence[str]) -> list[str]:
    """Move --config and its KEY=VALUE words behind the other arguments, or argparse would take what
    follows them, such as a study, for one more of them. What follows `--` stays last."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept, moved, in_config = list[str](), list[str](), False
    for word in arguments[:end]:
        is_value = "=" in word and not word.startswith("-")
        in_config = word == "--config" or (in_config and is_value)
        (moved if in_config else kept).append(word)
    return [*kept, *moved, *arguments[end:]]
