"""FedProx: its formula, and the limits of mu."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from cohort.training.objectives import CrossEntropy, FedProx
from cohort.training.trainers.base import Trainer
from tests.training.small_task import run, small_task, train, trainer_of


def local_model(objective: CrossEntropy, **settings) -> tuple[dict, dict, Trainer]:
    """The global weights, client 1's local model after a round, and its trainer."""
    task = small_task(objective=objective, **settings)
    trainer = trainer_of(task)
    start = task.initial_weights()
    return start, train(trainer, start, [1]).client_weights(0), trainer


def test_two_steps_match_autograd_on_the_papers_loss():
    """Full batches of one client; the loss is written out here and differentiated."""
    mu, lr = 0.7, 0.3
    start, actual, trainer = local_model(FedProx(mu=mu), J="J2", batch=100, lr=lr)
    weights = {name: tensor.clone().requires_grad_() for name, tensor in start.items()}
    indices = torch.from_numpy(trainer.shards[1])
    for _ in range(2):
        outputs = torch.func.functional_call(
            trainer.model, weights, trainer.samples.inputs(indices)
        )
        loss = cross_entropy(outputs, trainer.samples.labels[indices])
        loss = loss + mu / 2 * sum(
            ((tensor - start[name]) ** 2).sum() for name, tensor in weights.items()
        )
        gradients = torch.autograd.grad(loss, list(weights.values()))
        pairs = zip(weights.items(), gradients, strict=True)
        weights = {
            name: (tensor - lr * gradient).detach().requires_grad_()
            for (name, tensor), gradient in pairs
        }
    for name, tensor in weights.items():
        torch.testing.assert_close(actual[name], tensor.detach(), rtol=1e-10, atol=1e-12)


def test_mu_zero_is_fedavg_bit_for_bit():
    _, plain, _ = local_model(CrossEntropy(), J="J5", lr=0.3)
    _, weights, _ = local_model(FedProx(mu=0.0), J="J5", lr=0.3)
    assert all(torch.equal(plain[name], weights[name]) for name in plain)


def test_a_large_mu_keeps_clients_at_the_global_weights():
    """At lr = 1 / mu each step ends within gradient / mu of the start."""
    start, weights, _ = local_model(FedProx(mu=1e6), J="J50", lr=1e-6)
    _, free, _ = local_model(CrossEntropy(), J="J50", lr=0.1)
    near, far = (
        max(float((model[name] - start[name]).abs().max()) for name in start)
        for model in (weights, free)
    )
    assert near < 1e-5
    assert far > 1e-2


@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_clients_stay_closer_than_with_fedavg(mu: float):
    start, weights, _ = local_model(FedProx(mu=mu), J="J30", lr=0.1)
    _, free, _ = local_model(CrossEntropy(), J="J30", lr=0.1)
    near, far = (
        sum(float((model[name] - start[name]).square().sum()) for name in start)
        for model in (weights, free)
    )
    assert 0 < near < far


def test_a_whole_run_learns():
    task = small_task(objective=FedProx(mu=0.01), rounds=30, J="J5", lr=0.1)
    state = run(task)
    losses = [loss for _, loss in state.history.metrics["train_loss"]]
    assert losses[-1] < losses[0] / 2
