"""Laplace noise: its distribution, and OpenDP's."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import stats

from cohort.core.errors import UserError
from cohort.privacy.laplace import laplace, opendp_laplace

COUNTS = np.tile([0, 3, 500, 70_000], (1000, 1))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_noise_is_laplace_of_scale_one_over_epsilon(epsilon: float):
    noise = (laplace(COUNTS, epsilon, np.random.default_rng(0)) - COUNTS).ravel()
    assert stats.kstest(noise, stats.laplace(scale=1 / epsilon).cdf).pvalue > 0.01
    assert stats.kstest(noise, stats.laplace(scale=1.2 / epsilon).cdf).pvalue < 1e-4, (
        "the test sees a wrong scale"
    )


def test_opendp_draws_from_the_same_distribution():
    """OpenDP's noise has no seed; with this bound one run in 100,000 fails by chance."""
    mine = (laplace(COUNTS, 0.5, np.random.default_rng(1)) - COUNTS).ravel()
    theirs = (opendp_laplace(COUNTS, 0.5) - COUNTS).ravel()
    assert stats.ks_2samp(mine, theirs).pvalue > 1e-5
    assert (opendp_laplace(COUNTS[:5], 0.5) != opendp_laplace(COUNTS[:5], 0.5)).all()


def test_one_sample_more_changes_any_upload_by_a_factor_of_exp_epsilon_at_most():
    """The definition, on histograms of many draws for two neighboring counts."""
    epsilon, draws = 0.5, 400_000
    edges = np.arange(-6, 8, 1.0)
    rng = np.random.default_rng(2)
    with_it, without = (
        np.histogram(laplace(np.full(draws, count), epsilon, rng), edges)[0] for count in (1, 0)
    )
    ratios = np.log(with_it / without)
    assert np.abs(ratios).max() < epsilon + 0.03  # three standard deviations of the thinnest bin
    assert np.abs(ratios).max() > epsilon - 0.03


def test_without_opendp_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(UserError, match="pip install opendp"):
        opendp_laplace(COUNTS, 1.0)
