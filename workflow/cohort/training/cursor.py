"""Where a run stands inside a round: which clients have finished their local work.

Between two rounds a run is its `RunState`. Within a round everything is drawn again from its seed
in no time (who is chosen, who responds, in which order samples come) except local training. So a
checkpoint inside a round holds the state before the round and the results of the clients that are
done. A resumed round is played again from its beginning, and trainers skip these clients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from cohort.training.ledger import Ledger
from cohort.training.updates import Weights


class Cursor:
    """The local work of the current round that is already done, for checkpoints and resuming."""

    def __init__(
        self,
        saved: Mapping[str, Tensor] | None = None,
        is_due: Callable[[], bool] = lambda: False,
        write: Callable[[Weights], None] = lambda tensors: None,
    ):
        self.is_due, self._write = is_due, write
        self._saved: Mapping[str, Tensor] = saved or {}
        self._collectors: list[Callable[[], Weights]] = []  # one for each call of a trainer
        self._ledger = Ledger()

    def begin_round(self, costs: tuple[str, ...]) -> Ledger:
        """Begin a round, or resume the interrupted one: return a new ledger for its costs and
        metrics, with the seconds that the round took before. `costs` are recorded even if zero."""
        seconds = strip_prefix(self._saved, "seconds/")
        self._ledger = Ledger(costs, {name: float(value) for name, value in seconds.items()})
        self._collectors = []
        return self._ledger

    def end_round(self) -> None:
        """Forget the work of a round that is over."""
        self._saved, self._collectors = {}, []

    def next_call(self) -> Weights:
        """Begin the next call of a trainer in this round; return the saved results of the clients
        that were done when it was interrupted, empty for a new call."""
        done = strip_prefix(self._saved, f"work{len(self._collectors)}/finished/")
        self._collectors.append(lambda: done)
        return done

    def client_done(self, collect: Callable[[], Weights]) -> None:
        """Save a checkpoint here if one is due. `collect` returns the results of all clients of the
        last call that are done; it is called only when a checkpoint is written."""
        self._collectors[-1] = collect
        if self.is_due():
            self.save()

    def save(self) -> None:
        """Write a checkpoint inside the round."""
        seconds = self._ledger.seconds().items()
        tensors = {f"seconds/{name}": torch.tensor(value).double() for name, value in seconds}
        for number, collect in enumerate(self._collectors):
            results = collect().items()
            tensors |= {f"work{number}/finished/{name}": tensor for name, tensor in results}
        self._write(tensors)


def strip_prefix(tensors: Mapping[str, Tensor], prefix: str) -> Weights:
    """The tensors whose names begin with a prefix, under their names without the prefix."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
