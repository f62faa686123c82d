"""Needs: the information beyond updates that selectors may require, and what it costs to send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np

from cohort.core.components import Catalog, Component
from cohort.core.errors import UserError, check_allowed
from cohort.core.metric import NAME

if TYPE_CHECKING:
    from torch import Tensor, nn


class ModelResults(Protocol):
    """The results of one model on one set of samples. A number is computed when it is first asked
    for, and its samples are then counted in the round's ledger."""

    @property
    def loss(self) -> float:
        """The mean cross-entropy; NaN without samples."""

    @property
    def accuracy(self) -> float:
        """The share of samples that are classified correctly, from 0 to 1; NaN without samples."""

    @property
    def rms_loss(self) -> float:
        """The root mean square of the samples' cross-entropies; NaN without samples."""

    @property
    def softmax(self) -> np.ndarray:
        """The softmax outputs (sample, class) in float64."""

    @property
    def mean_softmax(self) -> np.ndarray:
        """The mean softmax output (class) in float64; NaN without samples."""

    @property
    def labels(self) -> np.ndarray:
        """The true class of each sample (sample)."""

    @property
    def inputs(self) -> Tensor:
        """The network's inputs (sample, ...), for measures not offered here."""

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """The weights of the model."""


class EvaluationContext(Protocol):
    """What a need can measure with: results of the global model (before a choice) or of local ones
    (after training), for each of `clients`. Needs without a `measure` are methods of it."""

    @property
    def clients(self) -> np.ndarray:
        """The clients of whom the need is gathered, in the order of the rows to return."""

    @property
    def network(self) -> nn.Module:
        """The module that computes with any of the weights here."""

    def global_on_own(self) -> Iterable[ModelResults]:
        """Results of the global model on each client's training samples."""

    def global_on_batch(self) -> Iterable[ModelResults]:
        """The global model on a random batch of each client's own samples, as large as a step's."""

    def updates(self) -> Mapping[str, np.ndarray]:
        """Each trainable parameter's change in local training, by name: (client, *parameter)."""

    def local_on_own(self) -> Iterable[ModelResults]:
        """Results of local models on their clients' training samples."""

    def local_on_last_batch(self) -> Iterable[ModelResults]:
        """Each local model on the batch of its client's last local step, empty without a step."""

    def local_on_reserved(self) -> Iterable[ModelResults]:
        """Results of each local model on the reserved test samples."""


class Need(Component):
    """Information that a selector requires, how to measure it, and what it costs to send.

    `gathered` says when and from whom: `once` from all clients before the first round; `before`
    choosing each cohort, from the pool, which receives the global model; `after` training, from the
    clients of the cohort that answered.
    """

    gathered: ClassVar[Literal["once", "before", "after"]]
    numbers: ClassVar[int | Literal["classes"]] = 0
    """How many 32-bit numbers a client sends for it: none, so many, or one for each class."""
    reserved: ClassVar[bool] = False
    """Whether it evaluates models on reserved test samples, which requires a `reserve`."""
    evaluates: ClassVar[bool] = True
    """Whether it evaluates a model before or after training, which takes time."""

    row: ClassVar[tuple[str, str] | None] = None
    """A method of the context and the part of its results that is measured, unless `measure` says
    otherwise: `("global_on_own", "loss")` is the loss of the global model on each one's samples."""

    def upload(self, classes: int) -> int:
        """The size in bytes of what one client sends for this need."""
        return 4 * (classes if self.numbers == "classes" else self.numbers)

    def measure(self, context: EvaluationContext) -> np.ndarray:
        """Measure the need: one row for each of the context's clients. By default the values are
        those of `row`, or of the context's method with the need's name."""
        if self.row is None:
            return getattr(context, self.name)()
        method, part = self.row
        return np.array([getattr(results, part) for results in getattr(context, method)()])


class LabelCounts(Need):
    """Every client reports its label counts before the first round, as 32-bit numbers."""

    name, gathered, numbers = "label_counts", "once", "classes"


class Overlap(Need):
    """The server knows from the start which clients overlap with others (1) and which do not (0).
    Nothing is sent: it could not find out by asking, but PECO's baseline assumes that it knows."""

    name, gathered = "overlap", "once"


class SamplesPerRound(Need):
    """The server knows how many samples each client holds, and how many of them its local steps
    take in a round with all of its work."""

    name, gathered = "samples_per_round", "once"


class ExpectedDuration(Need):
    """The server knows each client's device and link, and so the simulated seconds of a round with
    all of J; 0 if the run simulates no time."""

    name, gathered = "expected_duration", "once"


class TransferTime(Need):
    """The server knows each client's link, and so the simulated seconds in which it receives or
    sends the model once; 0 if the run simulates no time."""

    name, gathered = "transfer_time", "once"


class CandidateLoss(Need):
    """Each client of the pool sends the global model's mean loss on its own training samples."""

    name, gathered, numbers = "candidate_loss", "before", 1
    row = "global_on_own", "loss"


class CandidateAccuracy(Need):
    """Each client of the pool receives the global model, evaluates it on its own training samples
    and sends the accuracy, from 0 to 1; NaN for a client without samples."""

    name, gathered, numbers = "candidate_accuracy", "before", 1
    row = "global_on_own", "accuracy"


class CandidateBatchLoss(Need):
    """Each client of the pool receives the global model, evaluates it on a random batch of its own
    training samples and sends the mean loss."""

    name, gathered, numbers = "candidate_batch_loss", "before", 1
    row = "global_on_batch", "loss"


class TrainingLoss(Need):
    """After training, each client sends the mean loss of its local steps; nothing is evaluated."""

    name, gathered, numbers, evaluates = "training_loss", "after", 1, False


class ReceivedLoss(Need):
    """Before training, each client of the cohort evaluates the model that it received on its own
    training samples, and sends the mean loss with its update; NaN for a client without samples."""

    name, gathered, numbers = "received_loss", "after", 1
    row = "global_on_own", "loss"


class Duration(Need):
    """The server notes the simulated seconds from sending a client the model to receiving its
    update; 0 if the run simulates no time."""

    name, gathered, evaluates = "duration", "after", False


class Update(Need):
    """The server looks at each client's update, its trained weights minus the global ones, as one
    vector (client, parameter). Nothing is sent for it, but no secure aggregation can hide it."""

    name, gathered, evaluates = "update", "after", False

    def measure(self, context: EvaluationContext) -> np.ndarray:
        updates, count = context.updates().values(), len(context.clients)
        return np.concatenate([update.reshape(count, -1) for update in updates], axis=1)


class BiasUpdate(Need):
    """The server looks at how training changed the bias of each client's last layer (class).
    Nothing is sent for it, but no secure aggregation can hide this part of an update."""

    name, gathered, evaluates = "bias_update", "after", False

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return list(context.updates().values())[-1]


class SoftLabels(Need):
    """After training, each client sends its local model's mean softmax output on its samples."""

    name, gathered, numbers = "soft_labels", "after", "classes"
    row = "local_on_own", "mean_softmax"


class LocalModelAccuracy(Need):
    """After training, each client sends its local model's accuracy on its own training samples,
    from 0 to 1; NaN without samples."""

    name, gathered, numbers = "local_accuracy", "after", 1
    row = "local_on_own", "accuracy"


class RMSLoss(Need):
    """After training, each client evaluates its local model on its own samples and sends the root
    mean square of their losses, as Oort's statistical utility asks; NaN without samples."""

    name, gathered, numbers = "loss_norm", "after", 1
    row = "local_on_own", "rms_loss"


class LastBatchRMSLoss(Need):
    """After training, each client evaluates its local model on the batch of its last local step and
    sends the root mean square of the losses, as FedScale's Oort asks; NaN without a step."""

    name, gathered, numbers = "last_batch_loss_norm", "after", 1
    row = "local_on_last_batch", "rms_loss"


class ReservedLoss(Need):
    """The server evaluates each local model on reserved test samples; clients send nothing more."""

    name, gathered, reserved = "reserved_loss", "after", True
    row = "local_on_reserved", "loss"


class ReservedCorrect(Need):
    """The server evaluates each local model on reserved test samples and keeps which ones are
    classified correctly (client, sample). With `reserved_predictions` it shares one evaluation."""

    name, gathered, reserved = "reserved_correct", "after", True

    def measure(self, context: EvaluationContext) -> np.ndarray:
        evaluations = context.local_on_reserved()
        correct = [results.softmax.argmax(axis=1) == results.labels for results in evaluations]
        return np.array(correct, dtype=np.float64)


class ReservedPredictions(Need):
    """The server evaluates each local model on reserved test samples and keeps its softmax outputs,
    one row per sample, in float64; clients send nothing more."""

    name, gathered, reserved = "reserved_predictions", "after", True
    row = "local_on_reserved", "softmax"


NEEDS = Catalog("cohort.needs", Need, (
    LabelCounts, Overlap, SamplesPerRound, ExpectedDuration, TransferTime, CandidateLoss,
    CandidateAccuracy, CandidateBatchLoss, TrainingLoss, ReceivedLoss, Duration, Update, BiasUpdate,
    SoftLabels, LocalModelAccuracy, RMSLoss, LastBatchRMSLoss, ReservedLoss, ReservedCorrect,
    ReservedPredictions,
))  # fmt: skip


def needs_of(selector: Any) -> list[type[Need]]:
    """The needs of a selector, in alphabetical order; UserError for an unknown name."""
    which = f"{type(selector).__module__}.{type(selector).__name__}"
    if isinstance(selector.needs, str):
        raise UserError(f"{which}: needs is a text, but must be a set: frozenset({{'...'}})")
    for name in sorted(selector.needs):
        check_allowed(name, NEEDS, f"{which} needs '{name}', which is not known")
        if not NAME.fullmatch(name):  # its traffic is recorded by its name
            raise UserError(f"{which} needs '{name}': the name of a need must be of a-z, 0-9 and _")
    return [NEEDS[name] for name in sorted(selector.needs)]
