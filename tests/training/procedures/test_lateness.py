"""Over-selection and deadlines, by hand: whose updates count, how long a round is, what it costs."""

from collections.abc import Callable

import pytest
import torch

from cohort.core.errors import UserError
from cohort.selection.pools import PowD, Probe
from cohort.selection.simple import Random
from cohort.training.devices import DEVICES
from cohort.training.participation import parse_participation
from cohort.training.task import RunState
from tests.needs.by_hand import MODEL_BYTES, costs, played, task_by_hand
from tests.training.test_empty_clients import PlannedCohorts
from tests.training.test_timing import ByHand

# A step of 10 samples and a model in both directions. The last client has no samples: its model
# comes back untrained.
ARRIVALS = {0: 1 + 4, 1: 10 + 16, 2: 10 + 4, 3: 4}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunState]:
    monkeypatch.setitem(DEVICES.by_name, "by-hand", ByHand)

    def make(selector: Random | None = None, **settings: object) -> RunState:
        changes = {"client_devices": "by-hand", "rounds": 1} | settings
        return played(task_by_hand(selector or Random(), **changes))

    return make


@pytest.mark.parametrize(
    ("participation", "cohort", "arrive", "seconds"),
    [
        ("overselect-2", 2, {0, 3}, 5),
        ("overselect-1.3", 3, {0, 2, 3}, 14),
        ("overselect-4", 1, {3}, 4),
        ("deadline-20", 4, {0, 2, 3}, 20),
        ("deadline-14", 4, {0, 2, 3}, 14),
        ("deadline-26", 4, {0, 1, 2, 3}, 26),
        ("deadline-1000", 4, {0, 1, 2, 3}, 26),
        ("deadline-6.5", 4, {0, 3}, 6.5),
    ],
)
def test_the_late_cost_but_do_not_count(
    run: Callable[..., RunState], participation: str, cohort: int, arrive: set, seconds: float
):
    state = run(participation=participation, cohort=cohort)
    history = state.history
    assert set(history.cohorts[0]) == {0, 1, 2, 3}
    assert set(history.responders[0]) == arrive
    assert costs(state, "simulated_seconds") == [seconds]
    assert costs(state, "client_steps") == [3]  # a step of all but the one without samples
    assert costs(state, "bytes_down") == costs(state, "bytes_up") == [4 * MODEL_BYTES]
    # the model is the mean by size of those who arrive
    weights = {0: 4, 1: 2, 2: 3}
    alone = {
        client: run(PlannedCohorts(cohorts=((client,),)), cohort=1).weights["1.bias"]
        for client in weights
    }
    counted = sorted(arrive - {3})
    total = sum(weights[client] for client in counted)
    if counted:
        mean = sum(weights[client] / total * alone[client] for client in counted)
        torch.testing.assert_close(state.weights["1.bias"], mean)
    else:
        assert not state.weights["1.bias"].any()
    assert history.metrics.get("updates_used", [(1, 4)]) == [(1, len(counted))]


def test_where_nobody_is_in_time_the_server_waits_for_the_first(run: Callable[..., RunState]):
    """Of cohorts of one, those of the second client and of the third are too late."""
    state = run(participation="deadline-6", cohort=1, rounds=30)
    cohorts = [int(cohort[0]) for cohort in state.history.cohorts]
    assert set(cohorts) == {0, 1, 2, 3}
    assert costs(state, "simulated_seconds") == [ARRIVALS[client] for client in cohorts]
    assert "updates_used" not in state.history.metrics or all(
        cohorts[round - 1] == 3 for round, _ in state.history.metrics["updates_used"]
    )


def test_a_deadline_that_no_client_can_meet(run: Callable[..., RunState]):
    """The client without samples does not count."""
    with pytest.raises(
        UserError, match=r"'deadline-4\.5': nobody can meet it: the fastest .* 5 sec"
    ):
        run(participation="deadline-4.5")
    run(PowD(pool=4), participation="deadline-4.5", cohort=2)  # those asked have the model: 1 + 2


def test_pools_and_probes(run: Callable[..., RunState]):
    """Who was asked has the model: 5, 26, 14 and 4 seconds are 2, 8, 2 and 2 less. After a probe of
    one batch no step is left."""
    polled = run(PowD(pool=4), participation="overselect-2", cohort=2)
    assert set(polled.history.responders[0]) == {0, 3}
    probed = run(Probe(pool=4, batches=1), participation="overselect-1.3", cohort=3, J="J2")
    # the last two have equal times after the first: 2 + 1, 8 + 10, 2 + 10, 2
    assert set(probed.history.responders[0]) == {0, 2, 3}
    assert costs(probed, "client_steps") == [6]  # two each, one of them as a probe
    # of two epochs of 4, 2 and 3 samples the probe takes the place of the first, whatever it took
    options = {"cohort": 3, "J": "J2e", "batch": 1}
    probed = run(Probe(pool=4, batches=1), participation="overselect-1.3", **options)
    assert costs(probed, "client_steps") == [3 + 4 + 2 + 3]


def test_over_selection_chooses_a_multiple_but_no_more_than_there_are():
    cases = (1.3, 10, 100, 13), (1.3, 10, 12, 12), (1.1, 10, 100, 11), (1.25, 5, 100, 7)
    for factor, cohort, clients, chosen in cases:
        assert parse_participation(f"overselect-{factor}").invited(cohort, clients) == chosen
