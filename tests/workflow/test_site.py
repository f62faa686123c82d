"""The static site holds whatever its pages link to."""

from __future__ import annotations

import contextlib
import re
from urllib.parse import unquote

from cohort.plan import load
from tests.workflow.conftest import Project
from tools.site import make_site

LINK = re.compile(r'(?:href|src|content)="([^"#]+)"')


def test_every_link_of_the_site_leads_to_a_file_in_it(finished: Project) -> None:
    released = finished.root / "resources/released/tiny"
    released.mkdir(parents=True)
    (released / "manifest.json").write_text('{"runs": 6}')
    (released / "runs.parquet").touch()
    site = finished.root / "site"
    site.mkdir()
    with contextlib.chdir(finished.root):
        make_site(load(), site)
    linked = set()
    for page in (site / name for name in ("index.html", "tiny.html")):
        for url in LINK.findall(page.read_text(encoding="utf-8")):
            if "/" in url or url.endswith(".html"):
                linked.add(url)
    local = {url for url in linked if not url.startswith(("https:", "data:"))}
    assert {"tiny.html", "index.html", "figures/tiny/fig1.pdf", "tables/tiny/tab1.csv"} <= local
    assert [url for url in local if not (site / unquote(url)).exists()] == []
    assert not any(url.startswith((".", "/")) for url in local)
    index = (site / "index.html").read_text(encoding="utf-8")
    assert re.search(r'href="released/tiny/runs.parquet">tiny</a> \(6 runs\)', index)
