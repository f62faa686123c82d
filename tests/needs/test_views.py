"""A selector sees what it declares, and nothing more."""

import numpy as np
import pytest

from tests.needs.by_hand import Spy, played, spying
from tests.training.small_task import small_task

CountsSpy = spying("label_counts")
LossSpy = spying("reserved_loss")


def watched(selector: Spy) -> Spy:
    """A selector after two rounds. Views never hold more than sizes and what it needs."""
    task = small_task(selector=selector, clients=4, cohort=2, rounds=2)
    played(task)
    assert len(selector.views) == 5
    for view in selector.views:
        assert (view.clients, view.cohort, view.rounds) == (4, 2, 2)
        assert dict(view.reports) == {}
        np.testing.assert_array_equal(view.sizes, [len(indices) for indices in task.shards.indices])
        if view.label_counts is not None:
            np.testing.assert_array_equal(view.label_counts, task.shards.label_counts)
    return selector


def test_label_counts_are_shown_to_selectors_that_need_them():
    assert all(view.label_counts is not None for view in watched(CountsSpy()).views)


@pytest.mark.parametrize("cls", [Spy, LossSpy])
def test_label_counts_are_hidden_from_all_others(cls: type[Spy]):
    assert all(view.label_counts is None for view in watched(cls()).views)
