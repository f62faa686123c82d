"""Objectives: the loss that each client minimizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from cohort.core.components import SHARE, Catalog, Component, parameter
from cohort.core.lazy import lazy

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = lazy("torch")


class Coefficients(NamedTuple):
    """An objective in closed form, for native code: the cross-entropy of the logits
    `scale * (output - bias) + bias + shift` (by class; None: a scale of 1, a shift of 0), plus
    `mu / 2` times the squared distance of the parameters to the global ones."""

    scale: Tensor | None = None
    shift: Tensor | None = None
    mu: float = 0.0


class Objective(Component):
    """The local loss of a client: the mean loss of a batch's samples, plus a proximal term if
    `is_proximal`. Its methods handle one client, in tensor operations without control flow on
    values, so that a trainer can apply `vmap` over clients."""

    is_proximal: ClassVar[bool] = False
    """Whether `proximal_term` is added to the loss."""

    def label_statistics(self, counts: Tensor) -> Tensor:
        """One number per class that the loss needs of a client, from the client's label counts."""
        return counts

    def losses(self, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        """The loss of each sample of a batch, given the model's outputs, the client's
        `label_statistics` and the bias of the output layer."""
        raise NotImplementedError

    def proximal_term(self, parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
        """The penalty for the distance of the parameters to the global ones (`start`)."""
        raise NotImplementedError

    def coefficients(self, statistics: Tensor) -> Coefficients | None:
        """The logit scale, logit shift and proximal weight that define this loss, None if it is of
        another form, without native code. A subclass that changes the loss must override this."""
        return None


def native_coefficients(objective: Objective, label_statistics: Tensor) -> Coefficients | None:
    """The coefficients by which native code computes a client's loss, given its label statistics;
    None if the objective has none, or if a subclass has changed the loss without giving its own."""
    for kind in type(objective).__mro__:
        if "coefficients" in vars(kind):
            return objective.coefficients(label_statistics)
        if {"label_statistics", "losses", "logits", "proximal_term"} & vars(kind).keys():
            return None
    raise AssertionError(f"{objective} is not an objective")


def output_bias(model: nn.Module) -> Tensor:
    """The bias of the output layer, which is the last parameter of every model."""
    *_, bias = model.parameters()
    return bias


class CrossEntropy(Objective):
    """Softmax cross-entropy."""

    name: ClassVar[str] = "cross-entropy"

    def losses(self, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        logits = self.logits(outputs, statistics, bias)
        return torch.nn.functional.cross_entropy(logits, targets, reduction="none")

    def logits(self, outputs: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        """The inputs of the softmax, calculated from the outputs of the model."""
        return outputs

    def coefficients(self, statistics: Tensor) -> Coefficients | None:
        return Coefficients()


MISSING = 1e-8  # the count of a missing class: lowers its logit by 100, out of the softmax


@dataclass(frozen=True, kw_only=True)
class FedLC(CrossEntropy):
    """Cross-entropy of calibrated logits: tau * n^(-1/4) is subtracted, where n is how many samples
    of the class the client holds. The paper's sum leaves out the true class, all code keeps it."""

    name: ClassVar[str] = "fedlc"
    tau: float = parameter(1.0, minimum=0, help="strength of the calibration")

    def label_statistics(self, counts: Tensor) -> Tensor:
        return self.tau * counts.clamp(min=MISSING) ** -0.25

    def logits(self, outputs: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return outputs - statistics

    def coefficients(self, statistics: Tensor) -> Coefficients | None:
        return Coefficients(shift=-statistics)


@dataclass(frozen=True, kw_only=True)
class FedProx(CrossEntropy):
    """Cross-entropy plus mu / 2 times the squared distance of the parameters to the global ones."""

    name = "fedprox"
    is_proximal = True
    mu: float = parameter(0.01, minimum=0, help="weight of the proximal term")

    def proximal_term(self, parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
        squares = [((now - then) ** 2).sum() for now, then in zip(parameters, start, strict=True)]
        return self.mu / 2 * torch.stack(squares).sum()

    def coefficients(self, statistics: Tensor) -> Coefficients | None:
        return Coefficients(mu=self.mu)


@dataclass(frozen=True, kw_only=True)
class FedRS(CrossEntropy):
    """Cross-entropy of a restricted softmax: the logit of a class that the client does not hold,
    without its bias, is multiplied by alpha. This is the paper's form; its authors' code scales
    each class smoothly by its share, and has no bias."""

    name: ClassVar[str] = "fedrs"
    alpha: float = parameter(0.5, **SHARE, help="factor of the logit of a missing class")

    def label_statistics(self, counts: Tensor) -> Tensor:
        return (counts == 0).to(counts.dtype)

    def logits(self, outputs: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return outputs.where(statistics == 0, self.alpha * (outputs - bias) + bias)

    def coefficients(self, statistics: Tensor) -> Coefficients | None:
        return Coefficients(scale=1 - (1 - self.alpha) * statistics)


OBJECTIVES = Catalog("cohort.training.objectives", Objective, (CrossEntropy, FedLC, FedProx, FedRS))
