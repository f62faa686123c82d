"""`python -m tools.house` (`make house`): the structure of the package, as a table in docs/design.md.

Which subpackage imports which, and how long files and functions are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.page import put_section

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workflow" / "cohort"
DESIGN = ROOT / "docs" / "design.md"

# From the bottom up: a subpackage may import those of its own layer and of layers below it.
LAYERS = (
    ("core",),
    ("cell",),
    ("data", "models", "partition", "privacy"),
    ("native",),
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

Function = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp


class Place(NamedTuple):
    """A place in a file of the package: a line, a function's name or an imported name."""

    file: Path
    what: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(PACKAGE)}: {self.what}"


def subpackage_of(file: Path) -> str:
    """The subpackage of a module: its top-level folder, or one within it that LAYERS name."""
    first, *rest = file.relative_to(PACKAGE).with_suffix("").parts
    inner = f"{first}/{rest[0]}" if rest else first
    return inner if inner in sum(LAYERS, ()) else first


def imported_subpackage(name: str) -> str:
    """The subpackage of an imported module, or of a name in it."""
    return subpackage_of(PACKAGE.joinpath(*name.split(".")[1:]))


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


def subpackage_imports() -> set[tuple[str, str]]:
    """Pairs of subpackages (importer, imported), wherever a file imports: at its top, inside a
    function, under TYPE_CHECKING or lazily."""
    files_of, pairs = modules(), set()
    for importer, contents in files_of.items():
        for file in contents:
            for node in ast.walk(tree_of(file)):
                names = [name for name in imported_names(node) if name.startswith("cohort.")]
                pairs |= {(importer, imported_subpackage(name)) for name in names}
    return {pair for pair in pairs if pair[0] != pair[1] and pair[1] in files_of}


def functions(file: Path) -> Iterator[Function]:
    """Yield every function and method of a file, also those within functions."""
    for node in ast.walk(tree_of(file)):
        if isinstance(node, Function):
            yield node


def length_of(function: Function) -> int:
    """Count the lines of a function, from its `def` on."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def inner_imports() -> list[Place]:
    """Find every import inside a function, by the name of the module."""
    imports = []
    for file in files():
        statements: dict[int, ast.Import | ast.ImportFrom] = {}
        for function in functions(file):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    statements[node.lineno] = node
        imports += [Place(file, imported_names(node)[0]) for node in statements.values()]
    return imports


def nested_comprehensions() -> list[Place]:
    """Find every comprehension, or generator expression, that contains another one."""
    nested = []
    for file in files():
        outer = (node for node in ast.walk(tree_of(file)) if isinstance(node, COMPREHENSIONS))
        for node in outer:
            inner = [part for part in ast.walk(node) if isinstance(part, COMPREHENSIONS)]
            if len(inner) > 1:
                nested.append(Place(file, f"line {node.lineno}"))
    return nested


def tree_of(file: Path) -> ast.Module:
    """Parse a file to its syntax tree."""
    return ast.parse(file.read_text(encoding="utf-8"))


def lines_of(file: Path) -> int:
    """Count the lines of a file."""
    return len(file.read_text(encoding="utf-8").splitlines())


def layer_table() -> str:
    """The subpackages as a Markdown table, from the top layer down."""
    rows = [
        "| subpackage | imports | files | lines | longest file | longest function |",
        "|---|---|---|---|---|---|",
    ]
    files_of, imports = modules(), sorted(subpackage_imports())
    for subpackage in (name for layer in reversed(LAYERS) for name in layer):
        below = ", ".join(other for importer, other in imports if importer == subpackage) or "-"
        lines = [lines_of(file) for file in files_of[subpackage]]
        bodies = [length_of(body) for file in files_of[subpackage] for body in functions(file)]
        sizes = f"{len(lines)} | {sum(lines)} | {max(lines)} | {max(bodies, default=0)}"
        rows.append(f"| `{subpackage}` | {below} | {sizes} |")
    return "\n".join(rows)


def main() -> None:
    """Write the table of subpackages between its marks in docs/design.md."""
    text = DESIGN.read_text(encoding="utf-8")
    page = put_section(text, "house", layer_table(), "make house")
    DESIGN.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
