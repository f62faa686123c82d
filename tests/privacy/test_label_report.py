"""The distribution of the noise in reported label counts."""

import numpy as np
import pytest
from scipy import stats

from cohort.privacy import LabelReport

COUNTS = np.tile([0, 3, 500, 70_000], (1000, 1))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_noise_is_laplace_of_scale_one_over_epsilon(epsilon: float):
    reported = LabelReport(epsilon=epsilon).reported_counts(COUNTS, np.random.default_rng(0))
    noise = (reported - COUNTS).ravel()
    assert stats.kstest(noise, stats.laplace(scale=1 / epsilon).cdf).pvalue > 0.01
    assert stats.kstest(noise, stats.laplace(scale=1.2 / epsilon).cdf).pvalue < 1e-4, (
        "the test sees a wrong scale"
    )
