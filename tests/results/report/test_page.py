"""The page of a study and the index, as HTML."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from cohort.core.sealed_json import write_sealed
from cohort.results.paper import PaperValue
from cohort.results.report.page import write_index
from cohort.results.series import read_experiment, write_metrics
from tests.results.report.conftest import (
    CLAIM,
    PNG,
    TABLE,
    Spec,
    comparison,
    result,
    write,
    write_claims,
)

Write = Callable[[Spec], str]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
PRINTED = PaperValue(
    "<TableI>", "printed", "shifted", {}, "", "test_accuracy", "", None, 0.535, 0.01
)
HOSTILE = """</title><script>alert("1")</script> & 'more'"""


class Tags(HTMLParser):
    """Every tag with its attributes, the text outside of scripts and styles, and that each tag is closed in its order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.opened: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.opened == []
        self.text = re.sub(r"\s+", " ", self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text += " "
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "link", "source"):
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += "" if self.opened and self.opened[-1] in ("script", "style") else data

    def all(self, tag: str, attribute: str) -> list[str]:
        values = [attributes for name, attributes in self.found if name == tag]
        return [str(attributes[attribute]) for attributes in values if attribute in attributes]


def test_the_page_is_self_contained(spec: Spec, page: Write) -> None:
    html = page(spec)
    tags = Tags(html)
    names = {name for name, _ in tags.found}
    assert not {"iframe", "object", "video"} & names
    picture = "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert (tags.all("img", "src"), tags.all("img", "width")) == ([picture], ["756"])
    assert tags.all("source", "srcset") == [picture]  # for phones
    assert [url[:5] for url in tags.all("link", "href")] == ["data:"]
    assert not re.search(r"https?://|url\(|@import", html) and tags.all("script", "src") == []


def test_every_link_leads_somewhere(spec: Spec, page: Write, tmp_path: Path) -> None:
    tags = Tags(page(spec))
    ids = [str(attributes["id"]) for _, attributes in tags.found if "id" in attributes]
    assert len(set(ids)) == len(ids)
    anchors = [url[1:] for url in tags.all("a", "href") if url.startswith("#")]
    assert set(anchors) <= set(ids)
    assert {"../drawn/tab1.csv", "../drawn/fig1.pdf"} <= set(tags.all("a", "href"))


def test_a_number_leads_to_its_runs(spec: Spec, page: Write) -> None:
    """FedAvg's two seeds on dir-0.1 are one group, under the digest of the first; what has no run has no link."""
    html = page(spec)
    assert html.count('<a href="#kda0000000000">52.00') == 2  # in the table, and in the claim
    assert 'id="kda0000000000"' in html and "kda1000000000" in html
    row = re.search(r'<th scope="row">iid</th>.*?</tr>', html, re.DOTALL)
    assert row is not None and "href" not in row[0]


def test_a_claim_shows_its_verdicts_and_numbers(spec: Spec, page: Write) -> None:
    text = Tags(page(spec)).text
    assert "paper's numbers: held" in text and "our runs: undecided" in text
    assert text.count("Our runs: 3 seeds; a verdict needs 5.") == 1
    assert "dir-0.1 paper FedEntOpt: 61.00 FedAvg: 47.00 ✓ held" in text
    ours = "FedEntOpt: 60.00 n = 1 of 2 FedAvg: 52.00 [26.60, 77.40], n = 2"
    assert f"ours {ours} +8.00 [-1.00, +17.00] above 0 in 1 of 2 seeds" in text


def test_a_claim_without_runs_says_so(spec: Spec, page: Write) -> None:
    file = Path(spec["claims"][-1])
    write_claims(file, replace(CLAIM, measured="not enough runs", n=0, comparisons=[]))
    html = page(spec)
    text = Tags(html).text
    assert "Claims by our runs – 1 no runs yet" in text and "our runs: " not in text
    assert '<details class="claims"><summary><h3>Without enough runs (1)</h3>' in html  # folded


def test_the_page_opens_with_question_findings_and_key_figure(spec: Spec, page: Write) -> None:
    findings = ["Labels & turns matter. By 0.1 points. Or 2.", "Losses do not."]
    html = page(spec | {"key_figure": "fig1", "title": "A title", "findings": findings})
    opening = ["A title", "Which is better?"]
    opening += ["<strong>Labels &amp; turns matter.</strong> By 0.1 points. Or 2.", 'class="key"']
    opening += ["<strong>Losses do not.</strong>", "What it is."]
    positions = [html.index(text) for text in (*opening, "3 of 8 runs", "demo_tab1", "demo_claims")]
    assert positions == sorted(positions)


def test_a_claim_that_its_paper_contradicts_comes_first_with_both_sides(
    spec: Spec, page: Write
) -> None:
    wide = replace(CLAIM, claim="wide", says="It is wide.", paper="not held")
    write_claims(Path(spec["claims"][-1]), CLAIM, wide)
    quotes = {"quote": "We are always first.", "against": "3 to 4.", "reading": "Not `here`."}
    text = Tags(page(spec | {"quotes": spec["quotes"] | {"wide": quotes}})).text
    before, _, after = text.partition("It is wide.")
    assert before.rstrip().endswith("Contradicted by the paper's own numbers (1)")
    assert "We are always first. Numbers: 3 to 4. Reading: Not here." in after
    assert after.index("Not contradicted (1)") < after.index("FedEntOpt is better.")


def test_items_have_the_numbers_of_their_paper(spec: Spec, page: Write) -> None:
    (table,) = spec["tables"]
    source = {"authors": "A", "title": "B"}
    named = [table | {"title": "Table IV: medical images"}]
    text = Tags(page(spec | {"source": source, "tables": named})).text
    assert "Fig. 1: Title of fig1" in text and "Table IV: medical images" in text
    assert "Fig. 1" not in Tags(page(spec)).text  # which reproduces no paper


def test_an_address_can_be_followed(spec: Spec, page: Write) -> None:
    html = page(spec | {"notes": ["a login (https://a.b/c?d=1&e); <set> data_paths"]})
    address = "https://a.b/c?d=1&amp;e"
    assert f'a login (<a href="{address}">{address}</a>); &lt;set&gt; ' in html


def test_a_figure_without_runs_is_one_line_with_its_command_and_cost(
    spec: Spec, page: Write
) -> None:
    text = Tags(page(spec)).text
    price = "about 4 h 00 min of one CPU core"
    assert f"Without enough runs: 1 item, {price}" in text
    assert f"Title of fig2 snakemake demo_fig2 n = 0 of 4 runs (4 missing), {price} to go" in text
    assert "Caption of fig2" not in text


def test_each_item_has_its_command_files_runs_and_cost(spec: Spec, page: Write) -> None:
    text = Tags(page(spec)).text
    expected = "experiment main: n = 3 of 4 runs (1 missing) 30 s of training, about 1 h 00 min of one CPU core to go"
    assert f"snakemake demo_tab1 csv md tex json {expected}" in text
    assert f"snakemake demo_fig1 png pdf json {expected}" in text


def test_tables_are_laid_out(spec: Spec, page: Write) -> None:
    html = page(spec)
    text = Tags(html).text
    assert "Partition FedAvg FedEntOpt" in text
    assert "52.00 ± 2.83 [26.59, 77.41] (2)" in text and "<strong>60.00</strong>†</a>" in html
    assert text.count("no result yet") == 0 and 'title="no result yet n = 0 of 2">–</td>' in html
    assert html.count('scope="col"') > 5 and "<caption" in html


def test_rows_without_runs_are_left_out(spec: Spec, page: Write) -> None:
    """What all other rows share is said once."""
    results = [
        result({"0": 0.5, "1": 0.54}, partition="dir-0.1", strategy="fedavg"),
        result({}, partition="iid", strategy="fedavg", finished=0, paper=PRINTED),
    ]
    write(Path(spec["tables"][0]["files"][-1]), comparison(results, has_paper=True))
    text = Tags(page(spec)).text
    assert "1 row without runs left out." in text and "paper 53.50" not in text
    write(Path(spec["tables"][0]["files"][-1]), comparison(results[1:], has_paper=True))
    assert "Without enough runs: 2 items" in Tags(page(spec)).text


def test_text_is_escaped(spec: Spec, page: Write) -> None:
    for entry in (spec, *spec["figures"], *spec["tables"]):
        entry["title"] = HOSTILE
        entry["caption"] = entry["description"] = HOSTILE
    spec["notes"] = [HOSTILE]
    spec["source"] = {"authors": HOSTILE, "title": HOSTILE}
    write_claims(Path(spec["claims"][-1]), replace(CLAIM, says=HOSTILE, gap=HOSTILE))
    results = [result({"0": 0.5}, partition="<i>&", strategy="fedavg")]
    write(Path(spec["tables"][0]["files"][-1]), comparison(results))
    html = page(spec)
    assert html.count("<script") == 1 and "alert(" in html
    assert "<i>" not in html and "&lt;i&gt;&amp;" in html


def test_the_card_counts_and_adds_up(spec: Spec, page: Write, tmp_path: Path) -> None:
    page(spec)
    card = json.loads((tmp_path / "report/demo.json").read_text())
    assert card["runs"] == {"planned": 8, "done": 3, "diverged": 0, "unfinished": 0, "missing": 5}
    assert (card["spent"], card["to_go"], card["date"]) == (30.0, 5 * 3600.0, "2026-02-15")
    assert card["commits"] == ["abc0", "abc1"]
    assert card["verdicts"] == [
        ["the paper's own numbers", [["held", 1]]],
        ["our runs", [["undecided", 1]]],
    ]


def test_the_index_has_a_card_for_each_page(spec: Spec, page: Write, tmp_path: Path) -> None:
    page(spec)
    card = json.loads((tmp_path / "report/demo.json").read_text())
    for name in ("gone", "other"):
        more = card | {"name": name, "runs": card["runs"] | {"done": 100}}
        (tmp_path / f"report/{name}.json").write_text(json.dumps(more))
    (tmp_path / "report/other.html").touch()
    index = tmp_path / "report/index.html"
    write_index(index)
    tags = Tags(index.read_text())
    assert tags.all("a", "href")[1:] == ["other.html", "demo.html"]
    for text in ("5 missing", "5 h 00 min of one CPU core", "held"):
        assert text in tags.text
    before = index.stat().st_mtime_ns
    write_index(index)
    assert index.stat().st_mtime_ns == before
    (tmp_path / "partial").mkdir()
    (tmp_path / "report").rename(tmp_path / "partial/report")
    write_index(tmp_path / "partial/report/index.html")
    preview = (tmp_path / "partial/report/index.html").read_text()
    assert (tags.text.count("Not finished"), preview.count("Not finished")) == (0, 2)


def change_cells(spec: Spec, change: Callable[[Spec], Spec]) -> None:
    """Rewrite the JSON beside the metrics of the first experiment with each cell changed."""
    file = Path(spec["experiments"]["main"]["runs"])
    content = read_experiment(file)
    write_sealed(file, content | {"cells": list(map(change, content["cells"]))})


def test_restored_runs_are_named_wherever_they_are_shown(
    spec: Spec, page: Write, tmp_path: Path
) -> None:
    """Under the counts, in the captions of the figure and the table, and on the card; not where a
    figure has none. A finished run that was trained here is counted."""
    origins = {0: ["resources/released/demo"], 1: ["https://a.b/<c>", "d"]}

    def restored(cell: Spec) -> Spec:
        is_theirs = cell["status"] == "done" and cell["labels"]["strategy"] == "fedavg"
        return cell | {"restored": origins[cell["labels"]["seed"]] if is_theirs else []}

    change_cells(spec, restored)
    html = page(spec)
    text = Tags(html).text
    first = "Restored from resources/released/demo: 1 of 3 finished runs."
    second = "Restored from https://a.b/<c> and d: 1 of 3 finished runs (fedavg)."
    assert text.count(first) == text.count(second) == 3
    for name in ("fig1", "tab1"):
        shown = re.search(rf'<figure [^>]*id="{name}".*?</figure>', html, re.DOTALL)
        assert shown is not None and first in shown[0]
    write_index(tmp_path / "report/index.html")
    assert first in (tmp_path / "report/index.html").read_text()


def test_files_of_the_user_that_changed_after_a_run_are_named(
    spec: Spec, page: Write, empty_folder: Path
) -> None:
    """Of three finished runs that of seed 1 had another version of my/selection/turns.py."""
    file = Path("my/selection/turns.py")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"turns")
    versions = [hashlib.sha256(content).hexdigest() for content in (b"turns", b"others")]

    def with_versions(cell: Spec) -> Spec:
        is_finished = cell["status"] == "done"
        seed = cell["labels"]["seed"]
        return cell | ({"my": {"my.selection.turns": [versions[seed]]}} if is_finished else {})

    change_cells(spec, with_versions)
    sentence = "another my/selection/turns.py made 1 run: raise its `science` version"
    assert sentence in Tags(page(spec)).text
    assert sentence in json.loads(Path("report/demo.json").read_text())["changed"][0]
    file.write_bytes(b"others")
    assert "turns.py made 2 runs" in Tags(page(spec)).text


def test_a_preview_says_what_is_true_of_its_runs(spec: Spec, page: Write, tmp_path: Path) -> None:
    page(spec)
    folder = tmp_path / "partial/report"
    folder.parent.mkdir()
    (tmp_path / "report").rename(folder)
    card = json.loads((folder / "demo.json").read_text())
    sentences = []
    for done in (0, 3, 8):
        runs = card["runs"] | {"done": done, "missing": 8 - done}
        (folder / "demo.json").write_text(json.dumps(card | {"runs": runs}))
        write_index(folder / "index.html")
        html = (folder / "index.html").read_text()
        sentences.append(re.findall('<p class="warning">(.*?)</p>', html))
    assert sentences == [["No run yet."], ["Not finished: drawn from the runs that exist."], []]


def test_runs_state_what_they_have_alone_and_what_all_share(spec: Spec, page: Write) -> None:
    html = page(spec)
    shared = re.search("Settings that all.*?</dl>", html, re.DOTALL)
    group = re.search('id="kda0.*?</details>', html, re.DOTALL)
    assert shared is not None and group is not None
    assert "selector.name</dt><dd>random" in shared[0] and "rounds</dt><dd>10" in shared[0]
    assert "rounds" not in html[html.index('<section id="runs">') :]
    assert "Xeon &lt;1&gt; (3 runs)" in html
    assert "abc0" in group[0] and "2026-02-15 10:00" in group[0]


def test_notes_and_warnings(spec: Spec, page: Write) -> None:
    assert "reproduction of any paper" not in page(spec)
    assert "no reproduction" in page(spec | {"scale": "smoke"})
    assert "demo.main: 2 cells skipped" in page(spec | {"notes": ["demo.main: 2 cells skipped"]})


def test_a_page_without_any_run_shows_what_the_paper_says(spec: Spec, page: Write) -> None:
    """A study that nobody has trained: claims by the paper's own numbers, no picture, no row of dashes."""
    for entry in spec["experiments"].values():
        file = Path(entry["runs"])
        content = read_experiment(file)
        keys = ("digest", "path", "labels")
        planned = [{key: cell[key] for key in keys} for cell in content["cells"]]
        content["cells"] = [cell | {"status": "missing"} for cell in planned]
        frame = pd.read_parquet(file.with_suffix(".parquet"))
        frame = frame.assign(status="missing", metric=None, value=None)
        write_metrics(file.with_suffix(".parquet"), frame, content)
    Path(spec["figures"][0]["files"][0]).unlink()  # as `draw_study` does
    nothing = [replace(row, values={}, finished=0, diverged=0, best=False) for row in TABLE]
    write(Path(spec["tables"][0]["files"][-1]), comparison(nothing))
    tags = Tags(page(spec))
    assert tags.all("img", "src") == [] and "n = 0 of 8 runs (8 missing)" in tags.text
    for text in ("Without enough runs: 3 items", "paper's numbers: held", "61.00"):
        assert text in tags.text


@pytest.mark.skipif(not CHROMIUM, reason="there is no chromium (apt-get install chromium)")
def test_the_script_runs(spec: Spec, page: Write, tmp_path: Path) -> None:
    """Tables can be sorted, commands copied, and a link to runs unfolds them."""
    page(spec)
    url = (tmp_path / "report/demo.html").as_uri() + "#kda0000000000"
    profile = f"--user-data-dir={tmp_path}/chromium"
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", profile, "--dump-dom", url]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "<button>Copy</button>" in dumped and '<th scope="col"><button>Partition' in dumped
    opened = [f'<details class="{name}" open="">' for name in ("groups", "group")]
    assert re.search(rf'{opened[0]}.*{opened[1]}.*?id="kda0000000000"', dumped, re.S)
