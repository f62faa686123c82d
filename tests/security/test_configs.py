"""Hostile config files: each is refused in one sentence before any job, and touches no file."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.plan import load
from tests.workflow.conftest import TINY

LEVELS = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
LAUGHS = "\n".join(["a0: &a0 [lol, lol]", *LEVELS])
YAMLS = {
    "a tag that calls": (
        "title: !!python/object/apply:os.system ['touch written']",
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
    file = Path("config/studies/hostile.yaml")
    file.write_text(yaml.safe_dump(TINY, sort_keys=False))
    return file


def assert_refused(sentence: str, **overrides: Any) -> None:
    began, before = time.monotonic(), set(Path("..").rglob("*"))
    with pytest.raises(UserError) as caught:
        load({"studies": "hostile"} | overrides)
    message = str(caught.value)
    assert sentence in message and "\n" not in message and len(message) < 2500, message
    assert set(Path("..").rglob("*")) == before
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("name", YAMLS)
def test_a_hostile_yaml(name: str, study: Path):
    content, sentence = YAMLS[name]
    for file in ("config/datasets.yaml", "config/strategies.yaml", study):
        original = Path(file).read_bytes()
        Path(file).write_bytes(content.encode())
        assert_refused(sentence)
        Path(file).write_bytes(original)


NAMES = ["../../written", "/tmp/written", "$(touch written)", "`touch written`", "a;touch written"]
NAMES += ["a\nb", "name\n", "{digest}", "{wildcards.cell}", "a b", "a" * 300, "..", "", "-rf", "~"]
NAMES += ["*", "ä", "a\x00"]
KEYS = ["experiments", "figures", "tables", "claims", "partition", "J", "strategy", "dataset"]
KEYS += ["model", "schedule", "kind", "experiment"]


def put_name(study: dict[str, Any], key: str, name: str) -> None:
    """Give something in a study a hostile name."""
    if key in ("experiments", "figures", "tables"):
        study[key][name] = next(iter(study[key].values()))
    elif key == "claims":
        study["claims"] = {name: {"kind": "order"}}
    elif key in ("partition", "J", "strategy"):
        study["experiments"]["one"]["axes"][key] = [name]
    elif key in ("kind", "experiment"):
        study["figures"]["fig1"][key] = name
    else:
        study["settings"][key] = name


@pytest.mark.parametrize("key", KEYS)
def test_a_name_that_is_a_path_or_a_command(key: str, study: Path):
    for name in NAMES[KEYS.index(key) % 3 :: 3]:
        content = yaml.safe_load(yaml.safe_dump(TINY))
        put_name(content, key, name)
        study.write_text(yaml.safe_dump(content, sort_keys=False))
        assert_refused("config/studies/hostile.yaml")
    assert not list(Path("..").rglob("written"))
