"""Procedures, which say how a run goes: the half that planning needs, with parameters and checks.
The modules beside this one have their rounds; they import torch, so they are imported lazily."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from cohort.core import UserError, lazy
from cohort.core.components import SHARE, Catalog, NameEncoded, parameter, parser_of
from cohort.core.metric import Metric
from cohort.data.sampling import scaled_count
from cohort.models import MODELS, Model
from cohort.selection import selector as abilities
from cohort.selection import simple
from cohort.settings import EVALUATION_PLANS
from cohort.training import availability, objectives, participation, servers

if TYPE_CHECKING:
    from cohort.training import contract
    from cohort.training.cell import Cell
    from cohort.training.procedures import concat, federated, fedtan, one_model
    from cohort.training.rounds import Rounds
    from cohort.training.task import RunState, Task
else:
    contract = lazy("cohort.training.contract")
    concat = lazy("cohort.training.procedures.concat")
    federated = lazy("cohort.training.procedures.federated")
    fedtan = lazy("cohort.training.procedures.fedtan")
    one_model = lazy("cohort.training.procedures.one_model")

C = TypeVar("C", bound="Cell")
PLAIN = {
    "selector": simple.Random(), "objective": objectives.CrossEntropy(),
    "server": servers.Average(), "participation": participation.Full(),
    "availability": availability.Always(),
}  # fmt: skip
"""The only parts allowed for procedures that select clients and merge their work themselves."""


class Procedure(NameEncoded):
    """The course of a run, and the settings that it takes."""

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """The metrics that this procedure records itself, by recorded name."""
    round_name: ClassVar[str] = "Round"
    """What figures call a round."""
    validates_every_round: ClassVar[bool] = False
    """Whether it evaluates validation samples in every round, or only when the test set is due."""
    trainers: ClassVar[tuple[str, ...]] = ("serial",)
    """The trainers that can do its local work."""
    simulates_time: ClassVar[bool] = False
    """Whether it simulates the time of clients by their devices."""
    requires: ClassVar[str] = ""
    """An optional package, without which its cells are skipped."""

    def rounds_of(self, task: Task) -> Rounds:
        """Build the rounds of a task."""
        raise NotImplementedError

    def check(self, cell: Cell) -> None:
        """Raise ValueError if the procedure cannot work with a cell's settings and strategy."""

    def check_constant(self, cell: Cell) -> None:
        """Raise ValueError if the cell has a learning rate schedule."""
        if cell.settings.schedule != "constant":
            raise ValueError(f"follows lr_decay, not the schedule '{cell.schedule}'; leave it out")

    def check_undecayed(self, cell: Cell) -> None:
        """Raise ValueError if the learning rate decays by round or by losses that are unknown."""
        if cell.settings.lr_decay != 1:
            raise ValueError(f"has a schedule and no use for lr_decay {cell.settings.lr_decay:g}")
        if cell.schedule.watches_loss and not self.validates_every_round:
            raise ValueError(f"has no validation loss by round, as '{cell.schedule}' needs")

    def check_plain(self, cell: Cell) -> None:
        """Raise ValueError unless all clients take part and the strategy is plain FedAvg."""
        clients, cohort = cell.settings.clients, cell.settings.cohort
        if cohort != clients:
            raise ValueError(f"asks all {clients} clients in every round: cohort is {cohort}")
        for key, plain in PLAIN.items():
            component = getattr(cell, key)
            if component != plain:
                name = getattr(cell.settings, key, component.name)
                raise ValueError(f"has no use for the {key} '{name}'; take the strategy 'fedavg'")

    def check_epoch(self, cell: Cell) -> None:
        """Raise ValueError unless a round is one epoch."""
        if cell.settings.J != "J1e":
            raise ValueError(f"takes an epoch in each round: J is {cell.settings.J}, not J1e")

    def check_handed_on(self, cell: Cell) -> None:
        """Raise ValueError unless a client needs nothing but the weights to go on."""
        self.check_constant(cell)
        if cell.settings.optimizer != "sgd" or cell.settings.momentum:
            raise ValueError("hands on weights alone: the optimizer must be SGD without momentum")

    def science_with(self, model: type[Model]) -> int:
        """The science version of this procedure's runs with a model; to override for a change that
        concerns only some models or parameters."""
        return self.version()

    def usable_trainers(self) -> tuple[str, ...]:
        """The trainers that can do the procedure's local work with these parameters, by name."""
        return self.trainers

    def scaled(self, share: float) -> Procedure:
        """This procedure shrunk to a run that has only this share of the rounds."""
        return self

    def phases(self, cell: C) -> Sequence[C]:
        """The phases of a run in order, each a cell with its own rounds and procedure; just the
        cell itself unless the procedure changes midway."""
        return [cell]

    @classmethod
    def missing_package(cls) -> str:
        """The package that the procedure requires and that is not installed, if any."""
        is_installed = not cls.requires or importlib.util.find_spec(cls.requires) is not None
        return "" if is_installed else cls.requires

    def begin(self, task: Task) -> RunState:
        """The state before the first round."""
        if package := self.missing_package():
            raise UserError(f"procedure '{self}' needs a package: pip install {package}")
        with contract.locate_errors(task.settings.strategy, 0):
            return self.rounds_of(task).begin()


OVERLAP_METRICS = {
    "overlapping_chosen": Metric("Share of the cohort that overlaps", "%", 100, digits=1),
    "overlapping_probability": Metric("Mass on overlapping clients", "%", 100),
    "overlapping_preference": Metric("Preference for overlapping clients", partial=True),
}
ACCURACY: dict[str, Any] = {"unit": "%", "scale": 100, "digits": 2, "better": "high"}
_MILLISECONDS: dict[str, Any] = {"unit": "ms", "scale": 1000, "better": "low"}
PROFILE_METRICS = {
    "minibatch_accuracy": Metric("Accuracy of the round's minibatches", **ACCURACY),
    "step_accuracy": Metric("Accuracy of a minibatch", **ACCURACY, by="step"),
    "step_loss": Metric("Loss of a minibatch", better="low", by="step"),
    "step_seconds": Metric("Time of a local step", **_MILLISECONDS, by="step"),
    "batch_accuracy": Metric("Mean accuracy of a client's minibatches", **ACCURACY, by="client"),
    "batch_loss": Metric("Mean loss of a client's minibatches", better="low", by="client"),
    "batch_seconds": Metric("Mean time of a client's local steps", **_MILLISECONDS, by="client"),
}
"""What follows from profiled runs: by round, by step within a client's work, and by client."""


@dataclass(frozen=True, kw_only=True)
class Federated(Procedure):
    """Federated averaging: the loop of the papers' algorithm boxes, with a selector, an objective,
    a server rule and a participation of choice."""

    name: ClassVar[str] = "federated"
    metrics: ClassVar[Mapping[str, Metric]] = OVERLAP_METRICS | PROFILE_METRICS
    trainers: ClassVar[tuple[str, ...]] = ("serial", "native", "batched")
    simulates_time: ClassVar[bool] = True
    profiled: int = parameter(0, **SHARE, help="1: record each local step, by plain PyTorch")

    def rounds_of(self, task: Task) -> Rounds:
        return federated.FederatedRounds(self, task)

    def usable_trainers(self) -> tuple[str, ...]:
        return ("serial",) if self.profiled else self.trainers

    def check(self, cell: Cell) -> None:
        self.check_constant(cell)
        server, optimizer = cell.server, cell.settings.optimizer
        if not server.assumes_sgd:
            return
        assumes = f"with the server rule '{server.name}' assumes steps"
        if optimizer != "sgd":
            raise ValueError(f"{assumes} of SGD, but optimizer is '{optimizer}'")
        if isinstance(cell.selector, abilities.Probing):
            raise ValueError(f"{assumes} at once, but '{cell.selector.name}' probes clients first")


class FedTan(Procedure):
    """FedTAN (Wang, Shi and Chang, 2023): FedAvg whose clients take the first local step of each
    round together, layer by layer: each normalizes by the plain averages of all clients' means and
    variances, and receives the averages of the gradients of these. All other steps are local. Then
    everything is averaged by size, the running statistics too. If all batches and all shards have
    one size, the first steps together are one SGD step on the union of the batches. As in its
    authors' code, momentum begins anew after this step."""

    name: ClassVar[str] = "fedtan"
    metrics: ClassVar[Mapping[str, Metric]] = OVERLAP_METRICS

    def rounds_of(self, task: Task) -> Rounds:
        return fedtan.FedTanRounds(task)

    def check(self, cell: Cell) -> None:
        model, optimizer, rule = cell.settings.model, cell.settings.optimizer, cell.server.name
        if not MODELS[model].batch_norm:
            raise ValueError(f"shares batch normalization, which the model '{model}' lacks")
        if optimizer != "sgd":
            raise ValueError(f"trains clients by SGD, but optimizer is '{optimizer}'; leave it out")
        self.check_constant(cell)
        if rule != "average":
            raise ValueError(f"averages the clients' models, not by the server rule '{rule}'")
        if isinstance(cell.selector, abilities.Probing):
            raise ValueError(f"takes no selector that probes, as '{cell.selector.name}' does")


@dataclass(frozen=True, kw_only=True)
class Concat(Procedure):
    """FedConcat: clusters of clients with similar labels train one network each, and one classifier
    learns from all of these networks together.

    Stage 1 is FedAvg within each cluster, among those of its clients that are in the cohort. In
    stage 2 the networks are frozen, and the cohort trains a linear classifier on their concatenated
    last features, by a few batches each; every client counts the same. Rounds are those of both.
    Stage 1 is evaluated by the mean of the clusters' probabilities, which the paper leaves open.
    """

    name: ClassVar[str] = "concat"
    trainers: ClassVar[tuple[str, ...]] = ("serial", "native")  # of the clusters' networks
    metrics: ClassVar[Mapping[str, Metric]] = {
        **OVERLAP_METRICS,
        "stage": Metric("Stage", digits=0, whole=True),
        "clusters_trained": Metric("Clusters that trained", digits=0, whole=True),
    }
    clusters: int = parameter(minimum=1, help="how many clusters")
    classifier: float = parameter(0.2, exclusiveMinimum=0, exclusiveMaximum=1, help="of all rounds")
    steps: int = parameter(3, minimum=1, help="a client's batches for the classifier, at most all")
    balanced: int = parameter(0, **SHARE, help="1: no cluster exceeds 1.2 times the mean size")
    warm: int = parameter(0, **SHARE, help="1: the classifier begins as the sum of the clusters'")
    continued: int = parameter(0, **SHARE, help="1: the learning rate does not start anew for it")

    def rounds_of(self, task: Task) -> Rounds:
        return concat.ConcatRounds(self, task)

    def check(self, cell: Cell) -> None:
        self.check_constant(cell)
        settings, selector, rule = cell.settings, cell.selector, cell.server.name
        if self.clusters > settings.clients:
            raise ValueError(f"makes {self.clusters} clusters of only {settings.clients} clients")
        if settings.rounds < 2:
            raise ValueError("trains clusters, then a classifier: rounds must be at least 2")
        if rule != "average":
            raise ValueError(f"averages within clusters, not by the server rule '{rule}'")
        for key in ("participation", "availability"):
            if getattr(cell, key) != PLAIN[key]:
                raise ValueError(f"has no use for {key} '{getattr(settings, key)}'")
        refused = abilities.Allocating | abilities.Filtering | abilities.Screening
        refused |= abilities.UpdateWeighing
        if isinstance(selector, refused) or selector.needs - {"label_counts"}:
            taken = f"a selector that sees label counts at most, not '{selector.name}'"
            raise ValueError(f"takes {taken}: it has no global model to show")

    def cluster_rounds(self, rounds: int) -> int:
        """How many of so many rounds train the clusters' networks, before the classifier's."""
        return rounds - min(max(1, round(self.classifier * rounds)), rounds - 1)


class Centralized(Procedure):
    """Training of one client with all data, with which federated runs are compared: a round is an
    epoch, and the optimizer lives on from epoch to epoch and follows a learning rate schedule."""

    name: ClassVar[str] = "centralized"
    round_name: ClassVar[str] = "Epoch"
    validates_every_round: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, Metric]] = {"learning_rate": Metric("Learning rate", digits=5)}

    def rounds_of(self, task: Task) -> Rounds:
        return one_model.CentralizedRounds(task)

    def check(self, cell: Cell) -> None:
        settings = cell.settings
        if (settings.clients, settings.cohort) != (1, 1):
            raise ValueError("trains one client: clients and cohort must be 1")
        self.check_plain(cell)
        self.check_epoch(cell)
        self.check_undecayed(cell)
        if cell.schedule.watches_loss and not settings.validation:
            raise ValueError(f"schedule '{cell.schedule}' needs validation samples: set validation")


_COUNT: dict[str, Any] = {"digits": 0, "better": "low", "whole": True}
TASKS = Metric("Tasks of an epoch", **_COUNT)
TRANSFERS = Metric("Transfers of the model between clients", **_COUNT)


class Sequential(Procedure):
    """Sequential federated learning (Li and Lyu, 2023): in each round all clients train one after
    another, in random order, each from where the one before it ended. Nothing is averaged."""

    name: ClassVar[str] = "sequential"
    science: ClassVar[int] = 2  # the server sends the model to the first client only
    trainers: ClassVar[tuple[str, ...]] = ("serial", "native")
    metrics: ClassVar[Mapping[str, Metric]] = {"model_transfers": TRANSFERS}

    def rounds_of(self, task: Task) -> Rounds:
        return one_model.SequentialRounds(task)

    def check(self, cell: Cell) -> None:
        self.check_plain(cell)
        self.check_handed_on(cell)


@dataclass(frozen=True, kw_only=True)
class Stratified(Procedure):
    """Base of Stratify's procedures: the server schedules labels, so that every epoch has the same
    share of each, and asks clients for samples of them. In an epoch each label is scheduled as
    often as there are samples of it, but no label more often than the median one."""

    round_name: ClassVar[str] = "Epoch"
    weighted: int = parameter(0, **SHARE, help="1: choose clients by their samples of a label")

    def check(self, cell: Cell) -> None:
        self.check_plain(cell)
        self.check_epoch(cell)


@dataclass(frozen=True, kw_only=True)
class ChunkedStratified(Stratified):
    """Base of those that assign the labels of single samples in chunks (Algorithm 1)."""

    science: ClassVar[int] = 2  # a client counts as sent the model only if it lacks it
    trainers: ClassVar[tuple[str, ...]] = ("serial", "native")  # of single samples
    chunk: int = parameter(5, minimum=1, help="labels that are assigned to clients at once")
    retained: float = parameter(0.3, exclusiveMinimum=0, maximum=1, help="share of clients asked")

    def version(self) -> int:
        """One more for shares that are not the default, once rounded wrongly (0.28 of 25 to 8)."""
        return self.science + (self.retained != ChunkedStratified.retained)


class StratifiedSingle(ChunkedStratified):
    """One sample per step, by the model that clients hand on to each other (Algorithms 1 and 3)."""

    name: ClassVar[str] = "stratified-single"
    metrics: ClassVar[Mapping[str, Metric]] = {"tasks": TASKS, "model_transfers": TRANSFERS}

    def rounds_of(self, task: Task) -> Rounds:
        return one_model.StratifiedSingleRounds(self, task)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        self.check_handed_on(cell)
        if cell.settings.batch != 1:
            raise ValueError(f"takes one sample per step: batch is {cell.settings.batch}, not 1")


class StratifiedBatch(Stratified):
    """Batches to which clients contribute sums of gradients; the server takes the step (Algorithms
    2 and 4). Batch normalization takes its statistics from the whole batch."""

    name: ClassVar[str] = "stratified-batch"
    metrics: ClassVar[Mapping[str, Metric]] = {
        "contributions": Metric("Clients' gradients in an epoch", **_COUNT),
        "learning_rate": Metric("Learning rate", digits=5),
    }

    def rounds_of(self, task: Task) -> Rounds:
        return one_model.StratifiedBatchRounds(self, task)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        self.check_undecayed(cell)

    def science_with(self, model: type[Model]) -> int:
        """One more for models with batch normalization: the bytes of their sums are counted."""
        return self.version() + model.batch_norm


SINGLE_SAMPLES: dict[str, Any] = {
    "batch": 1, "lr": 0.01, "lr_decay": 1.0, "schedule": "constant", "optimizer": "sgd",
    "momentum": 0.0, "weight_decay": 0.0, "clip": 0.0,
}  # fmt: skip
"""Settings of the single samples of a hybrid run, for which no learning rate is printed."""


@dataclass(frozen=True, kw_only=True)
class StratifiedHybrid(ChunkedStratified):
    """Epochs of batches, then epochs of single samples (section III-D: a model is pretrained by
    batches, and goes on learning from single samples once it is deployed). The batch, learning
    rate, schedule and optimizer of a cell are those of its batches; the schedule ends with them.
    Single samples take plain SGD at a constant learning rate."""

    name: ClassVar[str] = "stratified-hybrid"
    metrics = {**StratifiedBatch.metrics, **StratifiedSingle.metrics}
    epochs: int = parameter(minimum=1, help="epochs of batches, the first ones")

    def rounds_of(self, task: Task) -> Rounds:
        return one_model.StratifiedHybridRounds(self, task)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        self.check_undecayed(cell)
        if self.epochs > (rounds := cell.settings.rounds):
            raise ValueError(f"has {self.epochs} epochs of batches, but rounds is {rounds}")

    def science_with(self, model: type[Model]) -> int:
        return self.version() + model.batch_norm

    def scaled(self, share: float) -> StratifiedHybrid:
        return replace(self, epochs=scaled_count(self.epochs, share))

    def phases(self, cell: C) -> Sequence[C]:
        batch = StratifiedBatch(weighted=self.weighted)
        single = StratifiedSingle(weighted=self.weighted, chunk=self.chunk, retained=self.retained)
        first = replace(cell.settings, procedure=str(batch), rounds=self.epochs)
        rounds = cell.settings.rounds - self.epochs
        later = replace(cell.settings, procedure=str(single), rounds=rounds, **SINGLE_SAMPLES)
        return [replace(cell, settings=first), replace(cell, settings=later)]


class MaskedLabels(Procedure):
    """Stratify's masked labels, as an experiment of their own: one round of the encrypted protocol
    (privacy/masked_labels.py), in which all clients take part with the label counts that they hold.
    Nothing is trained or evaluated. The metrics are the times of the paper's Table IV, which maps
    the labels of all clients concurrently; here the mean client counts."""

    name: ClassVar[str] = "masked-labels"
    requires: ClassVar[str] = "tenseal"
    metrics: ClassVar[Mapping[str, Metric]] = {
        "seconds_unique_list": Metric("Time to list the unique labels", "s", better="low"),
        "seconds_mapping": Metric("Time to map a client's labels", "s", better="low"),
        "seconds_counts": Metric("Time to count all labels", "s", better="low"),
        "seconds_encrypting": Metric("Time of a client to encrypt", "s", better="low"),
        "comparisons": Metric("Encrypted comparisons", **_COUNT),
    }

    def rounds_of(self, task: Task) -> Rounds:
        return one_model.MaskedLabelsRounds(task)

    def check(self, cell: Cell) -> None:
        settings = cell.settings
        self.check_plain(cell)
        if settings.rounds != 1:
            raise ValueError(f"has a single round: rounds is {settings.rounds}, but must be 1")
        for plan in EVALUATION_PLANS[1:]:  # the first one always has a value
            if getattr(settings, plan):
                raise ValueError(f"trains no model that could be evaluated: leave out {plan}")


_STRATIFY = StratifiedSingle, StratifiedBatch, StratifiedHybrid, MaskedLabels
_CLASSES = Centralized, Concat, Federated, FedTan, Sequential, *_STRATIFY
PROCEDURES = Catalog("cohort.training.procedures", Procedure, _CLASSES)
parse_procedure = parser_of(PROCEDURES, "procedure")
"""Build the procedure that a name describes: `federated`, `centralized`, `concat-5`."""
