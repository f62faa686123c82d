"""A config folder whose one study a test writes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cohort.plan import Plan, Study, load

SETTINGS = {
    "dataset": "digits",
    "model": "small-mlp",
    "clients": 10,
    "cohort": 3,
    "rounds": 100,
    "batch": 16,
    "lr": 0.05,
    "reserve": 60,
}
FIXED = {"partition": ["iid"], "J": ["J4"], "strategy": ["fedavg"], "seed": [0]}


@pytest.fixture
def plan_of(project: Path) -> Callable[..., Plan]:
    """Plan a study with one experiment `main`, given the parts of its block and of the study."""

    def make(block: dict[str, Any], *, config: dict[str, Any] | None = None, **study: Any) -> Plan:
        block = block | {"axes": FIXED | block.get("axes", {})}
        content = {"title": "A study", "settings": SETTINGS, "experiments": {"main": block}} | study
        Path("config/studies/study.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        return load({"studies": "study"} | (config or {}))

    return make


def digests(study: Study, *experiments: str) -> set[str]:
    """The cells of some experiments of a study."""
    return {row.digest for name in experiments for row in study.experiments[name].rows}
