"""The rules' path patterns, compared with the layout that everything else takes its paths from."""

import re
from pathlib import Path

import pytest

from cohort.core import paths as at
from tests.conftest import ROOT

RULES = "\n".join(file.read_text() for file in sorted((ROOT / "rules").glob("*.smk")))
DIGEST = "k0123456789ab"
SETTINGS = {
    **{"dataset": "digits", "model": "small-mlp", "partition": "iid", "J": "J4"},
    **{"strategy": "fedavg", "clients": 10, "seed": 3},
}
LAYOUT = at.Layout("full")


def patterns(rule: str, part: str) -> list[re.Pattern[str]]:
    """The path patterns of a part of a rule, each as an expression that matches its paths."""
    block = re.search(rf"^rule {rule}:\n(.*?)(?=^rule |\Z)", RULES, re.MULTILINE | re.DOTALL)
    assert block is not None, rule
    lines = re.search(rf"^    {part}:\n((?:        .*\n)+)", block[1], re.MULTILINE)
    assert lines is not None, (rule, part)
    report_arguments = r"^ +(?:caption|category|subcategory|labels)=.*\n"
    paths = re.sub(report_arguments, "", lines[1], flags=re.MULTILINE)
    results = []
    for expression in re.findall(r'(?:multiext|report)\([^)]*\)|"[^"]*"', paths):
        first, *suffixes = re.findall(r'"([^"]*)"', expression)
        results += [first + suffix for suffix in suffixes or [""]]
    return [re.compile(re.sub(r"\\{(\w+)\\}", "(.+)", re.escape(text))) for text in results]


@pytest.mark.parametrize(
    ("rule", "part", "paths"),
    [
        ("download", "output", [at.raw_file("digits", "digits.csv.gz")]),
        ("prepare", "output", [at.data_file("digits", DIGEST)]),
        ("prepare", "params", [str(at.plan_file(DIGEST))]),
        ("deal", "output", [at.shards_file(SETTINGS, DIGEST)]),
        ("deal", "params", [str(at.plan_file(DIGEST))]),
        ("train", "output", [at.record_file(SETTINGS, DIGEST)]),
        ("train", "log", [str(at.train_log(at.record_file(SETTINGS, DIGEST)))]),
        ("collect", "output", [LAYOUT.metrics("aml", "main"), LAYOUT.runs("aml", "main")]),
        ("draw", "output", LAYOUT.figure("aml", "fig1")),
        ("tabulate", "output", LAYOUT.table("aml", "tab1")),
        ("judge", "output", LAYOUT.table("aml", "claims")),
        ("report", "output", LAYOUT.page("aml")),
        ("index", "output", [LAYOUT.index()]),
    ],
)
def test_rules_and_layout_agree(rule: str, part: str, paths: list[str]):
    result = patterns(rule, part)
    assert len(result) == len(paths)
    for pattern, path in zip(result, paths, strict=True):
        assert pattern.fullmatch(path), (pattern, path)


def test_paths_that_finished_results_depend_on():
    cell = f"digits/small-mlp/iid/J4/fedavg/seed3-{DIGEST}"
    record = f"results/cells/{cell}.h5"
    assert at.record_file(SETTINGS, DIGEST) == record
    assert at.state_folder(record) == Path(f"results/cells/{cell}.state")
    assert at.train_log(record) == Path(f"results/logs/train/{cell}.log")
    shards = f"results/shards/digits/iid/clients10-seed3-{DIGEST}.h5"
    assert at.shards_file(SETTINGS, DIGEST) == shards
    assert at.PLAN_FOLDER == "results/plan"
