"""The `cohort` command line. Run it in the directory that holds the Snakefile."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Container, Sequence

import cohort
from cohort.core.errors import UserError, closest_choice, explain_errors, suggest

COMMANDS = {
    "init": "make a folder in which snakemake runs Cohort, without a clone of its repository",
    "status": "count the cells that are done, running, stopped, failed, waiting or missing",
    "watch": "follow the cells that are running, with their rates and the time left",
    "cost": "estimate the time and memory of the missing cells",
    "why": "say what would make a cell train",
    "draw": "draw figures, tables and a report from what exists, unfinished cells included",
    "run": "train one cell without Snakemake",
    "show": "print a record, or the files, cells, cost and command of a figure or table",
    "verify": "train a finished cell again in a temporary place, and compare it bit by bit",
    "shards": "show how a partition deals a data set: sizes, classes, groups, entropy, overlap",
    "try": "run a strategy of yours beside those of a figure or table, and compare",
    "reproduce": "run what one figure or table shows, and compare it with the paper",
    "check": "judge a claim by the paper's own values and the records that exist",
    "export": "release the finished runs of studies as Parquet",
    "restore": "turn released runs into records, which are not trained again",
    "data": "add a data set of yours",
    "prune": "list, or delete, the files of cells and shards that no study has at any scale",
    "schema": "print a JSON Schema of study files, with which an editor completes and checks them",
    "doctor": "check what training needs: Python, PyTorch, GPUs, SLURM, locks, disk, data",
}


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
    """Parse a command line. A mistake ends the program with the usage of the command, and with the
    command or option that was probably meant."""
    named = next((word for word in arguments if not word.startswith("-")), "")
    parser = parser_of([named])
    if named and named not in COMMANDS:
        parser.error(f"there is no command '{named}'{suggest(named, COMMANDS)}")
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        near = _nearest_option(options.parser, unknown[0])
        hint = f"; did you mean '{near}'?" if near else ""
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return options


def _nearest_option(command: argparse.ArgumentParser, text: str) -> str:
    """The option of a command whose name is most like an unknown one, or else the first whose help
    has a word that begins so; empty if there is none."""
    word = text.lstrip("-").partition("=")[0]
    if not text.startswith("--") or not word:
        return ""
    helps = {
        option.removeprefix("--"): action.help or ""
        for action in command._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    naming = (name for name, text in helps.items() if re.search(rf"\b{re.escape(word)}", text))
    near = closest_choice(word, helps) or next(naming, "")
    return f"--{near}" if near else ""


def config_last(arguments: Sequence[str]) -> list[str]:
    """Move --config and its KEY=VALUE words behind the other arguments, or argparse would take what
    follows them, such as a study, for one more of them. What follows `--` stays last."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    kept, moved = list[str](), list[str]()
    in_config = False
    for word in words[:end]:
        is_value = "=" in word and not word.startswith("-")
        in_config = word == "--config" or (in_config and is_value)
        (moved if in_config else kept).append(word)
    return kept + moved + words[end:]


def parser_of(named: Container[str]) -> argparse.ArgumentParser:
    """Make the parser with the names of all commands, and the arguments of those in `named`."""
    parser = argparse.ArgumentParser(
        prog="cohort",
        description="Which clients should train next? Plan, inspect, compare and clean up runs. "
        "To train whole studies, use snakemake.",
    )
    parser.add_argument("--version", action="version", version=f"cohort {cohort.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name in named:
            module = importlib.import_module(f"cohort.commands.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run, parser=command)
    return parser
