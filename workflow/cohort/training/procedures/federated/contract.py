"""What selectors and needs return, checked in every round before it can reach a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from cohort.core.errors import UserError
from cohort.training.gathering import WrongAnswer

SHOWN = 8  # values of a wrong answer that an error quotes


@contextmanager
def answering(strategy: str, round: int) -> Iterator[None]:
    """Turn a wrong answer in this block into an error that names the strategy and the round."""
    try:
        yield
    except WrongAnswer as wrong:
        raise UserError(f"strategy '{strategy}', round {round}: {wrong}") from None


def check_clients(found: Any, candidates: np.ndarray, method: str) -> np.ndarray:
    """The clients that a method of the selector returned: some, distinct, all candidates."""
    clients = _array(found, method)
    if not clients.size:
        raise WrongAnswer(f"{method} returned no client")
    if clients.ndim != 1 or clients.dtype.kind not in "iu":
        raise WrongAnswer(f"{method} returned {_shown(clients)}, not a row of client numbers")
    numbers = clients.tolist()
    if len(set(numbers)) < len(numbers):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise WrongAnswer(f"{method} returned {_shown(clients)}, in which client {twice} is twice")
    if not (known := np.isin(clients, candidates)).all():
        stranger = clients[~known][0]
        raise WrongAnswer(
            f"{method} returned {_shown(clients)}, but client {stranger} is no candidate"
        )
    return clients


def check_cohort(found: Any, candidates: np.ndarray, size: int) -> np.ndarray:
    """The cohort that `select` returned: distinct candidates, no more than its size."""
    cohort = check_clients(found, candidates, "select")
    if len(cohort) > size:
        raise WrongAnswer(f"select returned {len(cohort)} clients for a cohort of {size}")
    return cohort


def check_quotas(found: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The quotas of a cohort: for each client and class, a whole number of samples."""
    quotas = _check_shape(found, shape, "quotas")
    if quotas.dtype.kind not in "iu" or (quotas < 0).any():
        raise WrongAnswer(f"quotas returned {_shown(quotas)}, not whole numbers from 0 up")
    return quotas


def check_kept(found: Any, updates: int) -> np.ndarray:
    """Which updates the selector keeps: a truth value for each."""
    kept = _check_shape(found, (updates,), "keep")
    if kept.dtype.kind != "b":
        raise WrongAnswer(f"keep returned {_shown(kept)}, not true or false for each update")
    return kept


def check_probabilities(found: Any, candidates: int) -> np.ndarray:
    """The probability of each candidate."""
    chances = _check_shape(found, (candidates,), "probabilities")
    if chances.dtype.kind not in "fiu" or not (chances >= 0).all() or np.isinf(chances).any():
        raise WrongAnswer(f"probabilities returned {_shown(chances)}, not finite numbers from 0 up")
    return chances


def check_metrics(
    found: Any, declared: Iterable[str], inputs: Iterable[np.ndarray]
) -> dict[str, float]:
    """The metrics of a round: numbers under declared names.

    They must be finite unless one of the `inputs` is not: a run that diverges is a result.
    """
    if not isinstance(found, Mapping):
        raise WrongAnswer(f"measure returned {found!r:.80}, not metrics by name")
    known = list(declared)
    for name, value in found.items():
        if name not in known:
            raise WrongAnswer(
                f"measure returned '{name}', which the selector does not declare in metrics"
            )
        number = np.asarray(value)
        if number.ndim or number.dtype.kind not in "fiub":
            raise WrongAnswer(f"measure returned {value!r:.80} as {name}, not a number")
        if not np.isfinite(number) and all(np.isfinite(array).all() for array in inputs):
            raise WrongAnswer(f"measure returned {value} as {name}, not a finite number")
    return dict(found)


def check_state(found: Any, method: str) -> dict[str, np.ndarray]:
    """The selector's memory: arrays of numbers by name."""
    if not isinstance(found, dict):
        raise WrongAnswer(f"{method} returned {found!r:.80}, not arrays by name")
    for name, array in found.items():
        if not isinstance(array, np.ndarray | np.generic) or array.dtype.kind not in "fiub":
            raise WrongAnswer(f"{method} returned {array!r:.80} as {name}, not an array of numbers")
    return found


def _check_shape(found: Any, shape: tuple[int, ...], method: str) -> np.ndarray:
    array = _array(found, method)
    if array.shape != shape:
        raise WrongAnswer(f"{method} returned an array of shape {array.shape}, not {shape}")
    return array


def _array(found: Any, method: str) -> np.ndarray:
    try:
        return np.asarray(found)
    except ValueError:  # lists of different lengths
        raise WrongAnswer(f"{method} returned {found!r:.80}, not an array") from None


def _shown(array: np.ndarray) -> str:
    """An array's values, or the first of them."""
    values = ", ".join(map(str, array.ravel()[:SHOWN].tolist()))
    return f"[{values}{', ...' if array.size > SHOWN else ''}]"
