"""The distribution of Laplace noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cohort.privacy.laplace import add_laplace_noise

COUNTS = np.tile([0, 3, 500, 70_000], (1000, 1))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_noise_is_laplace_of_scale_one_over_epsilon(epsilon: float):
    noise = (add_laplace_noise(COUNTS, epsilon, np.random.default_rng(0)) - COUNTS).ravel()
    assert stats.kstest(noise, stats.laplace(scale=1 / epsilon).cdf).pvalue > 0.01
    assert stats.kstest(noise, stats.laplace(scale=1.2 / epsilon).cdf).pvalue < 1e-4, (
        "the test sees a wrong scale"
    )


def test_one_sample_more_changes_any_upload_by_a_factor_of_exp_epsilon_at_most():
    """The definition, on histograms of many draws for two neighboring counts."""
    epsilon, draws = 0.5, 400_000
    edges = np.arange(-6, 8, 1.0)
    rng = np.random.default_rng(2)
    with_it, without = (
        np.histogram(add_laplace_noise(np.full(draws, count), epsilon, rng), edges)[0]
        for count in (1, 0)
    )
    ratios = np.log(with_it / without)
    assert np.abs(ratios).max() < epsilon + 0.03  # three standard deviations of the thinnest bin
    assert np.abs(ratios).max() > epsilon - 0.03
