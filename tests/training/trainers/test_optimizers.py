"""PlainSGD takes the steps of PyTorch's SGD, but for rounding."""

from __future__ import annotations

import pytest
import torch

from cohort.training.trainers.serial import PlainSGD


@pytest.mark.parametrize("momentum", [0, 0.9])
@pytest.mark.parametrize("weight_decay", [0, 1e-3])
def test_plain_sgd_matches_pytorch(momentum: float, weight_decay: float):
    generator = torch.Generator().manual_seed(1)
    mine, theirs = (torch.nn.Linear(5, 3, dtype=torch.float64) for _ in range(2))
    theirs.load_state_dict(mine.state_dict())
    optimizers = (
        PlainSGD(mine.parameters(), 0.1, momentum, weight_decay),
        torch.optim.SGD(theirs.parameters(), 0.1, momentum, weight_decay=weight_decay),
    )
    for _ in range(5):
        inputs = torch.randn(7, 5, generator=generator, dtype=torch.float64)
        for model, optimizer in zip((mine, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
        torch.testing.assert_close(
            list(mine.parameters()), list(theirs.parameters()), rtol=1e-14, atol=1e-15
        )
