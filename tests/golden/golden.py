"""golden.json: the numbers of every component and the science version that they belong to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cohort.core.files import write_text
from tests.golden.computations import KEYS, Number, component, numbers_of

FILE = Path(__file__).with_name("golden.json")
COMMAND = "`pytest tests/golden --record`"
TOLERANCE = 1e-9

Golden = Mapping[str, Mapping[str, Any]]


def read() -> dict[str, dict[str, Any]]:
    """Read the recorded golden runs, by component."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def complaint(key: str, golden: Golden) -> str | None:
    """Say how a component's run differs from its golden run; None if it does not."""
    science = component(key).science
    if key not in golden:
        return f"{key} has no golden run; record it with {COMMAND}"
    if golden[key]["science"] != science:
        recorded = f"its golden run is of science {golden[key]['science']}"
        return f"{key} is at science {science} but {recorded}; record it with {COMMAND}"
    if not same_numbers(numbers_of(key), golden[key]["numbers"]):
        moved = f"the numbers of {key} moved without a new science version"
        return f"{moved}; bump its `science` or undo the change"
    return None


def same_numbers(actual: list[Number], recorded: list[Number]) -> bool:
    """Whole numbers and texts agree exactly, others to nine digits."""
    return len(actual) == len(recorded) and all(map(_same_number, actual, recorded))


def _same_number(actual: Number, recorded: Number) -> bool:
    if isinstance(actual, float) and isinstance(recorded, float):
        return math.isclose(actual, recorded, rel_tol=TOLERANCE, abs_tol=0) or actual == recorded
    return type(actual) is type(recorded) and actual == recorded


def record() -> None:
    """Record golden runs that are missing or of another science version, and remove those of
    components that no longer exist. Numbers that moved are not recorded: that takes a new science
    version, which also trains the cells again."""
    entries, golden = {}, read()
    for key in KEYS:
        science = component(key).science
        entries[key] = golden.get(key, {})
        if entries[key].get("science") != science:
            entries[key] = {"science": science, "numbers": numbers_of(key)}
    lines = [f" {json.dumps(key)}: {json.dumps(entries[key])}" for key in sorted(entries)]
    write_text(FILE, "{\n" + ",\n".join(lines) + "\n}\n")
