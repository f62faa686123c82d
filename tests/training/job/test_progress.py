"""How a run describes its progress."""

from __future__ import annotations

from cohort.training.job.progress import progress_text
from cohort.training.state import RunState


def test_round_and_latest_evaluation():
    state = RunState(weights={}, server={}, selector={}, round=3)
    assert progress_text(state, 500) == "round 3/500  not evaluated yet"
    state.history.add_metrics(3, test_accuracy=0.25, test_loss=1.5)
    assert progress_text(state, 500) == "round 3/500  test accuracy 0.2500  loss 1.5000"
