"""Settings that federated runs refuse when they are planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.selection.pools import Probe
from cohort.training.procedures.federated import Federated
from cohort.training.servers import SERVERS
from tests.training.procedures.test_concat import planned
from tests.training.small_task import small_cell


@pytest.mark.parametrize("server", ["fednova", "scaffold"])
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"optimizer": "adam"}, "assumes clients that take steps of SGD, but optimizer is 'adam'"),
        (
            {"selector": Probe()},
            "assumes clients that take all their steps at once, but the selector 'probe' probes",
        ),
    ],
)
def test_rules_that_read_gradients_off_updates_refuse_adam_and_probes(
    server: str, changes: dict[str, Any], sentence: str
):
    with pytest.raises(ValueError, match=f"with the server rule '{server}' {sentence}") as caught:
        Federated().check(small_cell(server=SERVERS[server](), **changes))
    assert "\n" not in str(caught.value)
    Federated().check(small_cell(server=SERVERS[server]()))
    for other in ("average", "momentum"):
        Federated().check(small_cell(server=SERVERS[other](), **changes))


def test_a_schedule_is_refused():
    with pytest.raises(ValueError, match="follows lr_decay, not the schedule 'cosine'"):
        Federated().check(small_cell(schedule="cosine"))


@pytest.mark.parametrize("strategy", ["fednova", "scaffold"])
def test_adam_is_refused_when_a_study_is_planned(strategy: str, project: Path):
    with pytest.raises(UserError, match="assumes clients that take steps of SGD") as caught:
        planned(project, strategy=strategy, optimizer="adam")
    assert "\n" not in str(caught.value)
    assert len(planned(project, strategy=strategy).cells) == 1


@pytest.mark.parametrize("rule", ["fednova", "scaffold"])
def test_probes_are_refused_when_a_study_is_planned(rule: str, project: Path):
    with (project / "config/strategies.yaml").open("a") as file:
        file.write(f"\nprobed: {{title: P, selector: {{name: probe}}, server: {{name: {rule}}}}}\n")
    with pytest.raises(UserError, match="the selector 'probe' probes them first") as caught:
        planned(project, strategy="probed")
    assert "\n" not in str(caught.value)
