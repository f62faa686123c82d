"""PECO: clients whose predictions agree with those of others are chosen more often."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cohort.core.components import parameter
from cohort.selection import selector as abilities
from cohort.selection.selector import Clients, Reports, Rng, Selector, State, View

CACHE_DTYPE = np.float32  # of the predictions that are kept: what networks usually compute in
BYTES_AT_WORK = 40  # per prediction: reports, the old and the new cache, unit rows


@dataclass(frozen=True, kw_only=True)
class Peco(Selector, abilities.ProbabilityRecording):
    """Draws clients one after another by how similar their predictions on reserved test samples are
    to those of all other clients (PECO, Algorithm 1).

    The similarity of two local models is the sum over samples of the cosine between their softmax
    outputs, scaled by gamma for each of the two that is wrong. A client's score is the sum of its
    similarities, its probability the score to the power of tau, normalized, and averaged over the
    last rounds; a client without samples has none. After each draw the probabilities of the others
    are normalized again.

    Only clients that answered are evaluated; others keep their last predictions. How likely those
    are that never were is left open (`unseen`). All are equally likely before two were.
    """

    name = "peco"
    needs = frozenset({"reserved_predictions", "reserved_correct"})
    tau: float = parameter(5.0, minimum=0, help="exponent of scores: higher favors similar clients")
    gamma: float = parameter(0.5, exclusiveMinimum=0, maximum=1, help="factor of each wrong model")
    window: int = parameter(10, minimum=1, help="rounds over which probabilities are averaged")
    unseen: Literal["mean", "highest", "never", "first"] = parameter(
        "mean", help="score of clients never evaluated: others', 0 (never) or before all (first)"
    )

    def memory(self, reserved: int, classes: int, clients: int) -> int:
        return BYTES_AT_WORK * reserved * classes * clients

    def begin(self, view: View, rng: Rng) -> State:
        return {
            "evaluated": np.zeros(view.clients, dtype=bool),
            "predictions": np.empty((view.clients, 0, 0), dtype=CACHE_DTYPE),
            "correct": np.empty((view.clients, 0), dtype=bool),
            "recent": np.empty((0, view.clients)),
        }

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        rest, cohort = candidates, list[int]()
        while len(cohort) < view.cohort:
            cohort.append(int(rng.choice(rest, p=self.probabilities(state, rest, view))))
            rest = rest[rest != cohort[-1]]
        return np.array(cohort)

    def probabilities(self, state: State, candidates: Clients, view: View) -> np.ndarray:
        recent = state["recent"]
        mean = recent.mean(axis=0) if len(recent) else np.ones(view.clients)
        has_samples = view.sizes[candidates] > 0
        weights = mean[candidates] * has_samples
        weights = weights if weights.any() else has_samples
        if self.unseen == "first":
            awaited = weights * ~state["evaluated"][candidates]
            weights = np.sign(awaited) if awaited.any() else weights
        return to_probabilities(weights)

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        cached = self._with_predictions(state, cohort, reports)
        recent = np.vstack([state["recent"], self.round_probabilities(self.scores(cached))])
        return cached | {"recent": recent[-self.window :]}

    def _with_predictions(self, state: State, cohort: Clients, reports: Reports) -> State:
        """The state with the newest predictions of the clients that answered."""
        predictions, correct = reports["reserved_predictions"], reports["reserved_correct"]
        answered = ~np.isnan(predictions).any(axis=(1, 2))
        cache = {name: array.copy() for name, array in state.items()}
        if not cache["predictions"].size:
            clients = len(cache["evaluated"])
            cache["predictions"] = np.zeros((clients, *predictions.shape[1:]), dtype=CACHE_DTYPE)
            cache["correct"] = np.zeros((clients, *correct.shape[1:]), dtype=bool)
        cache["evaluated"][cohort[answered]] = True
        cache["predictions"][cohort[answered]] = predictions[answered]
        cache["correct"][cohort[answered]] = correct[answered] == 1
        return cache

    def scores(self, state: State) -> np.ndarray:
        """Each client's total similarity to all others, NaN for one that never was evaluated."""
        seen = np.flatnonzero(state["evaluated"])
        scores = np.full(len(state["evaluated"]), np.nan)
        predictions, correct = state["predictions"][seen], state["correct"][seen]
        scores[seen] = similarities(predictions, correct, self.gamma).sum(axis=1)
        return scores

    def round_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """A round's probabilities, by the clients' scores; equal before two are evaluated."""
        evaluated = ~np.isnan(scores)
        if evaluated.sum() < 2:
            return np.full(len(scores), 1 / len(scores))
        by_name = {"highest": scores[evaluated].max(), "never": 0}
        filled = np.where(evaluated, scores, by_name.get(self.unseen, scores[evaluated].mean()))
        return to_probabilities((filled / (filled.max() or 1)) ** self.tau)


def similarities(predictions: np.ndarray, correct: np.ndarray, gamma: float) -> np.ndarray:
    """The similarity of each client to each other, 0 to itself, from predictions (client, sample,
    class) and whether these are `correct`."""
    rows = predictions.astype(np.float64)
    factors = np.where(correct, 1.0, gamma) / np.sqrt(np.einsum("kic,kic->ki", rows, rows))
    rows *= factors[:, :, np.newaxis]
    # (client, sample * class); -1 would be undefined without clients
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    products = flat @ flat.T
    np.fill_diagonal(products, 0)
    return products


def to_probabilities(weights: np.ndarray) -> np.ndarray:
    """Normalize weights to probabilities; equal ones if all weights are 0."""
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
