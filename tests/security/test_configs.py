"""Config files of an enemy's: each is refused in one sentence, before any job starts, and touches no file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from cohort.cell.planned import plan_file, read_plan
from cohort.core.errors import UserError
from cohort.plan import all_studies, drawn_names, load
from tests.workflow.conftest import TINY

LAUGHS = "\n".join(
    [
        "a0: &a0 [lol, lol]",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)),
    ]
)
YAMLS = {
    "a tag that calls": (
        "title: !!python/object/apply:os.system ['touch written']",
        "could not determine a constructor for the tag",
    ),
    "a tag that imports": (
        "title: !!python/module:antigravity ''",
        "could not determine a constructor for the tag",
    ),
    "a billion laughs": (LAUGHS, "more than 200000 values, aliases included"),
    "a list that holds itself": ("title: &a [*a]", "is nested too deeply, or contains itself"),
    "deep lists": ("title: " + "[" * 3000 + "]" * 3000, "is nested too deeply, or contains itself"),
    "a number of 5000 digits": ("title: " + "9" * 5000, "integer string conversion"),
    "a number of 30 digits": ("title: " + "9" * 30, "a whole number has more than 18 digits"),
    "no time of day": ("title: 2024-99-99", "must be in 1..12"),
    "no text": ("title: \x00", "control characters are not allowed"),
    "a key that is a list": ("? [a]\n: b", "is not text"),
    "an anchor that merges": ("<<: 7\ntitle: x", "could not determine a constructor for the tag"),
}


@pytest.fixture
def study(project: Path) -> Path:
    """The tiny study as a file that a test makes worse."""
    file = Path("config/studies/enemy.yaml")
    file.write_text(yaml.safe_dump(TINY, sort_keys=False))
    return file


def refused(sentence: str, **overrides: Any) -> None:
    began, before = time.monotonic(), set(Path("..").rglob("*"))
    with pytest.raises(UserError) as caught:
        load({"studies": "enemy"} | overrides)
    said = str(caught.value)
    assert sentence in said and "\n" not in said and len(said) < 2500, said
    assert set(Path("..").rglob("*")) == before
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("name", YAMLS)
@pytest.mark.parametrize("file", ["studies/enemy", "strategies", "datasets", "scales"])
def test_a_yaml_of_an_enemys(name: str, file: str, study: Path):
    content, sentence = YAMLS[name]
    Path(f"config/{file}.yaml").write_bytes(content.encode())
    refused(sentence)


NAMES = [
    "../../written",
    "/tmp/written",
    "$(touch written)",
    "`touch written`",
    "a;touch written",
    "a\nb",
    "name\n",
    "{digest}",
    "{wildcards.cell}",
]
NAMES += ["a b", "a" * 300, "..", "", "-rf", "~", "*", "ä", "a\x00"]
PLACES = {
    "experiment": lambda study, name: study["experiments"].update(
        {name: study["experiments"]["one"]}
    ),
    "figure": lambda study, name: study["figures"].update({name: study["figures"]["fig1"]}),
    "table": lambda study, name: study["tables"].update({name: study["tables"]["tab1"]}),
    "claim": lambda study, name: study.update(claims={name: {"kind": "order"}}),
    "partition": lambda study, name: study["experiments"]["one"]["axes"].update(partition=[name]),
    "J": lambda study, name: study["experiments"]["one"]["axes"].update(J=[name]),
    "strategy": lambda study, name: study["experiments"]["one"]["axes"].update(strategy=[name]),
    "data set": lambda study, name: study["settings"].update(dataset=name),
    "model": lambda study, name: study["settings"].update(model=name),
    "schedule": lambda study, name: study["settings"].update(schedule=name),
    "series": lambda study, name: study["experiments"]["one"]["axes"].update(series=[name]),
    "evaluation": lambda study, name: study["settings"].update(evaluate_every=name),
    "figure's experiment": lambda study, name: study["figures"]["fig1"].update(experiment=name),
    "kind": lambda study, name: study["figures"]["fig1"].update(kind=name),
    "scale": lambda study, name: study.update(scales={name: {}}),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_name_that_is_a_path_or_a_command(place: str, study: Path):
    for name in NAMES[list(PLACES).index(place) % 3 :: 3]:
        if (place, name) == ("series", "a b"):  # a label and no more
            continue
        content = yaml.safe_load(yaml.safe_dump(TINY))
        PLACES[place](content, name)
        study.write_text(yaml.safe_dump(content, sort_keys=False))
        try:
            planned = load({"studies": "enemy"})
        except UserError as error:
            assert (
                "\n" not in str(error)
                and "config/studies/enemy.yaml" in str(error)
                and len(str(error)) < 2500
            )
        else:
            pytest.fail(
                f"{name!r} was planned: {sorted(cell.path for cell in planned.cells.values())[:1]}"
            )
    assert not list(Path("..").rglob("written"))


@pytest.mark.parametrize("name", NAMES)
def test_a_strategy_or_data_set_of_such_a_name(name: str, study: Path):
    for file in ("strategies", "datasets"):
        original = Path(f"config/{file}.yaml").read_text()
        content = yaml.safe_load(original)
        content[name] = next(iter(content.values()))
        Path(f"config/{file}.yaml").write_text(yaml.safe_dump(content))
        refused(f"config/{file}.yaml: ")
        Path(f"config/{file}.yaml").write_text(original)


@pytest.mark.parametrize(
    "number", ["J0", "J-1", "J1.5", "J" + "9" * 5000, "J9" * 80, "J٣", "J1e9", "J 4"]
)
def test_work_that_is_no_number(number: str, study: Path):
    study.write_text(study.read_text().replace("- J2", f"- {number!r}"))
    refused("axes.J[0] is 'J")


@pytest.mark.parametrize(
    "partition",
    [
        "dir-1e999",
        "dir-nan",
        "dir-" + "9" * 5000,
        "classes-" + "9" * 400,
        "classes-\u0663",
        "dir-0.1-overlap1e9x9",
        "iid/../x",
    ],
)
def test_a_partition_that_is_none(partition: str, study: Path):
    study.write_text(
        study.read_text().replace(
            "- classes-2", yaml.safe_dump([partition], allow_unicode=True).strip()
        )
    )
    refused("partition '")


@pytest.mark.parametrize("name", NAMES)
def test_a_study_file_of_such_a_name_is_none(name: str, study: Path):
    """Its name would be a rule's, and a part of paths."""
    if not name or "/" in name or "\x00" in name or len(name) > 200:
        pytest.skip("no file can be called so")
    (study.parent / f"{name}.yaml").write_text("title: x")
    assert name not in all_studies()
    refused("studies is ", studies=name)


def test_a_study_that_nobody_asked_for_names_no_target_of_such_a_name(study: Path):
    study.write_text(
        yaml.safe_dump(
            {
                "figures": {"../x": {}, "a\n": {}, "fig1": {}, "{digest}": {}},
                "tables": {"fig1": {}, "$(x)": {}},
            }
        )
    )
    assert drawn_names("enemy") == ["fig1"]
    for content in (
        "figures: text",
        "figures: [[1]]",
        "- a",
        "figures: {1: 2}",
        "claims: [a]",
        LAUGHS,
        "",
    ):
        study.write_text(content)
        assert set(drawn_names("enemy")) <= {"t", "e", "x", "claims"}


FILES = {
    "a path": (
        "files",
        {"../written": {"source": "https://a.org/b", "sha256": "0" * 64, "bytes": 1}},
    ),
    "dots": ("files", {"..": {"source": "https://a.org/b", "sha256": "0" * 64, "bytes": 1}}),
    "hidden": (
        "files",
        {".written": {"source": "https://a.org/b", "sha256": "0" * 64, "bytes": 1}},
    ),
    "a file of this machine": (
        "files",
        {"a": {"source": "file:///etc/passwd", "sha256": "0" * 64, "bytes": 1}},
    ),
    "a package's parent": (
        "files",
        {"a": {"source": "package:numpy/../../../../etc/passwd", "sha256": "0" * 64}},
    ),
    "a member outside": (
        "files",
        {
            "a": {
                "source": "https://a.org/b",
                "sha256": "0" * 64,
                "bytes": 1,
                "member": "/etc/passwd",
            }
        },
    ),
    "a shape without end": ("shape", [10**30]),
}


@pytest.mark.parametrize("name", FILES)
def test_a_data_set_that_names_what_it_may_not(name: str, study: Path):
    file = Path("config/datasets.yaml")
    content = yaml.safe_load(file.read_text())
    key, value = FILES[name]
    content["digits"][key] = value
    file.write_text(yaml.safe_dump(content))
    refused("config/datasets.yaml")


PLANS = {
    "a list": "[]",
    "deep": "[" * 200_000,
    "other keys": '{"path": "x", "command": "touch written"}',
    "too large a number": '{"digest": ' + "9" * 5000 + "}",
    "no text": b"\xff\xfe",
    "nothing": "",
    "YAML": "!!python/object/apply:os.system ['touch written']",
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_file_of_an_enemys(name: str, project: Path):
    file = plan_file("k0123456789ab")
    file.parent.mkdir(parents=True)
    content = PLANS[name]
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(
        UserError,
        match=r"^results/plan/k0123456789ab.json: cannot be read as a plan file \([^\n]*start snakemake again",
    ):
        read_plan(file)
    assert not Path("written").exists()
