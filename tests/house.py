"""The house as it stands: which part imports which, and how long the files are. `python -m tests.house` writes it into docs/design.md."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workflow" / "cohort"
DESIGN = ROOT / "docs" / "design.md"
BEGIN, END = "<!-- house: made by `make house` -->", "<!-- end of house -->"

# From the ground up: a part may import its own floor's other parts only where the arrow is drawn in FLOORS' order.
FLOORS = (
    ("core",),
    ("cell",),
    ("data", "models", "partition", "privacy"),
    ("selection",),
    ("records",),
    ("training",),
    ("metrics",),
    ("figures", "tables", "claims", "report"),
    ("plan",),
    ("pipeline",),
    ("commands",),
)


def part_of(file: Path) -> str:
    """The package of a module, or the module itself where it lies on the ground floor."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def modules() -> dict[str, list[Path]]:
    """The files of each part."""
    found: dict[str, list[Path]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        if file.parent != PACKAGE or not file.name.startswith("__"):
            found.setdefault(part_of(file), []).append(file)
    return found


def arrows() -> set[tuple[str, str]]:
    """Pairs (importer, imported) of parts."""
    found = set()
    for part, files in modules().items():
        for file in files:
            for node in ast.walk(ast.parse(file.read_text())):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                names += (
                    [f"{node.module}.{alias.name}" for alias in node.names]
                    if isinstance(node, ast.ImportFrom)
                    else []
                )
                names += (
                    [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                )
                found |= {
                    (part, name.split(".")[1]) for name in names if name.startswith("cohort.")
                }
    return {
        (importer, imported)
        for importer, imported in found
        if importer != imported and imported in modules()
    }


def picture() -> str:
    """The house as Markdown."""
    lines = {
        part: [len(file.read_text().splitlines()) for file in files]
        for part, files in modules().items()
    }
    rows = ["| part | imports | files | lines | longest |", "|---|---|---|---|---|"]
    for part in (part for floor in reversed(FLOORS) for part in floor):
        below = (
            ", ".join(sorted(imported for importer, imported in arrows() if importer == part))
            or "-"
        )
        rows.append(
            f"| `{part}` | {below} | {len(lines[part])} | {sum(lines[part])} | {max(lines[part])} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Write the picture between its marks in docs/design.md."""
    text = DESIGN.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    DESIGN.write_text(f"{before}{BEGIN}\n{picture()}\n{END}{after}")


if __name__ == "__main__":
    main()
