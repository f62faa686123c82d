"""Tasks: planned cells with their data, shards, model and components loaded."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from cohort.cell.planned import Planned
from cohort.cell.settings import Settings
from cohort.core.components import build
from cohort.core.randomness import torch_seed
from cohort.data.samples import Samples, load
from cohort.data.sampling import scaled_count, share_of, stratified
from cohort.data.shards import Shards
from cohort.data.shards import read as read_shards
from cohort.data.store import has_validation, read_labels
from cohort.models import MODELS
from cohort.selection import SELECTORS, Selector
from cohort.training.objectives import OBJECTIVES, Objective
from cohort.training.participation import Participation, parse_participation
from cohort.training.precision import WEIGHTS
from cohort.training.procedures import Procedure, parse_procedure
from cohort.training.schedules import Schedule, parse_schedule
from cohort.training.servers import SERVERS, ServerRule
from cohort.training.updates import Weights


@dataclass(frozen=True)
class Task:
    """Everything that a procedure works on.

    `test` and `reserved` (for selectors) are disjoint indices into `test_samples`, the shards are
    indices into `train_samples`, and `validation` into `validation_samples`: the training samples,
    if some of them are set aside, or else those that the data set comes with.
    """

    settings: Settings
    selector: Selector
    objective: Objective
    server: ServerRule
    schedule: Schedule
    participation: Participation
    model: nn.Module
    classes: int
    train_samples: Samples
    test_samples: Samples
    test: Tensor
    reserved: Tensor
    validation_samples: Samples
    validation: Tensor
    shards: Shards
    trainer: str = "serial"

    @cached_property
    def procedure(self) -> Procedure:
        """The procedure that the settings name."""
        return parse_procedure(self.settings.procedure)

    @property
    def plain(self) -> bool:
        """Whether everything is computed by plain PyTorch: evaluations as well as training."""
        return self.trainer == "serial"

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

    def redrawn_weights(self) -> Weights:
        """The trainable weights of another random network of the same model."""
        shape = tuple(self.train_samples.values.shape[1:])
        model = _new_model(self.settings, shape, self.classes, "other weights")
        like = self.trainable(self.initial_weights())
        return {
            name: parameter.detach().to(like[name]) for name, parameter in model.named_parameters()
        }


def load_task(planned: Planned, device: torch.device) -> Task:
    """Load the data, shards, model and components of a planned cell."""
    names = {field.name for field in fields(Settings)}
    settings = Settings(**{key: value for key, value in planned.settings.items() if key in names})
    dtype = WEIGHTS[settings.precision]
    data = planned.inputs["data"]
    train_samples, test_samples = (load(data, split, device, dtype) for split in ("train", "test"))
    labels = test_samples.labels.cpu().numpy()
    used = share_of(labels, settings.samples, "test share")
    set_aside = stratified(
        labels[used], scaled_count(settings.reserve, settings.samples), "reserve"
    )
    classes = read_labels(data)[2]
    shape = tuple(train_samples.values.shape[1:])
    model = _new_model(settings, shape, classes, "initial weights")
    # convolutions on a CPU are faster in this layout
    layout = {"memory_format": torch.channels_last}
    model = model.to(device=device, dtype=dtype, **layout)  # type: ignore[call-overload]
    dealt = read_shards(planned.inputs["shards"])
    validation_samples, validation = train_samples, dealt.validation
    if not settings.validation and has_validation(data):
        validation_samples = load(data, "validation", device, dtype)
        labels = validation_samples.labels.cpu().numpy()
        validation = share_of(labels, settings.samples, "validation share")
    return Task(
        settings=settings,
        selector=build(SELECTORS, planned.settings["selector"]),
        objective=build(OBJECTIVES, planned.settings["objective"]),
        server=build(SERVERS, planned.settings["server"]),
        schedule=parse_schedule(settings.schedule),
        participation=parse_participation(settings.participation),
        model=model,
        classes=classes,
        train_samples=train_samples,
        test_samples=test_samples,
        test=torch.from_numpy(np.delete(used, set_aside)).to(device),
        reserved=torch.from_numpy(used[set_aside]).to(device),
        validation_samples=validation_samples,
        validation=torch.from_numpy(validation).to(device),
        shards=dealt,
    )


def _new_model(settings: Settings, shape: tuple[int, ...], classes: int, purpose: str) -> nn.Module:
    """The model of a cell for samples of a shape, its weights drawn for a purpose."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(settings.seed, purpose))
        return MODELS[settings.model]().build(shape, classes)
