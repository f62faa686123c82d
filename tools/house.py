"""`python -m tools.house` (`make house`): the size of each subpackage, as a table in docs/design.md.

Its lines are a budget: tests/tools/test_house.py fails where a subpackage exceeds them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.tables import put_section, table

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workflow" / "cohort"
DESIGN = ROOT / "docs" / "design.md"

# From the bottom up: a subpackage may import those of its own layer and of layers below it.
LAYERS = (
    ("core",),
    ("settings",),
    ("data", "models", "partition", "privacy"),
    ("native", "kernels"),
    ("selection",),
    ("needs",),
    ("records",),
    ("training",),
    ("results",),
    ("results/figures", "results/tables", "results/claims", "results/report", "results/release"),
    ("plan",),
    ("pipeline",),
    ("commands",),
)

THIN = 120  # lines
Function = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp


def subpackage_of(file: Path) -> str:
    """The subpackage of a module: its top-level folder, or one within it that LAYERS name."""
    first, *rest = file.relative_to(PACKAGE).with_suffix("").parts
    inner = f"{first}/{rest[0]}" if rest else first
    return inner if inner in sum(LAYERS, ()) else first


def modules() -> dict[str, list[Path]]:
    """The package's modules by subpackage, without `__init__` and `__main__` of its top."""
    by_subpackage: dict[str, list[Path]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        if file.parent != PACKAGE or not file.name.startswith("__"):
            by_subpackage.setdefault(subpackage_of(file), []).append(file)
    return by_subpackage


def files() -> list[Path]:
    """All Python files of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def imported_names(node: ast.AST) -> list[str]:
    """The modules, or names in them, that a statement or `lazy("module")` imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy":
        return [str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)]
    return []


def package_imports() -> Iterator[tuple[Path, str]]:
    """Pairs of a file and what of the package it imports, wherever: at its top, inside a function,
    under TYPE_CHECKING or lazily."""
    for file in files():
        for node in ast.walk(tree_of(file)):
            yield from ((file, name) for name in imported_names(node) if "cohort." in name)


def subpackage_imports() -> set[tuple[str, str]]:
    """Pairs of subpackages (importer, imported)."""
    names = modules()
    pairs = {
        (subpackage_of(file), subpackage_of(PACKAGE.joinpath(*name.split(".")[1:])))
        for file, name in package_imports()
        if any(file in within for within in names.values())
    }
    return {pair for pair in pairs if pair[0] != pair[1] and pair[1] in names}


def functions(file: Path) -> Iterator[Function]:
    """Yield every function and method of a file, also those within functions."""
    for node in ast.walk(tree_of(file)):
        if isinstance(node, Function):
            yield node


def length_of(function: Function) -> int:
    """Count the lines of a function, from its `def` on."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def inner_imports() -> list[str]:
    """Find every import inside a function: its file and the module."""
    return sorted(
        {
            f"{file.relative_to(PACKAGE)}: {imported_names(node)[0]}"
            for file in files()
            for function in functions(file)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
    )


def nested_comprehensions() -> list[str]:
    """Find every comprehension, or generator expression, that contains another one."""
    return [
        f"{file.relative_to(PACKAGE)}: line {node.lineno}"
        for file in files()
        for node in ast.walk(tree_of(file))
        if isinstance(node, COMPREHENSIONS)
        and sum(isinstance(part, COMPREHENSIONS) for part in ast.walk(node)) > 1
    ]


def tree_of(file: Path) -> ast.Module:
    """Parse a file to its syntax tree."""
    return ast.parse(file.read_text(encoding="utf-8"))


def lines_of(file: Path) -> int:
    """Count the lines of a file."""
    return len(file.read_text(encoding="utf-8").splitlines())


def thin_modules() -> list[str]:
    """The modules of less than 120 lines that fewer than two files of the package, its rules and
    scripts import: each is part of another one's subject. What is started by name is none."""
    importers: dict[Path, set[Path]] = {file: set() for file in files()}
    scripts = [*PACKAGE.parent.glob("scripts/*.py"), *(ROOT / "rules").glob("*.smk")]
    named = [
        (file, name)
        for file in [*scripts, ROOT / "Snakefile"]
        for name in re.findall(r"cohort(?:\.\w+)+", file.read_text(encoding="utf-8"))
    ]
    for file, name in [*package_imports(), *named]:
        module = PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py")
        if module in importers and module != file:
            importers[module].add(file)
    return [
        str(file.relative_to(PACKAGE))
        for file, others in importers.items()
        if len(others) < 2
        and lines_of(file) < THIN
        and not file.name.startswith("__")
        and file.parent.name != "commands"
    ]


def budgets() -> dict[str, int]:
    """The lines that docs/design.md allows each subpackage."""
    page = DESIGN.read_text(encoding="utf-8").partition("<!-- house:")[2]
    rows = re.findall(r"^\| `([\w/]+)` +\| (\d+) +\|", page, re.MULTILINE)
    return {subpackage: int(lines) for subpackage, lines in rows}


def lines_by_subpackage() -> dict[str, int]:
    """The lines of each subpackage, from the top layer down."""
    files_of = modules()
    return {
        subpackage: sum(map(lines_of, files_of.get(subpackage, [])))
        for layer in reversed(LAYERS)
        for subpackage in layer
    }


def size_table() -> str:
    """The sizes of the subpackages as a Markdown table, from the top layer down."""
    rows, files_of = [], modules()
    for subpackage, lines in lines_by_subpackage().items():
        within = files_of.get(subpackage, [])
        longest = max(map(lines_of, within), default=0)
        rows.append([f"`{subpackage}`", str(lines), str(len(within)), str(longest)])
    return table(["subpackage", "lines", "files", "longest file"], rows)


def main() -> None:
    """Write the table of subpackages between its marks in docs/design.md."""
    page = put_section(DESIGN.read_text(encoding="utf-8"), "house", size_table(), "make house")
    DESIGN.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
