"""The losses that selectors ask for, and what they cost."""

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from cohort.selection.selector import Rng, Screening, View
from cohort.training.job.train import TRAINERS
from tests.needs import by_hand
from tests.needs.by_hand import MODEL_BYTES, Spy, costs, played, spying, task_by_hand

LN2 = math.log(2)
HALF = (LN2, 0.0, 0.0)  # softmax (1/2, 1/4, 1/4)
GLOBAL_LOSSES = [1.5 * LN2, 2 * LN2, 5 / 3 * LN2]  # (2 + 2 * 2) / 4, 2, (1 + 2 * 2) / 3 bits


@dataclass(frozen=True, kw_only=True)
class CandidateSpy(Spy, Screening):
    """Asks two clients and chooses one of them."""

    needs: ClassVar[frozenset[str]] = frozenset({"candidate_loss"})
    pool: tuple[int, ...] = (2, 0)

    def draw_pool(self, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        return np.array(self.pool)


ReservedSpy = spying("reserved_loss")
TrainingSpy = spying("training_loss")
LastBatchSpy = spying("last_batch_loss_norm", "bias_update", "samples_per_round")


def trained_bias(shares: tuple[float, float, float]) -> np.ndarray:
    """The bias after one step from zero, at a learning rate of 0.3."""
    return 0.3 * (np.array(shares) - 1 / 3)


def loss_on_reserved(bias: np.ndarray) -> float:
    return math.log(np.exp(bias).sum()) - float(bias[list(by_hand.RESERVED)].mean())


def test_candidate_loss_is_the_global_models_on_a_clients_own_samples():
    played(task_by_hand(selector := CandidateSpy(pool=(1, 3, 0, 2)), HALF, cohort=1))
    losses = selector.views[1].reports["candidate_loss"]
    np.testing.assert_allclose(losses, [*GLOBAL_LOSSES, math.nan], rtol=1e-12)


def test_candidate_loss_is_that_of_the_current_model():
    """After round 1 the bias is client 2's: a step from zero with its label shares."""
    played(task_by_hand(selector := CandidateSpy(), cohort=1, rounds=2))
    first, second = (selector.views[index].reports["candidate_loss"] for index in (1, 3))
    np.testing.assert_allclose(first[[2, 0]], [math.log(3)] * 2, rtol=1e-12)
    bias = trained_bias((1 / 3, 0, 2 / 3))
    logs = bias - math.log(np.exp(bias).sum())
    expected = [-(logs[0] + 2 * logs[2]) / 3, -(2 * logs[0] + logs[1] + logs[2]) / 4]
    np.testing.assert_allclose(second[[2, 0]], expected, rtol=1e-12)


def test_what_candidate_losses_cost():
    """Two clients receive the model and send four bytes; one of them trains and sends its model,
    but needs not receive it again. They hold four and three samples."""
    state = played(task_by_hand(CandidateSpy(), cohort=1, rounds=2))
    assert costs(state, "bytes_down") == [2 * MODEL_BYTES] * 2
    assert costs(state, "bytes_up") == [MODEL_BYTES + 2 * 4] * 2
    assert costs(state, "selection_samples") == [7] * 2
    assert state.history.traffic["candidate_loss"].tolist() == [2 * 2 * 4, 0, 0]
    assert state.history.traffic["model"].tolist() == [2 * MODEL_BYTES, 4 * MODEL_BYTES, 0]


def test_candidates_report_the_loss_on_another_batch_in_each_round():
    """In batches of two the first client's labels cost 2, 3 or 4 bits together, the second one's 4,
    and the third one's 3 or 4."""
    selector = spying("candidate_batch_loss")()
    state = played(task_by_hand(selector, HALF, batch=2, rounds=30, lr=1e-30))
    losses = np.stack([view.reports["candidate_batch_loss"] for view in selector.views[1::2]])
    bits = [set((2 * column / LN2).round(9)) for column in losses[:, :3].T]
    assert bits == [{2, 3, 4}, {4}, {3, 4}] and np.isnan(losses[:, 3]).all()
    assert costs(state, "selection_samples") == [2 + 2 + 2] * 30
    assert costs(state, "bytes_up") == [4 * (MODEL_BYTES + 4)] * 30


def test_training_loss_is_that_of_a_clients_own_steps():
    """The only step of each client starts from the global model and takes all its samples. The
    number costs four bytes and no evaluation; the client without samples has none to send."""
    state = played(task_by_hand(selector := TrainingSpy(), HALF))
    (reports,) = selector.reports
    np.testing.assert_allclose(reports["training_loss"], [*GLOBAL_LOSSES, math.nan], rtol=1e-12)
    assert costs(state, "selection_samples") == [0]
    assert costs(state, "bytes_up") == [4 * (MODEL_BYTES + 4)]


def test_received_loss_is_the_global_models_whatever_the_steps_do():
    """Two steps change the loss, not what each client measured before them, on all its samples."""
    state = played(task_by_hand(selector := spying("received_loss")(), HALF, J="J2"))
    (reports,) = selector.reports
    np.testing.assert_allclose(reports["received_loss"], [*GLOBAL_LOSSES, math.nan], rtol=1e-12)
    assert costs(state, "selection_samples") == [4 + 2 + 3]
    assert costs(state, "bytes_up") == [4 * (MODEL_BYTES + 4)]


def test_candidate_accuracy_is_the_global_models_on_a_clients_own_samples():
    """The bias decides for class 0, of which the clients hold 2 of 4, 0 of 2 and 1 of 3."""
    played(task_by_hand(selector := spying("candidate_accuracy")(), HALF))
    accuracies = selector.views[1].reports["candidate_accuracy"]
    np.testing.assert_allclose(accuracies, [1 / 2, 0, 1 / 3, math.nan])


def possible_outcomes(labels: tuple[int, ...]) -> list[tuple[np.ndarray, float]]:
    """All ways to take one or two steps on batches of two of the samples with these labels, each
    once: the bias after them, and the root mean square of the last batch's losses."""
    results = []
    for order in set(itertools.permutations(labels)):
        bias = np.zeros(3)
        for batch in (list(order[:2]), list(order[2:] or order[:2])):
            bias = bias + 0.3 * (np.bincount(batch, minlength=3) / len(batch) - softmax(bias))
            losses = -np.log(softmax(bias)[batch])
            results.append((bias, float(np.sqrt((losses**2).mean()))))
    return results


def softmax(bias: np.ndarray) -> np.ndarray:
    return np.exp(bias) / np.exp(bias).sum()


@pytest.mark.parametrize("participation", ["full", "stragglers-1"])
def test_the_last_batch_is_that_of_the_last_step_that_a_client_took(participation: str):
    """How the bias moved tells which batches a client took; stragglers may take the first only."""
    seen = set()
    for seed in range(8):
        settings = {"J": "J2", "batch": 2, "participation": participation, "seed": seed}
        state = played(task_by_hand(selector := LastBatchSpy(), **settings))
        (reports,) = selector.reports
        norms, biases = reports["last_batch_loss_norm"], reports["bias_update"]
        for client in range(3):
            matches = {
                round(norm, 12)
                for bias, norm in possible_outcomes(by_hand.LABELS[client])
                if np.allclose(bias, biases[client], rtol=0, atol=1e-12)
            }
            assert matches == {round(float(norms[client]), 12)}
            seen |= {(client, *matches)}
        assert math.isnan(norms[3])
        assert costs(state, "bytes_up") == [4 * (MODEL_BYTES + 4)]
        if participation == "full":  # the last batches have 2, 2 and 1 of 4, 2 and 3 samples
            assert costs(state, "selection_samples") == [5]
    assert len(seen) > 4


@pytest.mark.parametrize(
    ("J", "samples"), [("J1", [2, 2, 2, 0]), ("J2", [4, 2, 3, 0]), ("J1e", [4, 2, 3, 0])]
)
def test_samples_per_round(J: str, samples: list[int]):
    played(task_by_hand(selector := LastBatchSpy(), J=J, batch=2))
    assert selector.views[0].reports["samples_per_round"].tolist() == samples


@pytest.mark.parametrize("trainer", ["serial", "batched"])
def test_reserved_loss_is_each_local_models_on_reserved_test_samples(trainer: str):
    """The client without samples answers too, with the global model: loss ln 3."""
    task = task_by_hand(selector := ReservedSpy())
    state = played(dataclasses.replace(task, trainer=TRAINERS[trainer]))
    shares = [(1 / 2, 1 / 4, 1 / 4), (0, 1, 0), (1 / 3, 0, 2 / 3)]
    expected = [*(loss_on_reserved(trained_bias(share)) for share in shares), math.log(3)]
    (reports,) = selector.reports
    np.testing.assert_allclose(reports["reserved_loss"], expected, rtol=1e-12)
    assert reports["reserved_loss"][1] == pytest.approx(
        math.log(2 * math.exp(-0.1) + math.exp(0.2)) - 0.02, rel=1e-12
    )
    assert costs(state, "selection_samples") == [4 * 5]  # by the server: nothing more is sent
    assert costs(state, "bytes_up") == costs(state, "bytes_down") == [4 * MODEL_BYTES]
    assert set(state.history.traffic) == {"model"}
