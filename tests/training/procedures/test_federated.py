"""Settings that federated runs refuse when they are planned."""

from __future__ import annotations

from typing import Any

import pytest

from cohort.selection.pools import Probe
from cohort.training.procedures.procedure import Federated
from cohort.training.servers import SERVERS
from tests.training.small_task import small_cell


@pytest.mark.parametrize("server", ["fednova", "scaffold"])
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"optimizer": "adam"}, "assumes steps of SGD, but optimizer is 'adam'"),
        (
            {"selector": Probe()},
            "assumes steps at once, but the selector 'probe' probes",
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
