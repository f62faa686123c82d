"""Checks of arrays and metrics that components return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from cohort.training.contract.mistakes import WrongAnswer

SHOWN = 8  # values of a wrong answer that an error quotes


def check_shape(answer: Any, shape: tuple[int, ...], method: str) -> np.ndarray:
    """Convert what a method returned to an array; raise WrongAnswer unless it has this shape."""
    array = as_array(answer, method)
    if array.shape != shape:
        raise WrongAnswer(f"{method} returned an array of shape {array.shape}, not {shape}")
    return array


def as_array(answer: Any, method: str) -> np.ndarray:
    """Convert what a method returned to an array; raise WrongAnswer if that is impossible."""
    try:
        return np.asarray(answer)
    except ValueError:  # lists of different lengths
        raise WrongAnswer(f"{method} returned {answer!r:.80}, not an array") from None


def array_text(array: np.ndarray) -> str:
    """An array's values, or the first of them, as text."""
    values = ", ".join(map(str, array.ravel()[:SHOWN].tolist()))
    return f"[{values}{', ...' if array.size > SHOWN else ''}]"


def check_metrics(
    answer: Any,
    declared: Iterable[str],
    *,
    method: str,
    owner: str,
    inputs_are_finite: Callable[[], bool],
) -> dict[str, float]:
    """Check the metrics that a method of a component (its `owner`) returned, numbers under declared
    names, and return them.

    They must be finite unless what they were computed from is not: a run that diverges is a result.
    """
    if not isinstance(answer, Mapping):
        raise WrongAnswer(f"{method} returned {answer!r:.80}, not metrics by name")
    names = list(declared)
    for name, value in answer.items():
        if name not in names:
            raise WrongAnswer(
                f"{method} returned '{name}', which the {owner} does not declare in metrics"
            )
        number = np.asarray(value)
        if number.ndim or number.dtype.kind not in "fiub":
            raise WrongAnswer(f"{method} returned {value!r:.80} as {name}, not a number")
        if not np.isfinite(number) and inputs_are_finite():
            raise WrongAnswer(f"{method} returned {value} as {name}, not a finite number")
    return dict(answer)
