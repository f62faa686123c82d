from __future__ import annotations

import base64
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cohort.report
from cohort.report.page import write_page

HOSTILE = """</title><script>alert("1")</script> & 'more'"""
PNG = b"\x89PNG not really"
CSV = """\
partition,strategy,metric,at,mean,sd,low,high,n,planned,diverged,best
dir-0.1,NA,test_accuracy,last,0.52,0.028284,0.266,0.774,2,2,0,0
dir-0.1,fedentopt,test_accuracy,last,0.6,,,,1,2,1,1
"""


class Tags(HTMLParser):
    """Every tag with its attributes, and whether each is closed in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.opened: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    """A study with one figure and one table, each with its files."""
    metrics = tmp_path / "metrics.parquet"
    pd.DataFrame({"digest": ["a", "a", "b"], "status": ["done", "done", "missing"]}).to_parquet(
        metrics
    )
    files = {
        suffix: tmp_path / "figures" / f"a figure.{suffix}"
        for suffix in ("png", "pdf", "svg", "csv", "md", "tex")
    }
    files["png"].parent.mkdir()
    files["png"].write_bytes(PNG)
    files["csv"].write_text(CSV)
    item = {"title": HOSTILE, "caption": HOSTILE, "metrics": str(metrics)}
    figure = item | {
        "name": "fig1",
        "files": [str(files[suffix]) for suffix in ("png", "pdf", "svg")],
    }
    table = item | {
        "name": "tab1",
        "files": [str(files[suffix]) for suffix in ("csv", "md", "tex")],
    }
    study = {
        "name": "demo",
        "title": HOSTILE,
        "description": HOSTILE,
        "figures": [figure],
        "tables": [table],
    }
    return {"scale": "full", "notes": [HOSTILE], "studies": [study]}


def page(spec: dict[str, Any], tmp_path: Path) -> str:
    write_page(spec, tmp_path / "report" / "index.html")
    return (tmp_path / "report" / "index.html").read_text(encoding="utf-8")


def test_the_page_is_self_contained(spec: dict[str, Any], tmp_path: Path) -> None:
    tags = Tags()
    tags.feed(text := page(spec, tmp_path))
    assert tags.opened == []
    names = [name for name, _ in tags.found]
    assert not {"script", "link", "iframe", "object"} & set(names)
    images = [attributes["src"] for name, attributes in tags.found if name == "img"]
    assert images == ["data:image/png;base64," + base64.b64encode(PNG).decode()]
    assert not re.search(r"https?://|url\(|@import", text)
    links = [attributes["href"] for name, attributes in tags.found if name == "a"]
    assert links == [
        f"../figures/a%20figure.{suffix}" for suffix in ("png", "pdf", "svg", "csv", "md", "tex")
    ]


def test_text_is_escaped(spec: dict[str, Any], tmp_path: Path) -> None:
    text = page(spec, tmp_path)
    assert "<script" not in text
    assert (
        text.count("&lt;script&gt;") == 8
    )  # title, heading, study, its description, a note, and title (image) and caption of each item


def test_each_item_states_its_runs(spec: dict[str, Any], tmp_path: Path) -> None:
    assert page(spec, tmp_path).count("n = 1 of 2 runs (1 missing)") == 2


def test_tables_are_rendered_from_the_csv(spec: dict[str, Any], tmp_path: Path) -> None:
    (study,) = spec["studies"]
    text = page(
        spec | {"studies": [study | {"titles": {"strategy": {"fedentopt": "FedEntOpt"}}}]}, tmp_path
    )
    assert '<th>Partition</th><th class="number">NA</th><th class="number">FedEntOpt</th>' in text
    assert (
        '<th>dir-0.1</th><td class="number">52.00 ± 2.83 [26.60, 77.40] <span class="count">(2)</span></td>'
        in text
    )
    assert (
        '<td class="number"><strong>60.00</strong><sup>†</sup> <span class="count">(n = 1 of 2)</span></td>'
        in text
    )


def test_table_cells_are_escaped(spec: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "figures" / "a figure.csv").write_text(CSV.replace("dir-0.1", "<i>&"))
    text = page(spec, tmp_path)
    assert text.count("<th>&lt;i&gt;&amp;</th>") == 1 and "<i>" not in text


def test_every_template_is_installed_with_the_package() -> None:
    root = Path(cohort.report.__file__).parent
    project = tomllib.loads((root.parents[2] / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["cohort.report"]
    installed = {file for pattern in patterns for file in root.glob(pattern)}
    others = {
        file for file in root.rglob("*") if file.is_file() and file.suffix not in (".py", ".pyc")
    }
    assert installed == others != set()


SIZES_CSV = """\
dataset,model,classes,clients,weights,label_bytes,model_bytes,bytes_ratio,paper_label_bytes,paper_model_bytes,paper_bytes_ratio
7,lenet5,10,100,62006,4000,248024,62.006,4000,247000,61.75
7,<other>,10,100,500,4000,2000,0.5,,,
"""


def test_a_table_of_sizes_is_rendered_without_metrics(spec: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "figures" / "a figure.csv").write_text(SIZES_CSV)
    spec["studies"][0]["tables"][0] |= {"kind": "sizes", "metrics": ""}
    text = page(
        spec
        | {
            "studies": [spec["studies"][0] | {"figures": [], "titles": {"dataset": {"7": "Seven"}}}]
        },
        tmp_path,
    )
    cells = "".join(
        f'<td class="number">{value}</td>'
        for value in ("0.004", "0.004", "0.247", "0.248", "61.75", "62.01")
    )
    assert f"<tr><th>Seven</th><th>lenet5</th><th>10</th><th>100</th>{cells}</tr>" in text
    assert "<th>&lt;other&gt;</th>" in text and '<p class="runs"><a href=' in text


PAPER_CSV = """\
partition,strategy,metric,at,mean,sd,low,high,n,planned,diverged,best,paper,paper_sd,difference,tolerance,verdict,item,source,doubtful
dir-0.1,NA,test_accuracy,last,0.52,0.028284,0.266,0.774,2,2,0,0,0.535,0.01,-0.015,1.5,agrees,<TableI>,printed,shifted
dir-0.1,fedentopt,test_accuracy,last,,,,,0,2,0,0,,,,1.5,no paper value,,,
"""


def test_a_comparison_with_a_paper_has_a_row_per_result(
    spec: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "figures" / "a figure.csv").write_text(PAPER_CSV)
    text = page(spec, tmp_path)
    head = "".join(
        f'<th class="number">{word}</th>' for word in ("Paper", "Measured", "Difference", "Verdict")
    )
    assert f"<tr><th>Partition</th><th>Strategy</th>{head}</tr>" in text
    assert (
        '<tr><th>dir-0.1</th><th>NA</th><td class="number">53.50 ± 1.00<sup>‡</sup></td><td class="number">52.00 ± 2.83 [26.60, 77.40] '
        '<span class="count">(2)</span></td><td class="number">-1.50</td><td class="number">agrees</td></tr>'
    ) in text
    assert '<td class="number">–</td><td class="number">no result yet' in text
    assert "Paper: &lt;TableI&gt; (printed)." in text and "‡ doubtful: shifted." in text


def test_claims_are_rendered_from_their_csv(spec: dict[str, Any], tmp_path: Path) -> None:
    files = [str(tmp_path / "figures" / f"claims.{ending}") for ending in ("csv", "md", "tex")]
    row = {
        "claim": "one", "says": HOSTILE, "where": "Section 1", "kind": "order", "metric": "test_loss", "at": "last",
        "measured": "held", "measured_evidence": "1.000 < 2.000", "n": 3, "planned": 4, "diverged": 1,
        "paper": "not held", "paper_evidence": "✗ 2.000 > 1.000", "doubtful": "shifted",
    }  # fmt: skip
    pd.DataFrame([row]).to_csv(files[0], index=False)
    text = page(spec | {"studies": [spec["studies"][0] | {"claims": files}]}, tmp_path)
    assert '<th>Claim</th><th>Where</th><th class="prose">Measured</th>' in text
    assert (
        '<td class="prose">held<sup>†</sup> <span class="count">(3 of 4 runs)</span><div class="key">1.000 &lt; 2.000</div></td>'
        '<td class="prose">not held<sup>‡</sup><div class="key">✗ 2.000 &gt; 1.000</div></td>'
    ) in text
    assert (
        "‡ doubtful: shifted." in text and "<script" not in text and "../figures/claims.tex" in text
    )


def test_a_table_of_generated_data_says_so(spec: dict[str, Any], tmp_path: Path) -> None:
    metrics = Path(spec["studies"][0]["tables"][0]["metrics"])
    assert "stand-in" not in page(spec, tmp_path)
    pd.read_parquet(metrics).assign(generated=[True, True, None]).to_parquet(metrics)
    assert page(spec, tmp_path).count("Generated stand-in data: no reproduction of any paper.") == 1


@pytest.mark.parametrize(("scale", "warned"), [("full", False), ("smoke", True)])
def test_a_cheaper_scale_is_warned_of(
    spec: dict[str, Any], tmp_path: Path, scale: str, warned: bool
) -> None:
    text = page(spec | {"scale": scale}, tmp_path)
    assert ("no reproduction" in text) is warned


def test_several_studies_have_a_table_of_contents(spec: dict[str, Any], tmp_path: Path) -> None:
    text = page(
        spec
        | {"studies": [spec["studies"][0], spec["studies"][0] | {"name": "two", "title": "Two"}]},
        tmp_path,
    )
    assert '<a href="#two">Two</a>' in text
    assert '<section id="two">' in text
