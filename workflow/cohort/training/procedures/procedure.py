"""The base of all procedures: the half that planning needs. What happens in a round is in the
module `rounds` beside each procedure."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

from cohort.core.components import NameEncoded
from cohort.core.errors import UserError
from cohort.core.metric import Metric
from cohort.selection.simple import Random
from cohort.training.contract import locate_errors
from cohort.training.objectives import CrossEntropy
from cohort.training.participation import Full
from cohort.training.servers import Average

if TYPE_CHECKING:
    from cohort.models import Model
    from cohort.training.cell import Cell
    from cohort.training.cursor import Cursor
    from cohort.training.rounds import Rounds
    from cohort.training.state import RunState
    from cohort.training.task import Task


C = TypeVar("C", bound="Cell")
PLAIN = {
    "participation": Full(),
    "objective": CrossEntropy(),
    "server": Average(),
    "selector": Random(),
}
"""The only parts allowed for procedures that select clients and merge their work themselves."""


@dataclass(frozen=True, kw_only=True)
class Procedure(NameEncoded):
    """The course of a run, and the settings that it takes."""

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """The metrics that this procedure records itself, by recorded name."""
    round_name: ClassVar[str] = "Round"  # what figures call a round
    validates_every_round: ClassVar[bool] = False  # not only when the test set is evaluated
    trainers: ClassVar[tuple[str, ...]] = ("serial",)  # those that can do its local work
    simulates_time: ClassVar[bool] = False  # of its clients, by their devices
    requires: ClassVar[str] = ""  # an optional package, without which its cells are skipped

    def check(self, cell: Cell) -> None:
        """Raise ValueError if the procedure cannot work with a cell's settings and strategy."""

    def check_constant(self, cell: Cell) -> None:
        """Raise ValueError if the cell has a learning rate schedule."""
        if cell.settings.schedule != "constant":
            raise ValueError(
                f"follows lr_decay, not the schedule '{cell.schedule}', "
                "which is for centralized runs; leave it out"
            )

    def check_undecayed(self, cell: Cell) -> None:
        """Raise ValueError if the cell's learning rate decays by round."""
        if cell.settings.lr_decay != 1:
            raise ValueError(
                f"follows its schedule, and has no use for lr_decay {cell.settings.lr_decay:g}; "
                "leave it out"
            )

    def check_plain(self, cell: Cell) -> None:
        """Raise ValueError unless all clients take part and the strategy is plain FedAvg."""
        clients, cohort = cell.settings.clients, cell.settings.cohort
        if cohort != clients:
            raise ValueError(f"asks all {clients} clients in every round: cohort is {cohort}")
        for key, plain in PLAIN.items():
            component = getattr(cell, key)
            if component != plain:
                name = component if key == "participation" else component.name
                raise ValueError(f"has no use for the {key} '{name}'; take the strategy 'fedavg'")

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
        is_here = not cls.requires or importlib.util.find_spec(cls.requires) is not None
        return "" if is_here else cls.requires

    def rounds_of(self, task: Task) -> Rounds:
        """Build the rounds of a task: an object of the class `{Procedure}Rounds` in the procedure's
        module `rounds`, which imports torch and is imported only now."""
        if package := self.missing_package():
            raise UserError(
                f"procedure '{self}' needs the package {package}, which is not installed: "
                f"pip install {package}"
            )
        module = importlib.import_module(f"{type(self).__module__}.rounds")
        rounds: Rounds = getattr(module, f"{type(self).__name__}Rounds")(self, task)
        return rounds

    def begin(self, task: Task) -> RunState:
        """The state before the first round."""
        with locate_errors(task.settings.strategy, 0):
            return self.rounds_of(task).begin()

    def rounds(
        self, task: Task, state: RunState, cursor: Cursor | None = None
    ) -> Iterator[RunState]:
        """Play the rounds that remain and yield each state; end early if the run diverges."""
        return self.rounds_of(task).run(state, cursor)
