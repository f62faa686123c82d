"""The contract between rounds and components: what a component is given is read-only, and what it
returns is checked before it can reach a record. A mistake ends the run with one sentence."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cohort.core import UserError, files, lazy, user_files
from cohort.selection import Selector
from cohort.selection import selector as abilities
from cohort.selection.selector import Reports, State, View
from cohort.training.servers import Merged

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from cohort.training.objectives import Objective
    from cohort.training.servers import ServerRule
    from cohort.training.updates import Updates, Weights
else:
    torch = lazy("torch")

# how the names of modules begin that define components
COMPONENTS = (
    f"{user_files.PACKAGE}.",
    *("cohort.data.augmentations", "cohort.models", "cohort.needs", "cohort.selection"),
    *(
        f"cohort.training.{kind}"
        for kind in ("availability", "objectives", "participation", "servers")
    ),
)
# modules that read what components return
READERS = (__name__, "cohort.records.history")


class WrongAnswer(Exception):
    """A component returned what it must not return; the message says what."""


@contextmanager
def locate_errors(strategy: str, round: int) -> Iterator[None]:
    """Turn a wrong answer, an exception or sys.exit inside a component into an error that names the
    strategy, the round, and for an exception the file and line.
    Exceptions from elsewhere pass, unless they come from code that reads answers."""
    where = f"strategy '{strategy}', round {round}"
    try:
        yield
    except WrongAnswer as wrong:
        raise UserError(f"{where}: {wrong}") from None
    except (UserError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        lines, module = [], ""
        for frame, line in traceback.walk_tb(error.__traceback__):
            module = frame.f_globals.get("__name__", "")
            if module.startswith(COMPONENTS):
                code = frame.f_code
                lines.append(
                    f"{files.relative_path(code.co_filename)}, line {line}, in {code.co_name}"
                )
        if module in READERS:  # of the innermost frame
            lines.append("a component returned what cannot be used")
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


class Chosen(NamedTuple):
    """The clients of a cohort, each once, and how much each one's update counts (client), None for
    selectors that do not say."""

    clients: np.ndarray
    weights: np.ndarray | None = None


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
    ) -> Chosen:
        given, selector = (read_only(state), read_only(candidates), read_only(view)), self.selector
        weighs = isinstance(selector, abilities.UpdateWeighing)
        drawn = _checked_clients(selector.select(*given, rng), candidates, "select", weighs)
        if len(drawn) > view.cohort:
            sizes = f"{len(drawn)} clients for a cohort of {view.cohort}"
            raise WrongAnswer(f"select returned {sizes}")
        if not isinstance(selector, abilities.UpdateWeighing):
            return Chosen(drawn)
        weights = selector.weights(given[0], given[1], read_only(drawn), given[2])
        if not isinstance(weights, np.ndarray) or weights.shape != drawn.shape:
            wanted = f"an array with one for each of {len(drawn)} draws"
            raise WrongAnswer(f"weights returned {weights!r:.80}, not {wanted}")
        if not ((weights > 0) & np.isfinite(weights)).all():
            raise WrongAnswer(f"weights returned {weights.tolist()!r:.80}, not numbers above 0")
        _, first, of_draw = np.unique(drawn, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return Chosen(drawn[first[order]], np.bincount(of_draw, weights)[order])

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
        answer = self.selector.probabilities(*map(read_only, (state, candidates, view)))
        if not isinstance(answer, np.ndarray) or answer.shape != candidates.shape:
            wanted = f"an array with one for each of {len(candidates)} candidates"
            raise WrongAnswer(f"probabilities returned {answer!r:.80}, not {wanted}")
        return answer

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
        kept = self.selector.keep(read_only(reports), read_only(sizes))
        if not isinstance(kept, np.ndarray) or kept.dtype != bool or kept.shape != sizes.shape:
            raise WrongAnswer(f"keep returned {kept!r:.80}, not {len(sizes)} times true or false")
        return kept

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        given = map(read_only, (state, cohort, reports, view))
        return _checked_state(self.selector.observe(*given), "observe")


def _checked_clients(
    answer: Any, candidates: np.ndarray, method: str, repeated: bool = False
) -> np.ndarray:
    """Return clients; raise WrongAnswer unless they are at least one, candidates, and distinct,
    which is not asked of `repeated` draws."""
    clients = np.asarray(answer)
    if not clients.size:
        raise WrongAnswer(f"{method} returned no client")
    returned = f"{method} returned {clients.tolist()!r:.80}"
    if clients.ndim != 1 or clients.dtype.kind not in "iu":
        raise WrongAnswer(f"{returned}, not a row of client numbers")
    numbers, counts = np.unique(clients, return_counts=True)
    if (counts > 1).any() and not repeated:
        raise WrongAnswer(f"{returned}, in which client {numbers[counts > 1][0]} is twice")
    if strangers := np.setdiff1d(numbers, candidates).tolist():
        raise WrongAnswer(f"{returned}, but client {strangers[0]} is not a candidate")
    return clients


def _checked_state(state: State, method: str) -> State:
    """Return a copy of a state; raise WrongAnswer unless it is arrays of numbers by name."""
    for name, array in _by_name(state, method).items():
        if not isinstance(array, np.ndarray | np.generic) or array.dtype.kind not in "fiub":
            raise WrongAnswer(f"{method} returned {array!r:.80} as {name}, not an array of numbers")
    return dict(state)


def _by_name(answer: Any, method: str) -> Mapping[str, Any]:
    """Return an answer; raise WrongAnswer unless it is a mapping."""
    if not isinstance(answer, Mapping):
        raise WrongAnswer(f"{method} returned {answer!r:.80}, not values by name")
    return answer


def _declared(metrics: dict[str, float], names: Mapping[str, Any], method: str) -> dict[str, float]:
    for name, value in _by_name(metrics, method).items():
        try:
            float(value)
        except (TypeError, ValueError, RuntimeError):
            wrong = f"{method} returned {value!r:.80} as '{name}', not a number"
            raise WrongAnswer(wrong) from None
    if strangers := sorted(metrics.keys() - names.keys()):
        raise WrongAnswer(f"{method} returned '{strangers[0]}', which is not declared in metrics")
    return metrics


def losses_of(
    objective: Objective, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor
) -> Tensor:
    """The objective's loss of each sample of a batch."""
    losses = objective.losses(outputs, targets, statistics, bias)
    if not isinstance(losses, torch.Tensor) or losses.shape != targets.shape:
        wanted = f"one loss for each of {len(targets)} samples"
        returned = f"losses returned {_form_of(losses)}, not {wanted}"
        raise WrongAnswer(f"objective '{objective.name}': {returned}")
    if outputs.requires_grad:  # not seen under vmap
        check_gradients(objective, losses)
    return losses


def check_gradients(objective: Objective, losses: Tensor) -> None:
    """Raise WrongAnswer if losses do not depend on the network."""
    if not losses.requires_grad:
        raise WrongAnswer(f"objective '{objective.name}': losses returned values without gradients")


def merge(rule: ServerRule, weights: Weights, updates: Updates, memory: Weights) -> Merged:
    """Let a server rule merge updates, in full precision, and return its result: weights with the
    names, shapes and types of those before, and metrics that it declares."""
    given = [*weights.values(), *updates.weights.values(), *memory.values()]
    versions = [tensor._version for tensor in given]
    with torch.autocast(updates.sizes.device.type, enabled=False):
        merged = rule.apply(dict(weights), updates, dict(memory))
    if [tensor._version for tensor in given] != versions:
        raise WrongAnswer("apply changed a tensor in place; work on a copy (tensor.clone())")
    if not isinstance(merged, Merged):
        returned = f"apply returned {merged!r:.80}"
        raise WrongAnswer(f"{returned}, not weights, memory and metrics (Merged)")
    for name in sorted(weights.keys() | _by_name(merged.weights, "apply").keys()):
        before, after = (_form_of(tensors.get(name)) for tensors in (weights, merged.weights))
        if before != after:
            raise WrongAnswer(f"apply returned the weights '{name}' as {after}, not {before}")
    checked_memory(merged.memory, "apply")
    _declared(merged.measured, rule.metrics, "apply")
    return merged


def checked_memory(memory: Weights, method: str) -> Weights:
    """Return a copy of a server rule's memory; raise WrongAnswer unless it is tensors by name."""
    for name, tensor in _by_name(memory, method).items():
        if not isinstance(tensor, torch.Tensor):
            raise WrongAnswer(f"{method} returned {tensor!r:.80} as {name}, not a tensor")
    return dict(memory)


def _form_of(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return f"{value!r:.80}"
