"""FedRS and FedLC: numbers by hand, and the cases in which they equal cross-entropy."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from cohort.training.objectives import CrossEntropy, FedLC, FedRS, Objective
from tests.training.small_task import run, small_task

LABELS = torch.tensor([0, 0, 1, 0, 1, 1, 1])  # three of class 0, four of class 1, none of class 2
INPUTS = torch.tensor([[1.0, 2.0], [-1.0, 0.5]], dtype=torch.float64)
TARGETS = torch.tensor([0, 1])


def output_layer() -> nn.Linear:
    layer = nn.Linear(2, 3).double()
    layer.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]], dtype=torch.float64)
    layer.bias.data = torch.tensor([0.1, -0.2, 0.3], dtype=torch.float64)
    return layer


def loss_of(objective: Objective, model: nn.Linear, labels: Tensor = LABELS) -> Tensor:
    """The loss as a trainer computes it."""
    statistics = objective.label_statistics(labels.bincount(minlength=3).double())
    return objective.losses(model(INPUTS), TARGETS, statistics, model.bias).mean()


def loss_by_hand(logits: list[list[float]]) -> float:
    """The mean of log-sum-exp minus the logit of the true class."""
    rows = zip(logits, TARGETS.tolist(), strict=True)
    return sum(math.log(sum(map(math.exp, row))) - row[target] for row, target in rows) / len(
        logits
    )


def test_fedrs_by_hand():
    """Outputs without bias are [1, 2, 0] and [-1, .5, -2.5]. Those of the missing class 2 are
    halved, its bias is not."""
    losses = loss_of(FedRS(alpha=0.5), output_layer())
    assert losses.item() == pytest.approx(
        loss_by_hand([[1.1, 1.8, 0.3], [-0.9, 0.3, -0.95]]), abs=1e-12
    )


def test_fedrs_moves_the_weights_of_a_missing_class_less():
    gradients = []
    for alpha in (0.0, 0.5, 1.0):
        model = output_layer()
        loss_of(FedRS(alpha=alpha), model).backward()
        gradients.append(model.weight.grad[2].norm().item())
    assert gradients[0] == 0 < gradients[1] < gradients[2]


def test_fedlc_by_hand():
    """Margins are 3^-1/4 and 4^-1/4; the logit of the missing class drops by 100."""
    losses = loss_of(FedLC(), output_layer())
    rows = [
        [1.1 - 3**-0.25, 1.8 - 4**-0.25, 0.3 - 100],
        [-0.9 - 3**-0.25, 0.3 - 4**-0.25, -2.2 - 100],
    ]
    assert losses.item() == pytest.approx(loss_by_hand(rows), abs=1e-12)


@pytest.mark.parametrize("objective", [FedRS(alpha=0.2), FedLC(tau=1.0), FedLC(tau=0.0)])
def test_with_balanced_classes_the_loss_is_cross_entropy(objective: Objective):
    """FedRS restricts nothing; FedLC shifts all logits equally, which softmax ignores."""
    model = output_layer()
    loss = loss_of(objective, model, torch.tensor([0, 1, 2, 0, 1, 2]))
    assert loss.item() == pytest.approx(cross_entropy(model(INPUTS), TARGETS).item(), abs=1e-12)


def after_two_rounds(objective: Objective) -> dict[str, Tensor]:
    return run(small_task(objective=objective, rounds=2, J="J2e")).weights


def test_a_run_uses_each_clients_own_label_counts():
    plain = after_two_rounds(CrossEntropy())
    for objective in (FedRS(alpha=0.5), FedLC()):
        assert any(
            (tensor != plain[name]).any() for name, tensor in after_two_rounds(objective).items()
        )
    for name, tensor in after_two_rounds(FedRS(alpha=1.0)).items():
        torch.testing.assert_close(tensor, plain[name], rtol=1e-12, atol=1e-14)
