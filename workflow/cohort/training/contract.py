"""The contract between rounds and components: what a component is given is read-only, and what it
returns is checked before it can reach a record. A mistake ends the run with one sentence."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from cohort.core import user_files
from cohort.core.errors import UserError
from cohort.core.files import relative_path
from cohort.core.lazy import lazy
from cohort.core.process import unchanged_process
from cohort.selection import Selector
from cohort.selection import selector as abilities
from cohort.selection.selector import Reports, State, View

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from cohort.training.objectives import Objective
    from cohort.training.servers import Merged, ServerRule
    from cohort.training.updates import Updates, Weights
else:
    torch = lazy("torch")

# how the names of modules begin that define components
COMPONENTS = (
    f"{user_files.PACKAGE}.",
    *("cohort.data.augmentations", "cohort.models", "cohort.needs", "cohort.selection"),
    *(f"cohort.training.{kind}" for kind in ("objectives", "participation", "servers")),
)


class WrongAnswer(Exception):
    """A component returned what it must not return; the message says what."""


@contextmanager
def locate_errors(strategy: str, round: int) -> Iterator[None]:
    """Turn a wrong answer, an exception or sys.exit inside a component, and a change of the process
    into an error that names the strategy, the round, and for an exception the file and line.
    Exceptions from elsewhere pass."""
    where = f"strategy '{strategy}', round {round}"
    try:
        with unchanged_process(f"{where}: a component"):
            yield
    except WrongAnswer as wrong:
        raise UserError(f"{where}: {wrong}") from None
    except (UserError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        lines = [
            f"{relative_path(frame.f_code.co_filename)}, line {line}, in {frame.f_code.co_name}"
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_globals.get("__name__", "").startswith(COMPONENTS)
        ]
        if not lines:
            raise
        reason = f"{type(error).__name__}: {error}"
        if "read-only" in reason or "mappingproxy" in reason:
            reason += "; what a component is given is read-only: change a copy and return it"
        raise UserError(f"{where}: {lines[-1]}: {reason}") from error


def read_only(value: Any) -> Any:
    """What a component is given: arrays, mappings of arrays and views that cannot be written to,
    and everything else as it is."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    elif isinstance(value, Mapping):
        return MappingProxyType({name: read_only(part) for name, part in value.items()})
    elif isinstance(value, View):
        parts = ("sizes", "label_counts", "reports")
        return replace(value, **{name: read_only(getattr(value, name)) for name in parts})
    return value


class CheckedSelector:
    """A selector that gets read-only arrays, and whose answers are checked, with the methods of all
    abilities. Where it lacks one, all candidates are the pool, all needs are gathered, all samples
    that are `held` are used, all updates count, and nothing is measured."""

    def __init__(self, selector: Selector):
        self.selector = selector
        self.draws_pool = isinstance(selector, abilities.Screening)
        self.allocates = isinstance(selector, abilities.Allocating)
        self.redraws = not isinstance(selector, abilities.Allocating) or selector.redraw
        self.probe_batches = selector.batches if isinstance(selector, abilities.Probing) else 0

    def asks(self, state: State, view: View) -> bool:
        if not isinstance(self.selector, abilities.Skipping):
            return True
        return bool(self.selector.asks(read_only(state), read_only(view)))

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return _checked_state(self.selector.begin(read_only(view), rng), "begin")

    def draw_pool(self, candidates: np.ndarray, view: View, rng: np.random.Generator) -> np.ndarray:
        if not isinstance(self.selector, abilities.Screening):
            return candidates
        pool = self.selector.draw_pool(read_only(candidates), read_only(view), rng)
        return _checked_clients(pool, candidates, "draw_pool")

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        given = read_only(state), read_only(candidates), read_only(view)
        cohort = _checked_clients(self.selector.select(*given, rng), candidates, "select")
        if len(cohort) > view.cohort:
            sizes = f"{len(cohort)} clients for a cohort of {view.cohort}"
            raise WrongAnswer(f"select returned {sizes}")
        return cohort

    def measure(
        self, state: State, candidates: np.ndarray, cohort: np.ndarray, view: View
    ) -> dict[str, float]:
        if not isinstance(self.selector, abilities.MetricRecording):
            return {}
        metrics = self.selector.measure(*map(read_only, (state, candidates, cohort, view)))
        return _declared(metrics, self.selector.metrics, "measure")

    def probabilities(self, state: State, candidates: np.ndarray, view: View) -> np.ndarray | None:
        if not isinstance(self.selector, abilities.Weighing):
            return None
        return self.selector.probabilities(*map(read_only, (state, candidates, view)))

    def quotas(self, cohort: np.ndarray, view: View, held: np.ndarray) -> np.ndarray:
        if not isinstance(self.selector, abilities.Allocating):
            return held
        quotas = np.asarray(self.selector.quotas(read_only(cohort), read_only(view)))
        if quotas.shape != held.shape or quotas.dtype.kind not in "iu" or (quotas < 0).any():
            wanted = f"whole numbers from 0 up of shape {held.shape} (client, class)"
            returned = f"{quotas.dtype} of shape {quotas.shape}"
            raise WrongAnswer(f"quotas returned {returned}, not {wanted}")
        return quotas

    def keep(self, reports: Reports, sizes: np.ndarray) -> np.ndarray:
        if not isinstance(self.selector, abilities.Filtering):
            return np.ones(len(sizes), dtype=bool)
        return self.selector.keep(read_only(reports), read_only(sizes))

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        given = map(read_only, (state, cohort, reports, view))
        return _checked_state(self.selector.observe(*given), "observe")


def _checked_clients(answer: Any, candidates: np.ndarray, method: str) -> np.ndarray:
    """Return clients; raise WrongAnswer unless they are at least one, distinct, and candidates."""
    clients = np.asarray(answer)
    if not clients.size:
        raise WrongAnswer(f"{method} returned no client")
    returned = f"{method} returned {clients.tolist()!r:.80}"
    if clients.ndim != 1 or clients.dtype.kind not in "iu":
        raise WrongAnswer(f"{returned}, not a row of client numbers")
    numbers, counts = np.unique(clients, return_counts=True)
    if (counts > 1).any():
        raise WrongAnswer(f"{returned}, in which client {numbers[counts > 1][0]} is twice")
    if strangers := np.setdiff1d(numbers, candidates).tolist():
        raise WrongAnswer(f"{returned}, but client {strangers[0]} is not a candidate")
    return clients


def _checked_state(state: State, method: str) -> State:
    """Return a copy of a state; raise WrongAnswer unless it is arrays of numbers by name."""
    for name, array in state.items():
        if not isinstance(array, np.ndarray | np.generic) or array.dtype.kind not in "fiub":
            raise WrongAnswer(f"{method} returned {array!r:.80} as {name}, not an array of numbers")
    return dict(state)


def _declared(metrics: dict[str, float], names: Mapping[str, Any], method: str) -> dict[str, float]:
    if strangers := sorted(metrics.keys() - names.keys()):
        raise WrongAnswer(f"{method} returned '{strangers[0]}', which is not declared in metrics")
    return metrics


def losses_of(
    objective: Objective, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor
) -> Tensor:
    """The objective's loss of each sample of a batch."""
    losses = objective.losses(outputs, targets, statistics, bias)
    if losses.shape != targets.shape:
        returned = f"a tensor of shape {tuple(losses.shape)}, not one loss for each of"
        where = f"objective '{objective.name}'"
        raise WrongAnswer(f"{where}: losses returned {returned} {len(targets)} samples")
    return losses


def merge(rule: ServerRule, weights: Weights, updates: Updates, memory: Weights) -> Merged:
    """Let a server rule merge updates, in full precision, and return its result: weights with the
    names, shapes and types of those before, and metrics that it declares."""
    given = [*weights.values(), *updates.weights.values(), *memory.values()]
    versions = [tensor._version for tensor in given]
    with torch.autocast(updates.sizes.device.type, enabled=False):
        merged = rule.apply(dict(weights), updates, dict(memory))
    if [tensor._version for tensor in given] != versions:
        raise WrongAnswer("apply changed a tensor in place; work on a copy (tensor.clone())")
    for name in sorted(weights.keys() | merged.weights.keys()):
        before, after = (_form_of(tensors.get(name)) for tensors in (weights, merged.weights))
        if before != after:
            raise WrongAnswer(f"apply returned the weights '{name}' as {after}, not {before}")
    _declared(merged.measured, rule.metrics, "apply")
    return merged


def _form_of(tensor: Tensor | None) -> str:
    return "nothing" if tensor is None else f"{tensor.dtype} of shape {tuple(tensor.shape)}"
