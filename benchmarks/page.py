"""Replace a section of a page between its two markers; keep everything else."""

from __future__ import annotations

from pathlib import Path


def put_section(text: str, name: str, section: str, command: str = "make bench") -> str:
    """Return the text with this section between its markers, which are appended if missing."""
    begin, end = f"<!-- {name}: made by `{command}` -->", f"<!-- end of {name} -->"
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}\n{end}\n".lstrip()
    before, _, rest = text.partition(begin)
    _, marker, after = rest.partition(end)
    if not marker:
        raise ValueError(f"the page lacks the marker '{end}'; put it after section {name}")
    return f"{before}{begin}\n{section.strip()}\n{end}{after}"


def write_section(page: Path, name: str, section: str) -> None:
    """Replace the section with this name in a page's file; append or create what is missing."""
    page.write_text(put_section(page.read_text() if page.exists() else "", name, section))
