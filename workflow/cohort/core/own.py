"""The user's own folder, `my`: components, strategies, studies and data sets beside the built-in
ones.

Its components lie where built-in ones lie in `workflow/cohort`: `my/selection/turns.py` is the
module `my.selection.turns`. config/config.yaml may name another folder under the key `my`.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from cohort.core.errors import UserError

PACKAGE = "my"
CONFIG_FILE = Path("config/config.yaml")


def folder() -> Path:
    """The user's own folder, which need not exist."""
    return Path(named()).expanduser()


def named() -> str:
    """The key `my` of config/config.yaml. Jobs ask for it, so it takes no import of YAML."""
    text = CONFIG_FILE.read_text(encoding="utf-8") if CONFIG_FILE.exists() else ""
    found = re.search(r"^my: *([^\s#]+)", text, re.MULTILINE)
    return found[1] if found else PACKAGE


def subfolder(package: str) -> Path:
    """The user's folder for components of one of Cohort's packages, such as `cohort.selection`."""
    return folder().joinpath(*package.split(".")[1:])


def module_names(package: str) -> list[str]:
    """The names of the user's modules beside those of one of Cohort's packages."""
    return sorted(info.name for info in pkgutil.iter_modules([str(subfolder(package))]))


def import_own(package: str, name: str) -> ModuleType:
    """Import the user's module of this name beside those of one of Cohort's packages."""
    if PACKAGE not in sys.modules:
        root = ModuleType(PACKAGE)
        root.__path__ = [str(folder().resolve())]
        sys.modules[PACKAGE] = root
    try:
        return importlib.import_module(f"{PACKAGE}.{package.partition('.')[2]}.{name}")
    except Exception as error:  # whatever the user's code raises
        file = subfolder(package) / f"{name}.py"
        raise UserError(f"{file}{_line(error, file)}: {_reason(error)}") from error


def is_own(module: ModuleType) -> bool:
    """Whether a module is one of the user's."""
    return module.__name__.startswith(f"{PACKAGE}.")


def loaded_files() -> dict[str, Path]:
    """The files of the user's modules that this process has imported, by module."""
    files = {
        name: getattr(module, "__file__", None)  # a folder of modules has none
        for name, module in sorted(sys.modules.items())
        if name.startswith(f"{PACKAGE}.")
    }
    return {name: Path(file) for name, file in files.items() if file}


def _line(error: Exception, file: Path) -> str:
    """The line of the file at which it failed, as `, line 3`."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    steps = traceback.extract_tb(error.__traceback__)
    lines = [step.lineno for step in steps if Path(step.filename) == file.resolve()]
    return f", line {lines[-1]}" if lines else ""


def _reason(error: Exception) -> str:
    return error.msg if isinstance(error, SyntaxError) else f"{type(error).__name__}: {error}"
