"""A place inside a round, from which an interrupted run resumes to the bit.

Between two rounds a run is its `RunState`. Within a round everything is drawn again from its seed
in no time (who is chosen, who responds, in which order samples come) except local training. So the
place inside a round is the local work that is already done: a checkpoint holds the state before the
round and, in a cursor, the results of finished local work and the client in progress. A resumed
round is played again from its beginning, and each trainer takes up the work where it stood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from cohort.training.ledger import Ledger
from cohort.training.updates import Weights

Collect = Callable[[], Weights]


class ResumableCall:
    """One call of a trainer within a round, which can be resumed where it was interrupted.

    `finished` holds the saved results of clients whose work was done, one row each; `current` the
    saved state of the client whose work was in progress. Both are empty for a call that is new. A
    trainer calls `set_finished` after each client and `save_if_due` after each step.
    """

    def __init__(self, cursor: Cursor, saved: Mapping[str, Tensor]):
        self.cursor = cursor
        self.finished, self.current = (
            strip_prefix(saved, "finished/"),
            strip_prefix(saved, "current/"),
        )
        self._collect: Collect = lambda: self.finished

    def take_current(self) -> Weights:
        """Return the saved state of the client in progress and forget it, so that the next client
        starts anew."""
        current, self.current = self.current, {}
        return current

    def set_finished(self, collect: Collect) -> None:
        """Register the function that collects the results of finished clients. It is called only
        when a checkpoint is written."""
        self._collect = collect

    def save_if_due(self, current: Collect) -> None:
        """Save a checkpoint here if one is due. `current` collects the state of the client in
        progress."""
        if self.cursor.is_due():
            self.cursor.save(current())

    def tensors(self) -> Weights:
        """The results of finished clients, named for a checkpoint."""
        return {f"finished/{name}": tensor for name, tensor in self._collect().items()}


class Cursor:
    """Where a run stands inside a round: the local work of the current round that is already done,
    for checkpoints and resuming."""

    def __init__(
        self,
        saved: Mapping[str, Tensor] | None = None,
        is_due: Callable[[], bool] = lambda: False,
        write: Callable[[Weights], None] = lambda tensors: None,
    ):
        self.is_due, self._write = is_due, write
        self._saved: Mapping[str, Tensor] = saved or {}
        self._works: list[ResumableCall] = []
        self._ledger = Ledger()

    def begin_round(self, costs: tuple[str, ...]) -> Ledger:
        """Begin a round, or resume the interrupted one: return a new ledger for its costs and
        metrics, with the seconds that the round took before. `costs` are recorded even if zero."""
        seconds = {
            name: float(value) for name, value in strip_prefix(self._saved, "seconds/").items()
        }
        self._ledger, self._works = Ledger(costs, seconds), []
        return self._ledger

    def end_round(self) -> None:
        """Forget the work of a round that is over."""
        self._saved, self._works = {}, []

    def next_call(self) -> ResumableCall:
        """Begin the next call of a trainer in this round, with what a checkpoint holds of it."""
        work = ResumableCall(self, strip_prefix(self._saved, f"work{len(self._works)}/"))
        self._works.append(work)
        return work

    def save(self, current: Weights | None = None) -> None:
        """Write a checkpoint inside the round, with the state within the last call's client."""
        self._write(self.tensors(current or {}))

    def tensors(self, current: Weights) -> Weights:
        """Everything that a checkpoint needs to know of this round."""
        seconds = self._ledger.seconds().items()
        tensors = {f"seconds/{name}": torch.tensor(value).double() for name, value in seconds}
        for number, work in enumerate(self._works):
            tensors |= {f"work{number}/{name}": tensor for name, tensor in work.tensors().items()}
        last = len(self._works) - 1
        return tensors | {f"work{last}/current/{name}": value for name, value in current.items()}


def strip_prefix(tensors: Mapping[str, Tensor], prefix: str) -> Weights:
    """The tensors whose names begin with a prefix, under their names without the prefix."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
