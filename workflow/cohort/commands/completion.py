"""`cohort completion`: a script that completes commands, options and studies in a shell."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping

from cohort.commands.cli import COMMANDS

BASH = r"""# cohort: completion for bash. Put this into ~/.bashrc: eval "$(cohort completion bash)"
_cohort() {
  local word=${COMP_WORDS[COMP_CWORD]} words
  if ((COMP_CWORD == 1)); then
    words="@COMMANDS@"
  else
    case ${COMP_WORDS[1]} in
@CASES@
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$word"))
}
_cohort_studies() {
  ls config/studies my/studies 2>/dev/null | sed -n 's/\.yaml$//p'
}
complete -o filenames -F _cohort cohort
"""
ZSH = (
    "# cohort: completion for zsh. Put this into ~/.zshrc: "
    'eval "$(cohort completion zsh)"\nautoload -U +X bashcompinit && bashcompinit\n'
)
FISH = r"""# cohort: completion for fish. Put this into ~/.config/fish/config.fish:
# cohort completion fish | source
function __cohort_studies
  ls config/studies my/studies 2>/dev/null | sed -n 's/\.yaml$//p'
end
"""
OF_STUDIES = "studies"  # the argument that takes names of studies


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=list(SHELLS))


def run(options: argparse.Namespace) -> None:
    """Print the script."""
    parsers = {name: _parser(name) for name in COMMANDS}
    print(SHELLS[options.shell](parsers), end="")


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"cohort.commands.{name}").add_arguments(parser)
    return parser


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """The options of a command, and the choices of its arguments."""
    words = []
    for action in parser._actions:
        words += [text for text in action.option_strings if text.startswith("--")]
        words += list(action.choices or ())
    return words


def _takes_studies(parser: argparse.ArgumentParser) -> bool:
    return any(action.dest == OF_STUDIES for action in parser._actions)


def bash(parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    """The script for bash."""
    cases = []
    for name, parser in parsers.items():
        studies = " $(_cohort_studies)" if _takes_studies(parser) else ""
        cases.append(f'      {name}) words="{" ".join(_words(parser))}{studies}" ;;')
    return BASH.replace("@COMMANDS@", " ".join(parsers)).replace("@CASES@", "\n".join(cases))


def zsh(parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    """The script for zsh: bash's, which zsh understands."""
    return ZSH + bash(parsers)


def fish(parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    """The script for fish."""
    lines = [
        f'complete -c cohort -n __fish_use_subcommand -a {name} -d "{text}"'
        for name, text in COMMANDS.items()
    ]
    for name, parser in parsers.items():
        seen = f"complete -c cohort -n '__fish_seen_subcommand_from {name}'"
        for word in _words(parser):
            lines.append(f"{seen} -l {word[2:]}" if word.startswith("--") else f"{seen} -a {word}")
        if _takes_studies(parser):
            lines.append(f"{seen} -f -a '(__cohort_studies)'")
    return FISH + "\n".join(lines) + "\n"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
