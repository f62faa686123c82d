"""A stack of several cells' clients trains each cell as if it were alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cohort.training.ledger import Cursor
from cohort.training.objectives import CrossEntropy, FedLC, FedProx, FedRS, Objective
from cohort.training.trainers.stacked import Part, Stack, StackedTrainer
from cohort.training.trainers.trainer import Trained
from tests.training.small_task import small_task
from tests.training.trainers.test_same_steps import network, normalized, photos

COMMON: dict[str, Any] = {"J": "J2e", "batch": 4, "momentum": 0.9, "clip": 0.5, "weight_decay": 0.1}
SAMPLES = photos()
CELLS: list[tuple[Objective, dict[str, Any]]] = [
    (FedProx(mu=0.3), {"seed": 1}),
    (CrossEntropy(), {"lr": 0.3}),
    (FedRS(alpha=0.5), {"sizes": (1, 9, 5)}),
    (FedLC(tau=0.7), {"seed": 4, "sizes": (13, 16, 4, 8, 4)}),
    (FedProx(mu=5.0), {"seed": 5, "lr": 0.01}),
]


def part_of(objective: Objective, changes: dict[str, Any], **common: Any) -> Part:
    """A part of a stack whose clients have other samples of the same set, and corrections."""
    task = small_task(objective=objective, train=SAMPLES, **COMMON | common | changes)
    trainer = StackedTrainer(task)
    works = trainer.full_work(task.initial_weights(), range(len(task.shards.indices)), 3)
    works[0] = replace(works[0], end=1, correction=task.initial_weights)
    weights = {name: tensor + 0.1 for name, tensor in task.initial_weights().items()}
    works[1] = replace(works[1], weights=weights, begin=1)
    return Part(trainer, works, weights, Cursor())


def equal(first: Trained, second: Trained) -> bool:
    """Whether weights, losses and numbers of steps are equal to the bit."""
    names = first[0].keys() | second[0].keys()
    matches = [torch.equal(first[0][name], second[0][name]) for name in names]
    return all(matches) and torch.equal(first[1], second[1]) and first[2] == second[2]


@pytest.mark.parametrize(
    ("model", "augmentation"),
    [(network, "none"), (network, "crop-flip"), (normalized, "none")],
)
def test_cells_do_not_depend_on_who_else_is_in_their_stack(
    model: Callable[[], nn.Module], augmentation: str
):
    """To the bit: objectives, learning rates, seeds, clients and samples differ from cell to cell,
    and clients begin from weights, and with steps and corrections, of their own."""
    common = {"model": model(), "augmentation": augmentation}
    parts = [part_of(*cell, **common) for cell in CELLS]
    alone = [part.trainer.train_part(part) for part in parts]
    stack = Stack(parts)
    for chosen in ([0, 1, 2, 3, 4], [2, 4], [3]):
        assert stack.fits([parts[number] for number in chosen])
        together = stack.train([parts[number] for number in chosen])
        assert all(map(equal, together, [alone[number] for number in chosen])), chosen


class OnlyCellOne(CrossEntropy):
    """An objective that is infinite, as are its gradients, without the large bias of its cell."""

    def logits(self, outputs: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return outputs * (bias[0] - bias[1]).abs() ** -0.5


def test_a_cell_with_infinite_losses_harms_none():
    model = network()
    parts = [part_of(*cell, model=model) for cell in (CELLS[0], (OnlyCellOne(), {}), CELLS[3])]
    for work in parts[1].works:
        work.weights["7.bias"][:] = 0
    alone = [part.trainer.train_part(part) for part in parts]
    together = Stack(parts).train(parts)
    assert together[1][1].isnan().all()
    assert equal(together[0], alone[0]) and equal(together[2], alone[2])
