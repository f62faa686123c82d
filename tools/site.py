"""`python -m tools.site FOLDER`: the pages as a static site, from the runs that exist.

It draws every study of config/studies, and gathers its page with all files that this links to.
"""

import json
import shutil
import sys
from pathlib import Path

from cohort.core.paths import RELEASED, Layout
from cohort.pipeline.preview import draw_studies
from cohort.pipeline.stages import exit_on_error
from cohort.plan import Plan, load
from cohort.plan.loading import STUDIES
from cohort.results.release.folder import MANIFEST
from cohort.results.report.page import write_index

RUNS = "runs.parquet"


def make_site(plan: Plan, site: Path) -> None:
    """Write the site of a plan's listed studies to a folder, in place of what is there."""
    layout = Layout(plan.scale, partial=True)
    draw_studies(plan, plan.listed)
    for part in ("figures", "tables", "released"):
        shutil.rmtree(site / part, ignore_errors=True)
    for part in ("figures", "tables"):
        for study in plan.listed:
            source = Path(layout.folder, part, study)
            if source.exists():
                shutil.copytree(source, site / part / study)
    for study in plan.listed:
        page, card = map(Path, layout.page(study))
        shutil.copy(card, site / card.name)
        html = page.read_text(encoding="utf-8")
        (site / page.name).write_text(html.replace('="../', '="'), encoding="utf-8")
    write_index(site / "index.html", _releases(plan, site / "released"))


def _releases(plan: Plan, copies: Path) -> list[tuple[str, str, int]]:
    """Copy the releases; return each one's study, name of its file of runs, and their number."""
    releases = []
    for manifest in filter(Path.exists, (Path(RELEASED, name, MANIFEST) for name in plan.listed)):
        shutil.copytree(manifest.parent, copies / manifest.parent.name)
        runs = json.loads(manifest.read_text(encoding="utf-8"))["runs"]
        releases.append((manifest.parent.name, RUNS, runs))
    return releases


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    folder.mkdir(parents=True, exist_ok=True)
    shipped = sorted(file.stem for file in STUDIES.glob("*.yaml"))  # without the user's own
    exit_on_error(make_site)(load({"studies": shipped}), folder)
    print(folder / "index.html")
