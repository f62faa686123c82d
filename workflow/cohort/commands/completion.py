"""`cohort completion`: a script that completes commands, options and names of the project."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

from cohort.commands.cli import COMMANDS, parser_of
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import shtab
else:
    shtab = lazy("shtab")


def _keys(file: str) -> str:
    """A shell command that prints the top-level keys of a file of config/ and of the user's."""
    return rf"sed -n 's/^\([a-z][^: ]*\):.*/\1/p' config/{file}.yaml my/{file}.yaml 2>/dev/null"


def _entries(sections: str) -> str:
    """A shell command that prints STUDY.NAME of each entry in these sections of the studies."""
    return (
        'awk \'FNR == 1 {study = FILENAME; gsub(/.*\\/|\\.yaml$/, "", study)} '
        f"/^[a-z]/ {{wanted = /^({sections}):/}} "
        '/^  [a-z][a-z0-9_]*:/ && wanted {sub(/:.*/, ""); print study "." substr($0, 3)}\' '
        "$(ls config/studies/*.yaml my/studies/*.yaml 2>/dev/null)"
    )


STUDIES = "ls config/studies my/studies 2>/dev/null | sed -n 's/\\.yaml$//p'"
WORDS = {
    "studies": STUDIES,
    "strategies": _keys("strategies"),
    "datasets": _keys("datasets"),
    "scales": _keys("scales"),
    "drawings": _entries("figures|tables"),
    "claims": f"{STUDIES}; {_entries('claims')}",
}
"""Shell commands that print the words of each kind; they need no Python, which starts slowly."""
KINDS = {
    "studies": "studies",
    "strategies": "strategies",
    "dataset": "datasets",
    "scale": "scales",
    "on": "drawings",
    "item": "drawings",
    "what": "drawings",
    "claim": "claims",
}
"""The kind of word that completes each argument."""
FUNCTIONS = {
    "bash": '_cohort_{kind}() {{\n  compgen -W "$({words})" -- "$1"\n}}',
    "zsh": "_cohort_{kind}() {{\n  compadd $({words})\n}}",
    "fish": "function _cohort_{kind}\n  sh -c {quoted}\nend",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell to complete for."""
    parser.add_argument("shell", choices=list(FUNCTIONS))


def run(options: argparse.Namespace) -> None:
    """Print the completion script of a shell."""
    parser = parser_of(COMMANDS)
    for command in parser._subparsers._group_actions[0].choices.values():  # type: ignore
        for action in command._actions:
            if kind := KINDS.get(action.dest):
                function = f"_cohort_{kind}"
                action.complete = {"bash": function, "zsh": function, "fish": f"({function})"}
    print(shtab.complete(parser, options.shell, preamble=preambles()[options.shell]))


def preambles() -> dict[str, str]:
    """The shell functions that complete words of each kind, by shell."""
    functions = {}
    for shell, form in FUNCTIONS.items():
        made = (
            form.format(kind=kind, words=words, quoted=shlex.quote(words))
            for kind, words in WORDS.items()
        )
        functions[shell] = "\n".join(made)
    return functions
