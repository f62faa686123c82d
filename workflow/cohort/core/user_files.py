"""The user's own folder, `my`: components, strategies, studies and data sets beside the built-in
ones.

Its components lie where built-in ones lie in `workflow/cohort`: `my/selection/turns.py` is the
module `my.selection.turns`.
"""

import hashlib
import importlib
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from cohort.core.errors import UserError
from cohort.core.paths import relative_path
from cohort.core.text import counted

PACKAGE = "my"
ANOTHER_FIX = (
    "raise its `science` version, or delete what it made, which `cohort status --json` lists"
)


def folder() -> Path:
    """The user's own folder, which need not exist, in the working directory as it is now."""
    return Path(PACKAGE)


def subfolder(package: str) -> Path:
    """The user's folder for components of one of Cohort's packages, such as `cohort.selection`."""
    return folder().joinpath(*package.split(".")[1:])


def module_files(package: str) -> dict[str, Path]:
    """The files of the user's modules that extend a package of Cohort, by the module's name."""
    files = {file.parent.name: file for file in subfolder(package).glob("*/__init__.py")}
    files |= {file.stem: file for file in subfolder(package).glob("*.py")}
    return {name: file for name, file in files.items() if name != "__init__"}


def import_module(package: str, name: str) -> ModuleType:
    """Import the user's module of this name that extends a package; UserError if it fails."""
    if PACKAGE not in sys.modules:
        root = ModuleType(PACKAGE)
        root.__path__ = [str(folder().resolve())]
        sys.modules[PACKAGE] = root
    file = subfolder(package) / f"{name}.py"
    try:
        return importlib.import_module(f"{PACKAGE}.{package.partition('.')[2]}.{name}")
    except UserError:
        raise
    except SyntaxError as error:
        where = relative_path(error.filename or file)  # perhaps a module that this one imports
        raise UserError(f"{where}, line {error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, SystemExit):
            reason = "importing it ends Python (sys.exit)"
        line = user_position(error).removesuffix(", in <module>")
        raise UserError(f"{line or file}: {reason}") from error


def user_position(error: BaseException, modules: tuple[str, ...] = (f"{PACKAGE}.",)) -> str:
    """The last file, line and function through which an error passed in modules with these name
    prefixes, by default the user's; empty if there is none."""
    position = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        is_file = not frame.f_code.co_filename.startswith("<")  # as a dataclass's __setattr__ is
        if is_file and frame.f_globals.get("__name__", "").startswith(modules):
            file = relative_path(frame.f_code.co_filename)
            position = f"{file}, line {line}, in {frame.f_code.co_name}"
    return position


def loaded_modules() -> list[str]:
    """The names of the user's modules that this process has imported from files."""
    return [
        name
        for name, module in sorted(sys.modules.items())
        if name.startswith(f"{PACKAGE}.") and getattr(module, "__file__", None)
    ]


def modules() -> list[str]:
    """The names of all modules in the user's folder, whether or not they are imported."""
    files = (file.relative_to(folder()) for file in folder().rglob("*.py"))
    paths = (file.parent if file.stem == "__init__" else file.with_suffix("") for file in files)
    return sorted(".".join((PACKAGE, *path.parts)) for path in paths)


def file_of(module: str) -> Path:
    """The file of one of the user's modules."""
    path = folder().joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def version_of(module: str) -> str:
    """The SHA-256 of a user's module as it is now; empty if there is no such file."""
    file = file_of(module)
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def module_number(module: str) -> dict[str, int]:
    """A user's module by name, with a number computed from its content, which enters digests like a
    science version; empty for one of Cohort's own modules."""
    version = version_of(module) if module.startswith(f"{PACKAGE}.") else ""
    return {module: int(version[:12], 16)} if version else {}


def module_versions(provenance: Mapping[str, Any]) -> dict[str, list[str]]:
    """The SHA-256 of each of the user's modules that took part in a run, by module: more than one
    if the file changed between two sessions. A checkpoint's provenance is its sessions alone."""
    versions: dict[str, list[str]] = {}
    for source in (provenance, *provenance.get("sessions", [])):
        for module, digest in source.get("my", {}).items():
            versions[module] = sorted({*versions.get(module, []), digest})
    return versions


def changed_files(provenance: Mapping[str, Any]) -> list[str]:
    """The user's files whose current version is not the one, or the only one, that took part in a
    run. A file that is gone is left out."""
    return files_changed_since(module_versions(provenance))


def files_changed_since(versions: Mapping[str, Iterable[str]]) -> list[str]:
    """`changed_files` of a run in which modules had these versions."""
    return [
        str(file_of(module))
        for module, digests in versions.items()
        if (now := version_of(module)) and set(digests) != {now}
    ]


def changed_sentences(changed: Iterable[Iterable[str]]) -> list[str]:
    """A sentence for each file in `changed`, which has each run's files that changed since."""
    counts = Counter(file for files in changed for file in files)
    return [
        f"another {file} made {counted(count, 'run')}: {ANOTHER_FIX}"
        for file, count in sorted(counts.items())
    ]
