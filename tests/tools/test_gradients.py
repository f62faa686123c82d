"""Bias and variance of gradients, against the textbook formulas of sampling without replacement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from cohort.training.procedures.stratified.label_schedule import ClientData
from tests.training.small_task import plain_samples, random_samples, small_model
from tools import gradients
from tools.gradients import Population, estimate_errors, measure_draws, plot, summary

LABELS = np.repeat([0, 1], 20)
VALUES = torch.from_numpy(np.concatenate([np.arange(20.0), 100 + 3 * np.arange(20.0)]))
"""The loss of a sample is w times its value, so its gradient is its value."""
BATCH = 4


def data_of(samples: list[np.ndarray]) -> ClientData:
    counts = [np.bincount(LABELS[own], minlength=2) for own in samples]
    return ClientData(samples, LABELS, np.stack(counts, axis=1))


def bias_and_variance(
    draw: gradients.Draw, data: ClientData, draws: int, values: torch.Tensor = VALUES
) -> tuple[float, float]:
    """Squared bias and variance of the mean of a batch."""
    truth = values.mean()[None]
    result = estimate_errors(
        lambda chosen: values[chosen].mean()[None],
        lambda rng: draw(data, BATCH, rng),
        truth,
        draws,
    )
    return result.squared_bias * truth.item() ** 2, result.variance * truth.item() ** 2


def spread(values: torch.Tensor) -> float:
    """S squared: the variance with N - 1 in the denominator."""
    return values.var().item()


SIMPLE = (1 - 4 / 40) * spread(VALUES) / 4
WITHIN = (1 - 2 / 20) / 2 * (spread(VALUES[:20]) + spread(VALUES[20:])) / 4
"""A batch of two samples of each label: the squared shares of labels, 1/4, times the variance of
their means."""
BY_LABEL = data_of([np.arange(20), np.arange(20, 40)])
UNEQUAL = data_of([np.arange(10), np.arange(10, 40)])


@pytest.mark.parametrize(
    ("draw", "variance"),
    [(gradients.draw_simple_random, SIMPLE), (gradients.draw_equal_shares, WITHIN)],
)
def test_variances_of_the_textbook(draw: gradients.Draw, variance: float):
    bias, spread = bias_and_variance(draw, BY_LABEL, 4000)
    assert spread == pytest.approx(variance, rel=0.1)
    assert abs(bias) < 10 * variance / 4000


def test_the_schedule_with_one_holder_of_each_label_is_simple_random_sampling():
    """A shuffled schedule with as many labels as samples, and any sample of a label: every set of
    four samples is as likely."""
    bias, variance = bias_and_variance(gradients.draw_scheduled, BY_LABEL, 1500)
    assert variance == pytest.approx(SIMPLE, rel=0.12)
    assert abs(bias) < 10 * SIMPLE / 1500


def test_the_schedule_prefers_samples_of_small_holders():
    """Samples of label 0 have the value 10. Of label 1 the first client holds five of value 7, the
    second fifteen of value 11: their mean is 10. In a first batch each client is asked as often, so
    its mean is 9 for label 1, and 9.5 for both."""
    data = data_of([np.arange(25), np.arange(25, 40)])
    values = torch.tensor([10.0] * 20 + [7.0] * 5 + [11.0] * 15).double()
    bias, _ = bias_and_variance(gradients.draw_scheduled, data, 1500, values)
    assert bias == pytest.approx(0.5**2, rel=0.2)


def test_batches_of_one_client():
    """Four of ten or four of thirty samples, each client as often: the mean of the clients' means,
    and a variance within clients and between them."""
    first, second = VALUES[:10], VALUES[10:]
    bias, variance = bias_and_variance(gradients.draw_from_one_client, UNEQUAL, 4000)
    means = first.mean().item(), second.mean().item()
    assert bias == pytest.approx((np.mean(means) - VALUES.mean().item()) ** 2, rel=0.1)
    within = ((1 - 4 / 10) * spread(first) / 4 + (1 - 4 / 30) * spread(second) / 4) / 2
    assert variance == pytest.approx(within + np.var(means), rel=0.1)


def test_gradient_of_a_linear_model_by_hand():
    """Weights of zero give each of two classes half: the gradient is the mean of (1/2 - target)
    times the input."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(1, 2)).double()
    for weight in network.parameters():
        nn.init.zeros_(weight)
    inputs = torch.tensor([3.0, 5.0, 7.0]).double().view(3, 1, 1, 1)
    population = Population(network, plain_samples(inputs, torch.tensor([0, 1, 1])))
    expected = torch.tensor([(-3 + 5) / 4, (3 - 5) / 4, 0, 0]).double()
    torch.testing.assert_close(population.gradient(np.array([0, 1])), expected)
    whole = torch.tensor([(-3 + 5 + 7) / 6, (3 - 5 - 7) / 6, 1 / 6, -1 / 6]).double()
    torch.testing.assert_close(population.truth(), whole)


def test_all_ways_are_measured_before_and_after_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A batch of all samples has neither bias nor variance."""
    samples = random_samples(60, 2)
    samples.labels[:] = torch.arange(60) % 3
    monkeypatch.setattr(gradients, "CLIENTS", 3)
    monkeypatch.setattr(gradients, "PARTITIONS", {"covering-1": "#C=1"})
    monkeypatch.setattr(gradients, "BATCH", 60)
    model = small_model()
    before = [weight.detach().clone() for weight in model.parameters()]
    measurements = measure_draws(Population(model, samples), draws=5, steps=2)
    after = list(model.parameters())
    assert not any(map(torch.equal, before, after))
    assert measurements["steps"].tolist() == [0] * 4 + [2] * 4
    whole = measurements[measurements["batch"] != "one client, #C=1"]
    assert whole[["squared_bias", "variance"]].abs().to_numpy().max() < 1e-20
    one_client = measurements[measurements["batch"] == "one client, #C=1"]
    assert (one_client["variance"] > 0.1).all()
    plot(measurements.assign(variance=1.0, squared_bias=0.1), tmp_path / "variance.png")
    assert (tmp_path / "variance.png").stat().st_size > 1000
    assert "| one client, #C=1 " in summary(measurements)
