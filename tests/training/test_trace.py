"""Devices of a table of one's own: speeds, identity, and mistakes in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from cohort.core.errors import UserError
from cohort.plan import load
from cohort.settings import plan_file, write_plan
from cohort.training.cell import read_cell
from cohort.training.devices import parse_devices

FILE = Path("my/training/devices/phones.csv")
TABLE = "speed,link\n50,8\n200,80\n"


@pytest.fixture
def write(project: Path) -> Callable[[str], None]:
    """Write the table in a copy of the project."""
    FILE.parent.mkdir(parents=True)
    return lambda text: FILE.write_bytes(text.encode()) and None


def test_a_row_for_each_client_or_rows_drawn(write: Callable[[str], None]):
    """80 Mbit/s are 10 MB/s. Of two rows for ten clients both are drawn, speed and link together."""
    write(TABLE)
    devices = parse_devices("trace-phones")
    speeds = devices.speeds(2, np.random.default_rng(0))
    assert speeds is not None
    assert speeds.samples.tolist() == [50, 200] and speeds.bytes.tolist() == [1e6, 1e7]
    drawn = devices.speeds(10, np.random.default_rng(0))
    assert drawn is not None
    pairs = set(zip(drawn.samples.tolist(), drawn.bytes.tolist(), strict=True))
    assert pairs == {(50, 1e6), (200, 1e7)}


def test_what_the_table_says_is_its_version_and_not_how(write: Callable[[str], None]):
    versions = []
    for text in (
        TABLE,
        "\ufefflink,name,speed\r\n8.0,a,50\r\n80,b,2e2\r\n",
        TABLE.replace("8\n", "9\n", 1),
        "speed,link\n200,80\n50,8\n",
    ):
        write(text)
        versions.append(parse_devices("trace-phones").version())
    assert versions[0] == versions[1] and len(set(versions)) == 3


def test_another_table_is_another_run(write: Callable[[str], None]):
    """Its plan file is refused once the table has changed, until it is planned again."""
    axes = {"partition": ["iid"], "J": ["J4"], "strategy": ["fedavg"], "seed": [0]}
    settings = {"dataset": "digits", "model": "small-mlp", "clients": 10, "cohort": 3, "rounds": 5}
    settings |= {"batch": 16, "lr": 0.05, "client_devices": "trace-phones"}
    study = {"title": "A", "settings": settings, "experiments": {"main": {"axes": axes}}}
    Path("config/studies/study.yaml").write_text(yaml.safe_dump(study))
    digests = []
    for text in (TABLE, TABLE.replace("200", "100"), TABLE):
        write(text)
        (cell,) = load({"studies": "study"}).cells.values()
        write_plan(cell.planned())
        assert read_cell(plan_file(cell.digest)).digest == cell.digest
        digests.append(cell.digest)
    assert digests[0] == digests[2] != digests[1]
    with pytest.raises(UserError, match=r"client_devices 'trace-phones' are others by now"):
        read_cell(plan_file(digests[1]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speed,links\n1,2\n", "phones.csv: has no column 'link'"),
        ("", "phones.csv: has no column 'link'"),
        ("speed,link\n", "phones.csv: has no row below its head"),
        (
            "speed,link\n1,2\n3,0\n",
            ", line 3: speed and link are '3' and '0', but must be numbers above 0",
        ),
        (
            "speed,link\nfast,2\n",
            ", line 2: speed and link are 'fast' and '2', but must be numbers above 0",
        ),
        ("speed,link\n1\n", ", line 2: speed and link are '1' and '', but must be numbers above 0"),
    ],
)
def test_mistakes_in_a_table(write: Callable[[str], None], text: str, message: str):
    write(text)
    with pytest.raises(UserError) as error:
        parse_devices("trace-phones").version()
    assert str(error.value).endswith(message) and "\n" not in str(error.value)
