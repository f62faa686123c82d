"""`cohort completion`: a script that completes commands, options and studies in a shell."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cohort.commands.cli import COMMANDS, parser_of
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import shtab
else:
    shtab = lazy("shtab")

STUDIES = "ls config/studies my/studies 2>/dev/null | sed -n 's/\\.yaml$//p'"
PREAMBLES = {
    "bash": f'_cohort_studies() {{\n  compgen -W "$({STUDIES})" -- "$1"\n}}',
    "zsh": f"_cohort_studies() {{\n  compadd $({STUDIES})\n}}",
    "fish": "",
}
COMPLETE = {"bash": "_cohort_studies", "zsh": "_cohort_studies", "fish": f"({STUDIES})"}
"""In each shell, what completes the names of studies: a function of the preamble, or a command."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=list(PREAMBLES))


def run(options: argparse.Namespace) -> None:
    """Print the script."""
    parser = parser_of(COMMANDS)
    for command in parser._subparsers._group_actions[0].choices.values():  # type: ignore
        for action in command._actions:
            if action.dest == "studies":
                action.complete = COMPLETE
    print(shtab.complete(parser, options.shell, preamble=PREAMBLES[options.shell]))
