"""Masked labels as a procedure: what it measures, sends and checks."""

import importlib.util

import numpy as np
import pytest
import torch

from cohort.core.errors import UserError
from cohort.privacy.masked_labels import Server
from cohort.training.procedures import parse_procedure
from tests.privacy.test_masked_labels import comparisons
from tests.training.small_task import run, small_task

MASKED = {"procedure": "masked-labels", "rounds": 1}


def test_metrics_costs_and_weights():
    task = small_task(**MASKED)
    counts = task.shards.label_counts
    state = run(task)
    history, pairs = state.history, np.count_nonzero(counts)
    assert history.metrics["comparisons"] == [(1, comparisons(counts))]
    declared = set(task.procedure.metrics)
    assert set(history.metrics) == declared  # and no accuracy of a network that nobody trained
    times = [history.last(name) for name in declared if name.startswith("seconds")]
    assert min(times) > 0 and sum(times) < history.cost["seconds"][0][1]
    assert history.traffic["labels"][0] / pairs == pytest.approx(331_000, rel=0.01)
    assert history.traffic["placeholders"].tolist() == [0, 4 * pairs, 0]
    assert history.cost["bytes_up"] == [(1, sum(sizes[0] for sizes in history.traffic.values()))]
    assert history.cohorts[0].tolist() == [0, 1, 2, 3]
    for name, weight in task.initial_weights().items():
        assert torch.equal(state.weights[name], weight)


def test_counts_that_are_not_exact_fail_loudly(monkeypatch: pytest.MonkeyPatch):
    honest = Server.sum
    monkeypatch.setattr(Server, "sum", lambda self, counts: honest(self, counts * 2))
    with pytest.raises(UserError, match="the decrypted label counts differ"):
        run(small_task(**MASKED))


def test_a_job_without_tenseal_says_so(monkeypatch: pytest.MonkeyPatch):
    """A cluster's node may lack what the planning machine has."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    task = small_task(**MASKED)
    with pytest.raises(UserError, match="needs a package: pip install tenseal"):
        task.procedure.begin(task)
    assert parse_procedure("federated").missing_package() == ""
