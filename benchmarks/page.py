"""docs/performance.md: each part's section stands between two marks; what is written around them stays."""

from __future__ import annotations

from pathlib import Path


def put(text: str, name: str, section: str) -> str:
    """The page with this section between its marks; at the end, if it has no such marks yet."""
    begin, end = f"<!-- {name}: made by `make bench` -->", f"<!-- end of {name} -->"
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}\n{end}\n".lstrip()
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the mark '{end}' is missing")
    return f"{before}{begin}\n{section.strip()}\n{end}{after}"


def write(page: Path, name: str, section: str) -> None:
    """Put a section into the page."""
    page.write_text(put(page.read_text() if page.exists() else "", name, section))
