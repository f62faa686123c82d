"""Tasks, which are cells with their data, shards and model, and the state of a run of one."""

import copy
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cohort.core.randomness import torch_seed
from cohort.data import sampling, store
from cohort.data import shards as shard_files
from cohort.data.samples import Samples, load
from cohort.models import MODELS
from cohort.records.history import History
from cohort.selection.selector import Reports, State, View
from cohort.settings import Settings
from cohort.training import contract
from cohort.training.cell import Cell
from cohort.training.trainers import serial
from cohort.training.trainers.trainer import Trainer
from cohort.training.updates import Weights


@dataclass
class RunState:
    """Everything a run carries from round to round, and so everything a checkpoint holds. `server`
    is the memory of the server rule (or of an optimizer that lives across rounds), `selector` that
    of the selector, `reports` what clients reported once before the first round. `sessions`
    describes the processes that worked on the run."""

    weights: Weights
    server: Weights
    selector: State
    history: History = field(default_factory=History)
    round: int = 0
    diverged: bool = False
    sessions: list[dict[str, Any]] = field(default_factory=list)
    reports: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Task(Cell):
    """A cell with everything that its procedure works on. `test` and `reserved` (for selectors) are
    disjoint indices into `test_samples`, the shards are indices into `train_samples`, `validation`
    into `validation_samples`: training samples that are set aside, or the data set's own."""

    model: nn.Module
    classes: int
    train_samples: Samples
    test_samples: Samples
    test: Tensor
    reserved: Tensor
    validation_samples: Samples
    validation: Tensor
    shards: shard_files.Shards
    trainer: type[Trainer] = serial.SerialTrainer

    @property
    def plain(self) -> bool:
        """Whether everything is computed by plain PyTorch: evaluations as well as training."""
        return self.trainer is serial.SerialTrainer

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of training samples that each client holds."""
        return np.array([len(indices) for indices in self.shards.indices])

    def initial_weights(self) -> Weights:
        """A copy of the initial weights, which are the same for all strategies on one seed."""
        return {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    def trainable(self, weights: Weights) -> Weights:
        """The weights that are trained, without the statistics of normalization layers."""
        return {name: weights[name] for name, _ in self.model.named_parameters()}

    def view(self, reports: Reports) -> View:
        """What a selector sees before any client is asked; `reports` precede the first round."""
        return View(
            clients=self.settings.clients,
            cohort=self.participation.invited(self.settings.cohort, self.settings.clients),
            rounds=self.settings.rounds,
            sizes=self.sizes,
            label_counts=reports.get("label_counts"),
            reports={name: values for name, values in reports.items() if name != "label_counts"},
        )

    def other_initial_weights(self) -> Weights:
        """Other random initial weights of the trainable parameters, the same in every call."""
        shape = tuple(self.train_samples.values.shape[1:])
        model = new_model(self.settings, shape, self.classes, "other weights")
        like = self.trainable(self.initial_weights())
        return {name: tensor.detach().to(like[name]) for name, tensor in model.named_parameters()}


def new_model(settings: Settings, shape: tuple[int, ...], classes: int, purpose: str) -> nn.Module:
    """Build a cell's model for samples of a shape; weights depend on seed and `purpose` only."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(settings.seed, purpose))
        return MODELS[settings.model]().build(shape, classes)


def load_task(cell: Cell, device: torch.device) -> Task:
    """Load the data, shards and model of a cell."""
    settings, data = cell.settings, cell.inputs["data"]
    dtype = torch.float64 if settings.precision == "float64" else torch.float32
    train_samples, test_samples = (load(data, split, device, dtype) for split in ("train", "test"))
    test_labels = test_samples.labels.cpu().numpy()
    used = sampling.draw_share(test_labels, settings.samples, "test share")
    count = sampling.scaled_count(settings.reserve, settings.samples)
    reserved = sampling.draw_stratified(test_labels[used], count, "reserve")
    classes = store.read_labels(data)[2]
    model = new_model(settings, tuple(train_samples.values.shape[1:]), classes, "initial weights")
    # convolutions on a CPU are faster in this layout
    layout = {"memory_format": torch.channels_last}
    model = model.to(device=device, dtype=dtype, **layout)  # type: ignore[call-overload]
    with torch.no_grad():  # by a copy, as normalization layers may learn from what they see
        outputs = copy.deepcopy(model).eval()(train_samples.inputs(torch.arange(2, device=device)))
    fits = isinstance(outputs, Tensor) and outputs.shape == (2, classes)
    wanted = f"float of shape (2, {classes}) for 2 samples of {classes} classes"
    contract.require(fits, f"model '{settings.model}'", outputs, wanted)
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    is_tied = len(names) > len(list(model.parameters()))
    contract.require(not is_tied, f"model '{settings.model}'", names, "separate weights")
    *_, last = model.parameters()
    is_bias, wanted = last.shape == (classes,), "as last parameter the bias of the output layer"
    contract.require(is_bias, f"model '{settings.model}'", last, wanted)
    dealt = shard_files.read(cell.inputs["shards"])
    validation_samples, validation = train_samples, dealt.validation
    if not settings.validation and store.has_validation(data):
        validation_samples = load(data, "validation", device, dtype)
        labels = validation_samples.labels.cpu().numpy()
        validation = sampling.draw_share(labels, settings.samples, "validation share")
    return Task(
        **{field.name: getattr(cell, field.name) for field in fields(cell)},
        model=model,
        classes=classes,
        train_samples=train_samples,
        test_samples=test_samples,
        test=torch.from_numpy(np.delete(used, reserved)).to(device),
        reserved=torch.from_numpy(used[reserved]).to(device),
        validation_samples=validation_samples,
        validation=torch.from_numpy(validation).to(device),
        shards=dealt,
    )
