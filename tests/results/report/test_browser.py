"""The page as a person meets it: in a real browser, wide and narrow, with and without a mouse, and without scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from cohort.results.report.index import write_index
from tests.results.report.browser import PROGRAM, Browser
from tests.results.report.conftest import (
    CLAIM,
    COMPARED,
    Spec,
    comparison,
    result,
    write,
    write_claims,
)

pytestmark = pytest.mark.skipif(
    not PROGRAM, reason="there is no chromium (apt-get install chromium)"
)

STRATEGIES = [f"strategy{number}" for number in range(9)]
PARTITIONS = [f"dir-0.{number}-overlap0.2x2" for number in range(1, 60)]
CLIPPED = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SHOWN = (
    "[...document.querySelectorAll('#tab1 tbody tr')].filter((row) => row.checkVisibility()).length"
)
HEADS = "[...document.querySelectorAll('#tab1 thead th')].filter((head) => head.checkVisibility()).length"
FOCUSED = "document.activeElement.name || document.activeElement.textContent.trim()"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.fixture
def url(spec: Spec, page: Callable[[Spec], str], tmp_path: Path) -> str:
    """A page with a table of 59 rows and nine strategies, of three runs each, and as wide a claim."""
    results = [
        result(
            {"0": 0.50 + index % 40 / 100, "1": 0.53, "2": 0.56 - index % 7 / 100},
            partition=partition,
            strategy=strategy,
            planned=3,
            finished=3,
        )
        for index, (partition, strategy) in enumerate(product(PARTITIONS, STRATEGIES))
    ]
    write(Path(spec["tables"][0]["files"][-1]), comparison(results))
    points = [replace(COMPARED.points[1], name=name) for name in STRATEGIES]
    sides = {
        side: replace(evidence, numbers=evidence.numbers[1:] * len(points))
        for side, evidence in COMPARED.sides.items()
    }
    many = [
        replace(COMPARED, name=f"Data set {number}, model {number}", points=points, sides=sides)
        for number in range(8)
    ]
    wide = replace(CLAIM, claim="wide", comparisons=many)
    write_claims(Path(spec["claims"][-1]), CLAIM, wide)
    spec["notes"] = ["behind a login: https://" + "a-very-long-address/" * 12]
    html = page(spec)
    assert len(html) < 15e6
    write_index(tmp_path / "report/index.html")
    return (tmp_path / "report/demo.html").as_uri()


@pytest.mark.parametrize("name", ["demo", "index"])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_off(name: str, dark: bool, url: str, browser: Browser) -> None:
    """No table is clipped on a desk; on a phone tables scroll within themselves, the page does not."""
    browser.open(url.replace("demo.html", f"{name}.html"), 1400, dark=dark)
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.settle()
    assert (browser.run(CLIPPED), browser.run(OVERFLOW)) == (0, 0)
    browser.open(url.replace("demo.html", f"{name}.html"), 390, dark=dark)
    assert browser.run(OVERFLOW) == 0
    light = browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light is not dark


def test_a_table_that_scrolls_says_so_and_keeps_its_first_column(
    url: str, browser: Browser
) -> None:
    browser.open(url, 390)
    box = "document.querySelector('#tab1 .scroll')"
    assert "more columns to the right and more rows below" in browser.run(
        f"{box}.nextElementSibling.textContent"
    )
    assert browser.run(f"{box}.tabIndex") == 0
    left = f"{box}.querySelector('tbody th').getBoundingClientRect().left"
    before = browser.run(left)
    browser.run(f"{box}.scrollLeft = 300")
    assert browser.run(f"{box}.scrollLeft") > 100 and browser.run(left) == before


def test_nothing_is_asked_of_the_network(url: str, browser: Browser) -> None:
    browser.open(url)
    assert [
        address for address in browser.requested if not address.startswith(("data:", "file:"))
    ] == []
    assert sum(address.startswith("file:") for address in browser.requested) == 1


def test_the_filter_is_kept_in_the_address(url: str, browser: Browser) -> None:
    """The filter hides rows, columns and items without the value; the address restores it."""
    browser.open(url)
    assert (browser.run(SHOWN), browser.run(HEADS)) == (59, 10)
    choose = "document.querySelector('[name={0}]').value = '{1}'; document.getElementById('filter').dispatchEvent(new Event('change'))"
    browser.run(choose.format("strategy", "fedavg"))
    assert browser.run("location.search") == "?strategy=fedavg"
    assert browser.run("document.querySelector('.group[data-strategy=fedentopt]').hidden")
    assert browser.run("document.querySelector('output').textContent").endswith(" shown")
    browser.run(choose.format("partition", "iid"))
    assert browser.run(SHOWN) == 0
    browser.open(url + "?partition=dir-0.1&partition=nonsense&other=1")
    assert browser.run("document.querySelector('[name=partition]').value") == "dir-0.1"
    assert browser.run("document.querySelector('#fig2').hidden")  # its runs are of iid
    browser.run("document.querySelector('button[type=reset]').click()")
    browser.settle()
    assert browser.run("location.search") == "" and browser.run(SHOWN) == 59


def test_a_verdict_is_a_filter(url: str, browser: Browser) -> None:
    """Of two claims, both held by the paper and undecided by our runs, a choice hides both or none;
    the address keeps it."""
    shown = "[...document.querySelectorAll('.claim')].filter((claim) => !claim.hidden).length"
    browser.open(url)
    browser.run("document.querySelector('.choice button[data-side=ours]').click()")
    assert browser.run("location.search") == "?ours=undecided" and browser.run(shown) == 2
    browser.open(url + "?paper=not+held")
    assert browser.run(shown) == 2  # no claim has this verdict, so there is no choice of it
    browser.run("document.querySelector('.choice button[data-side=paper]').dataset.verdict = 'tie'")
    browser.run("document.querySelector('.choice button[data-side=paper]').click()")
    assert browser.run(shown) == 0
    assert browser.run("document.querySelector('.claims').hidden")
    browser.run("document.querySelector('button[type=reset]').click()")
    browser.settle()
    assert browser.run(shown) == 2 and browser.run("location.search") == ""


def test_values_of_one_title_are_one_choice(
    spec: Spec, page: Callable[[Spec], str], tmp_path: Path, browser: Browser
) -> None:
    titles = {"partition": {"dir-0.1": "uneven", "iid": "uneven"}, **spec["titles"]}
    assert 'name="partition"' not in page(spec | {"titles": titles})
    titles["strategy"] = {"fedavg": "one"}
    page(spec | {"titles": titles})
    browser.open((tmp_path / "report/demo.html").as_uri())
    options = "[...document.querySelectorAll('[name=strategy] option')].map((o) => o.textContent)"
    assert browser.run(options) == ["all", "one", "fedentopt"]


def test_a_column_is_sorted_by_its_numbers(url: str, browser: Browser) -> None:
    browser.open(url)
    values = "[...document.querySelectorAll('#tab1 tbody tr')].map((row) => parseFloat(row.cells[3].textContent))"
    before = browser.run(values)
    head = "document.querySelectorAll('#tab1 thead button')[3]"
    browser.run(f"{head}.click()")
    assert browser.run(values) == sorted(before) != before
    browser.run(f"{head}.click()")
    assert browser.run(values) == sorted(before, reverse=True)
    assert browser.run(f"{head}.parentElement.getAttribute('aria-sort')") == "descending"


def test_all_is_reached_with_the_keyboard(url: str, browser: Browser) -> None:
    """First a link that skips the head of the page; then filter, folded parts, tables and commands."""
    browser.open(url)
    browser.press("Tab")
    assert browser.run(FOCUSED) == "Skip to the results"
    assert browser.run("document.activeElement.getBoundingClientRect().left") > 0
    browser.press("Enter")
    assert browser.run("document.activeElement.id") == "main"
    browser.open(url)
    seen = []
    for _ in range(60):
        browser.press("Tab")
        if browser.run("document.activeElement === document.body"):
            break
        seen.append(browser.run(FOCUSED))
        outline = browser.run("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", f"no visible focus on {seen[-1]}"
    wanted = ["Claims", "strategy", "How a verdict comes about", "Copy", "CSV", "Partition"]
    assert [word for word in wanted if word not in seen] == []


def test_a_link_to_runs_unfolds_them(url: str, browser: Browser) -> None:
    browser.open(url + "#kda0000000000")
    assert browser.run("document.getElementById('kda0000000000').checkVisibility()")
    browser.open(url)
    assert not browser.run("document.getElementById('kda0000000000').checkVisibility()")
    browser.run("document.querySelector('a[href=\"#kda0000000000\"]').click()")
    browser.settle()
    assert browser.run("document.getElementById('kda0000000000').checkVisibility()")


def test_without_scripts_everything_can_be_read(url: str, browser: Browser) -> None:
    browser.open(url, script=False)
    actual = browser("DOM.getDocument")["root"]["nodeId"]
    text = browser("DOM.getOuterHTML", nodeId=actual)["outerHTML"]
    assert text.count("<tr") > 70 and "<code>snakemake demo_fig2</code>" in text
    assert '<form id="filter" hidden' in text and ">Copy<" not in text
    browser("Emulation.setScriptExecutionDisabled", value=False)
