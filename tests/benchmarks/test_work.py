"""All variants do the same work, drawn from the pipeline's random streams."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.contest import largest_difference
from benchmarks.variants.inputs import EpochBatches, flat
from benchmarks.variants.ours import task_of
from benchmarks.variants.plain import Loop
from benchmarks.work import Work, draw, read_work
from benchmarks.workloads import W1, W2, W3, Workload
from cohort.training.procedures import parse_procedure


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Workload], Work]:
    """The work of a tiny workload, drawn once."""
    folder = tmp_path_factory.mktemp("work")
    return functools.cache(lambda workload: drawn(workload.tiny(), folder / workload.name))


@pytest.fixture(params=[W1, W2, W3], ids=lambda workload: workload.name)
def work(request: pytest.FixtureRequest, tiny: Callable[[Workload], Work]) -> Work:
    return tiny(request.param)


def test_ours_and_the_plain_loop_agree(work: Work):
    """After two rounds they agree; a plain loop on other batches does not."""
    ours, theirs = our_weights(work, 2), plain_weights(work, 2)
    other = plain_weights(work, 2, shifted=1)
    start = np.concatenate([values.reshape(-1) for values in work.weights.values()])
    assert largest_difference(ours, theirs) < 1e-5
    assert largest_difference(start, theirs) > 1e-4
    assert largest_difference(ours, other) > 1e-4


def test_styles_of_the_plain_loop_agree(tiny: Callable[[Workload], Work]):
    work = tiny(W3)
    assert np.array_equal(plain_weights(work, 1), plain_weights(work, 1, style="eager"))


def test_a_sampler_yields_epoch_after_epoch(tiny: Callable[[Workload], Work]):
    """20 samples in two epochs of batches of 8, 8 and 4."""
    work = tiny(W2)
    client = work.cohort(2)[1]
    batches, drawn = EpochBatches(work, 2, client), work.epochs(2, client)
    for epoch in range(2):
        yielded = [batch.tolist() for batch in batches]
        assert yielded == [drawn[epoch, start : start + 8].tolist() for start in (0, 8, 16)]
    assert not list(batches)


@pytest.mark.long
def test_drawing_is_deterministic(tiny: Callable[[Workload], Work], tmp_path: Path):
    """Two child processes draw the same work, which this process reads."""
    draw(W1.tiny(), tmp_path / "work")
    first, second = tiny(W1), read_work(tmp_path / "work")
    for name in ("values", "labels", "cohorts", "orders"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert {len(set(first.cohort(round))) for round in (1, 2, 3, 4, 5)} == {2}


def drawn(workload: Workload, folder: Path) -> Work:
    draw(workload, folder)
    return read_work(folder)


def our_weights(work: Work, rounds: int) -> np.ndarray:
    task, procedure = task_of(work), parse_procedure("federated")
    *_, state = islice(procedure.rounds_of(task).run(procedure.begin(task)), rounds)
    assert state.round == rounds
    return flat(state.weights.values())


def plain_weights(work: Work, rounds: int, shifted: int = 0, style: str = "loader") -> np.ndarray:
    loop = Loop(work, style)
    for round in range(1, rounds + 1):
        loop.round(round + shifted)
    return flat(loop.model.parameters())
