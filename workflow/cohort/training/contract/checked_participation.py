"""The participation's contract."""

from __future__ import annotations

import numpy as np

from cohort.training.contract.answers import array_text, check_shape
from cohort.training.contract.mistakes import WrongAnswer
from cohort.training.contract.read_only import read_only
from cohort.training.participation import Participation


def responds(
    participation: Participation, cohort: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Ask the participation which clients of a cohort respond, check the Boolean mask, and return
    it: at least one responds."""
    mask = check_shape(participation.responds(read_only(cohort), rng), (len(cohort),), "responds")
    if mask.dtype.kind != "b":
        raise WrongAnswer(
            f"responds returned {array_text(mask)}, not true or false for each client"
        )
    if not mask.any():
        raise WrongAnswer("responds returned a mask in which no client responds")
    return mask


def efforts(
    participation: Participation,
    clients: int,
    most: int,
    fixed: np.random.Generator,
    rng: np.random.Generator,
) -> np.ndarray:
    """Ask the participation how many epochs (or steps), of `most`, each client completes; check and
    return these whole numbers from 1 to `most`."""
    numbers = check_shape(participation.efforts(clients, most, fixed, rng), (clients,), "efforts")
    if numbers.dtype.kind not in "iu" or (numbers < 1).any() or (numbers > most).any():
        raise WrongAnswer(
            f"efforts returned {array_text(numbers)}, not whole numbers from 1 to {most}"
        )
    return numbers
