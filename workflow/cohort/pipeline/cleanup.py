"""The files of previews, which are out of date once what they preview is finished."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from cohort.core.paths import Layout
from cohort.results.report.index import write_index


def remove_previews(scale: str, finished: Iterable[tuple[str, str]]) -> None:
    """Delete the previews of these pairs of a study and a figure or table (empty for the whole
    study), and list the pages of those that remain in the index."""
    layout = Layout(scale, partial=True)
    for study, name in finished:
        if name:
            files = [*layout.figure(study, name), *layout.table(study, name)]
        else:
            files = layout.page(study)
            for kind in ("metrics", "figures", "tables"):
                shutil.rmtree(Path(layout.folder, kind, study), ignore_errors=True)
        for file in files:
            Path(file).unlink(missing_ok=True)
    if any(Path(layout.pages).glob("*.json")):
        write_index(layout.index())
    else:
        Path(layout.index()).unlink(missing_ok=True)
    root = Path(layout.folder)
    for folder in sorted([root, *root.rglob("*/")], reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
