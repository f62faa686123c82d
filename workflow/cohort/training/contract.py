"""The contract between rounds and components: what a component is given is read-only, and what it
returns is checked before it can reach a record. A mistake ends the run with one sentence."""

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, replace
from types import MappingProxyType
from typing import Any, NamedTuple, SupportsFloat, TypeVar

import numpy as np
import torch
from torch import Tensor

from cohort.core import UserError, user_files
from cohort.core.metric import ROUNDING
from cohort.needs import NEEDS
from cohort.selection import Selector
from cohort.selection import selector as abilities
from cohort.selection.selector import Clients, Metrics, Reports, Rng, State, View
from cohort.training.objectives import Objective
from cohort.training.servers import Merged, ServerRule
from cohort.training.updates import Updates, Weights

T = TypeVar("T")
# prefixes of the modules that define components
COMPONENTS = (
    f"{user_files.PACKAGE}.", "cohort.data.augmentations", "cohort.models", "cohort.needs",
    "cohort.selection", "cohort.training.availability", "cohort.training.devices",
    "cohort.training.evaluators", "cohort.training.objectives", "cohort.training.participation",
    "cohort.training.servers",
)  # fmt: skip
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
    except WrongAnswer as error:
        raise UserError(f"{where}: {error}") from None
    except (UserError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        position = user_files.user_position(error, COMPONENTS)
        *_, (innermost, _) = traceback.walk_tb(error.__traceback__)
        if innermost.f_globals.get("__name__") in READERS:
            position = "a component takes other arguments or returned what cannot be used"
        if not position:
            raise
        reason = f"{type(error).__name__}: {error}"
        if "read-only" in reason or "mappingproxy" in reason:
            reason += "; what a component is given is read-only: change a copy and return it"
        if isinstance(error, FrozenInstanceError):
            reason += "; a component keeps nothing: put it into the state that is returned"
        if isinstance(error, KeyError) and error.args[0] in NEEDS:
            reason += "; the selector must list it in needs"
        raise UserError(f"{where}: {position}: {reason}") from error


def read_only(value: Any) -> Any:
    """Return read-only views of arrays, mappings of arrays and Views; other values unchanged."""
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
    """The distinct clients of a cohort, and each one's weight if the selector weighs updates."""

    clients: np.ndarray
    weights: np.ndarray | None = None


class CheckedSelector:
    """Wraps a selector: its arguments are read-only, its answers are checked. It has the methods of
    all abilities. If the selector lacks one, all candidates are the pool, all needs are gathered,
    all samples are used, all updates count, and nothing is measured."""

    def __init__(self, selector: Selector):
        self.selector = selector
        self.draws_pool = isinstance(selector, abilities.Screening)
        self.allocates = isinstance(selector, abilities.Allocating)
        self.redraws = not isinstance(selector, abilities.Allocating) or selector.redraw
        self.probe_batches = selector.batches if isinstance(selector, abilities.Probing) else 0

    def asks(self, state: State, view: View) -> bool:
        if not isinstance(self.selector, abilities.ConditionalNeeds):
            return True
        return bool(self.selector.asks(read_only(state), read_only(view)))

    def begin(self, view: View, rng: Rng) -> State:
        return _checked_state(self.selector.begin(read_only(view), rng), "begin")

    def draw_pool(self, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        if not isinstance(self.selector, abilities.Screening):
            return candidates
        pool = self.selector.draw_pool(read_only(candidates), read_only(view), rng)
        return _checked_clients(pool, candidates, "draw_pool", repeated=False)

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> Chosen:
        state, candidates, view = map(read_only, (state, candidates, view))
        answer = self.selector.select(state, candidates, view, rng)
        weighs = isinstance(self.selector, abilities.UpdateWeighing)
        draws = _checked_clients(answer, candidates, "select", weighs)
        if len(draws) > view.cohort:
            raise WrongAnswer(f"select returned {len(draws)} clients for a cohort of {view.cohort}")
        if not isinstance(self.selector, abilities.UpdateWeighing):
            return Chosen(draws)
        weights = np.asarray(self.selector.weights(state, candidates, read_only(draws), view))
        fits = weights.shape == draws.shape and bool(((weights > 0) & (weights < np.inf)).all())
        require(fits, "weights", weights, f"a number above 0 for each of {len(draws)} draws")
        _, first, of_draw = np.unique(draws, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return Chosen(draws[first[order]], np.bincount(of_draw, weights)[order])

    def measure(self, state: State, candidates: Clients, cohort: Clients, view: View) -> Metrics:
        if not isinstance(self.selector, abilities.MetricRecording):
            return {}
        metrics = self.selector.measure(*map(read_only, (state, candidates, cohort, view)))
        return checked_metrics(metrics, self.selector.metrics, "measure")

    def probabilities(self, state: State, candidates: Clients, view: View) -> np.ndarray | None:
        if not isinstance(self.selector, abilities.ProbabilityRecording):
            return None
        answer = np.asarray(self.selector.probabilities(*map(read_only, (state, candidates, view))))
        wanted = f"a number from 0 to 1 for each of {len(candidates)} candidates"
        are_shares = bool(((answer >= 0) & (answer <= 1 + ROUNDING)).all())
        fits = answer.shape == candidates.shape and are_shares
        return require(fits, "probabilities", answer, wanted)

    def quotas(self, cohort: Clients, view: View, counts: np.ndarray) -> np.ndarray:
        if not isinstance(self.selector, abilities.Allocating):
            return counts
        quotas = np.asarray(self.selector.quotas(read_only(cohort), read_only(view)))
        fits = quotas.shape == counts.shape and quotas.dtype.kind in "iu" and quotas.min() >= 0
        wanted = f"whole numbers from 0 up of shape {counts.shape} (client, class)"
        return np.minimum(require(fits, "quotas", quotas, wanted), counts)

    def keep(self, reports: Reports, sizes: np.ndarray) -> np.ndarray:
        if not isinstance(self.selector, abilities.Filtering):
            return np.ones(len(sizes), dtype=bool)
        kept = self.selector.keep(read_only(reports), read_only(sizes))
        return checked_mask(kept, len(sizes), "keep")

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        after = self.selector.observe(*map(read_only, (state, cohort, reports, view)))
        after = _checked_state(after, "observe")
        before = {name: array.dtype for name, array in state.items()}
        types = {name: array.dtype for name, array in after.items()}
        require(types == before, "observe", types, f"arrays as before, {before}")
        return after


def require(holds: bool, method: str, answer: T, wanted: str, name: str = "") -> T:
    """Return a method's answer, or its part of this name; raise WrongAnswer unless as wanted."""
    if not holds:
        part = f" as {name}" if name else ""
        raise WrongAnswer(f"{method} returned {_form_of(answer)}{part}, not {wanted}")
    return answer


def checked_mask(answer: Any, count: int, method: str) -> np.ndarray:
    """Return a method's answer; raise WrongAnswer unless it is a Boolean mask of so many."""
    mask = np.asarray(answer)
    is_mask = mask.dtype == bool and mask.shape == (count,)
    return require(is_mask, method, mask, f"{count} times true or false")


def _form_of(value: Any) -> str:
    if isinstance(value, torch.Tensor) or (isinstance(value, np.ndarray) and value.ndim):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return f"{value!r:.80}"


def _checked_clients(answer: Any, candidates: Clients, method: str, repeated: bool) -> Clients:
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
    if others := numbers[~np.isin(numbers, candidates)].tolist():
        raise WrongAnswer(f"{returned}, but client {others[0]} is not a candidate")
    return clients


def _checked_state(state: State, method: str) -> State:
    """Return a copy of a state; raise WrongAnswer unless it is arrays of numbers by name."""
    for name, array in _by_name(state, method).items():
        are_numbers = isinstance(array, np.ndarray | np.generic) and array.dtype.kind in "fiub"
        require(are_numbers, method, array, "an array of numbers", name)
    return dict(state)


def _by_name(answer: Any, method: str) -> Mapping[str, Any]:
    """Return an answer; raise WrongAnswer unless it is a mapping."""
    return require(isinstance(answer, Mapping), method, answer, "values by name")


def checked_metrics(metrics: Metrics, declared: Mapping[str, Any], method: str) -> Metrics:
    """Return metrics; raise WrongAnswer unless they are numbers by name, all of them declared."""
    for name, value in _by_name(metrics, method).items():
        is_number = isinstance(value, SupportsFloat) and not getattr(value, "ndim", 0)
        require(is_number, method, value, "a number", name)
    if undeclared := sorted(metrics.keys() - declared.keys()):
        raise WrongAnswer(f"{method} returned '{undeclared[0]}', which is not declared in metrics")
    for name, value in metrics.items():
        is_possible = declared[name].is_plausible(np.array(float(value)), diverged=True)
        require(is_possible, method, value, "a value that its declaration allows", name)
    return metrics


def losses_of(
    objective: Objective, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor
) -> Tensor:
    """The objective's loss of each sample of a batch."""
    losses = objective.losses(outputs, targets, statistics, bias)
    if not isinstance(losses, torch.Tensor) or losses.shape != targets.shape:
        returned = f"{_form_of(losses)}, not one loss for each of {len(targets)} samples"
        raise WrongAnswer(f"objective '{objective.name}': losses returned {returned}")
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
    tensors = [*weights.values(), *updates.weights.values(), *memory.values()]
    versions = [tensor._version for tensor in tensors]
    with torch.autocast(updates.sizes.device.type, enabled=False):
        merged = rule.apply(dict(weights), updates, dict(memory))
    if [tensor._version for tensor in tensors] != versions:
        raise WrongAnswer("apply changed a tensor in place; work on a copy (tensor.clone())")
    require(isinstance(merged, Merged), "apply", merged, "weights, memory and metrics (Merged)")
    for name in sorted(weights.keys() | _by_name(merged.weights, "apply").keys()):
        before, after = weights.get(name), merged.weights.get(name)
        is_alike = _form_of(before) == _form_of(after)
        require(is_alike, "apply", after, _form_of(before), f"the weights '{name}'")
    checked_memory(merged.memory, "apply")
    checked_metrics(merged.measured, rule.metrics, "apply")
    return merged


def checked_memory(memory: Weights, method: str) -> Weights:
    """Return a copy of a server rule's memory; raise WrongAnswer unless it is tensors by name."""
    for name, tensor in _by_name(memory, method).items():
        require(isinstance(tensor, torch.Tensor), method, tensor, "a tensor", name)
    return dict(memory)
