"""The contract of objectives and augmentations. It is looked at in every step, which neither takes
time nor waits for a GPU: shapes and versions of tensors are known to Python."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from cohort.data.augmentations import Augmentation
from cohort.training.contract.mistakes import WrongAnswer
from cohort.training.objectives import Objective

IN_PLACE = "what a component is given is read-only: work on a copy (tensor.clone())"


def losses_of(
    objective: Objective, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor
) -> Tensor:
    """The objective's loss of each sample of a batch; WrongAnswer if it has another form."""
    versions = targets._version, statistics._version
    losses: Any = objective.losses(outputs, targets, statistics, bias)
    if not isinstance(losses, Tensor) or losses.shape != targets.shape:
        raise WrongAnswer(
            f"objective '{objective.name}': losses returned {_form(losses)}, "
            f"not one loss for each of {len(targets)} samples"
        )
    if (targets._version, statistics._version) != versions:
        raise WrongAnswer(
            f"objective '{objective.name}': losses changed its targets or statistics; {IN_PLACE}"
        )
    return losses


def augmented(augmentation: Augmentation, images: Tensor, numbers: Tensor) -> Tensor:
    """Apply an augmentation to images; WrongAnswer unless they keep their shape."""
    version = images._version
    changed: Any = augmentation.apply(images, numbers)
    if not isinstance(changed, Tensor) or changed.shape != images.shape:
        raise WrongAnswer(
            f"augmentation '{augmentation.name}': apply returned {_form(changed)}, "
            f"not images of shape {tuple(images.shape)}"
        )
    if images._version != version:
        raise WrongAnswer(
            f"augmentation '{augmentation.name}': apply changed its images; {IN_PLACE}"
        )
    return changed


def _form(answer: Any) -> str:
    if isinstance(answer, Tensor):
        return f"a tensor of shape {tuple(answer.shape)}"
    return f"{answer!r:.80}"
