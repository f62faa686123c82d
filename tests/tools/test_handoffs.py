"""What chunks of labels save, against the paper's Algorithm 1 played literally and expectations by
hand."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tools import handoffs

LABELS = np.repeat(np.arange(4), 60)


def test_naive_transfers_have_the_expected_mean():
    """Two labels of 100 samples. The first has two holders, the second one of them and another.
    Neighbors in the schedule have different clients with probability 1/2 if their labels are the
    same, and 3/4 if not; they are the same in 99 of 199 cases."""
    counts = np.array([[50, 50, 0], [0, 50, 50]])
    rng = np.random.default_rng(0)
    results = [handoffs.naive_transfers(counts, rng) for _ in range(400)]
    expected = 199 * (99 / 199 / 2 + 100 / 199 * 3 / 4)
    assert np.mean(results) == pytest.approx(expected, abs=4 * np.std(results) / 20)


def literal_counts(data: handoffs.ClientData, chunk: int, seed: int) -> tuple[int, int]:
    """Tasks and transfers of Algorithms 1 and 3: three of ten clients are retained for each label
    of a chunk, and each task is the longest run of any of them. A client that has run out of a
    label puts it back into the schedule and is not asked for it again."""
    rng = np.random.default_rng(seed)
    waiting, left, order = rng.permutation(data.labels).tolist(), data.counts.copy(), []
    holders = [set(np.flatnonzero(row).tolist()) for row in left]
    while waiting:
        part, waiting = waiting[:chunk], waiting[chunk:]
        kept = {label: rng.permutation(sorted(holders[label]))[:3] for label in set(part)}
        while part:
            able = [[client in kept[label] for label in part] for client in range(10)]
            runs = [[*row, False].index(False) for row in able]
            client = int(rng.choice(np.flatnonzero(np.equal(runs, max(runs)))))
            order.append(client)
            for label in part[: max(runs)]:
                if left[label, client]:
                    left[label, client] -= 1
                else:
                    holders[label].discard(client)
                    waiting.insert(int(rng.integers(len(waiting) + 1)), label)
            part = part[max(runs) :]
    return len(order), sum(one != other for one, other in itertools.pairwise(order))


@pytest.mark.parametrize("chunk", [1, 5, 50])
def test_counts_are_those_of_the_algorithms_played_literally(chunk: int):
    """On three partitions of 1,500 samples, up to the luck of the draw."""
    labels = np.repeat(np.arange(10), 150)
    measurements = handoffs.measure_handoffs(labels, [(10, chunk)], 3)
    dealt = [handoffs.deal_labels("dir-0.5", labels, 10, seed) for seed in range(3)]
    literal = [literal_counts(data, chunk, seed) for seed, data in enumerate(dealt)]
    tasks, transfers = np.mean(literal, axis=0)
    assert measurements["tasks"].mean() == pytest.approx(tasks, rel=0.03)
    assert measurements["transfers"].mean() == pytest.approx(transfers, rel=0.03)
    assert (measurements["tasks_saved"] == 1 - measurements["tasks"] / 1500).all()


def test_the_command_prints_means_and_writes_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(handoffs, "LABELS", LABELS)
    monkeypatch.setattr(handoffs, "CASES", [(4, 5)])
    monkeypatch.setattr(handoffs, "PARTITIONS", 2)
    handoffs.main(["--out", str(tmp_path / "found.csv")])
    written = pd.read_csv(tmp_path / "found.csv")
    assert written[["clients", "chunk", "labels"]].values.tolist() == [[4, 5, 240]] * 2
    assert (written["transfers_per_client"] * 4 == written["transfers"]).all()
    mean = 100 * written["tasks_saved"].mean()
    assert f"| {mean:.1f} ± " in capsys.readouterr().out
