"""`cohort verify`: a cell is trained again, bit by bit as before, or what differs is said, and perhaps why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cohort.commands.verify import compare
from cohort.records.history import History
from cohort.records.record import read, write
from tests.workflow.commands import files
from tests.workflow.conftest import Project
from tests.workflow.test_command_line import cohort


def test_a_finished_cell_again(finished: Project):
    before = files(finished)
    text = cohort(finished, "verify")
    assert "training it again" in text and "bits may differ" not in text
    assert text.endswith(
        "the same to the last bit: metrics and cohorts, and the final weights of 4 rounds\n"
    )
    record = finished.records()[0]
    digest = record.stem.rpartition("-")[2]
    text = cohort(finished, "verify", digest, "--until", "2")
    assert text.endswith("the same to the last bit: metrics and cohorts of 2 rounds\n")
    assert files(finished) == before


def test_a_record_that_is_not_what_training_gives(finished: Project):
    path = finished.records()[0]
    record = read(path)
    rounds, losses = zip(*record.history.metrics["train_loss"], strict=True)
    wrong = [*losses[:2], losses[2] + 0.25, losses[3]]
    record.history.metrics["train_loss"] = list(zip(rounds, wrong, strict=True))
    write(path, replace(record, header=record.header | {"weights_sha256": "0" * 64}))
    text = cohort(finished, "verify", str(path.relative_to(finished.root)), fails=True)
    assert "train_loss differs in 1 of 4 rounds, first in round 3, by at most 0.25\n" in text
    assert "the final weights differ\n" in text
    assert text.endswith("a second run is not the same, and nothing explains it")


def test_histories_that_differ():
    """NaN is NaN, and seconds are never the same."""
    before, after = History(), History()
    before.cohorts = [np.array(cohort) for cohort in ([1, 2], [3, 4], [5])]
    after.cohorts = [np.array(cohort) for cohort in ([1, 2], [4, 3], [5, 6])]
    for round, first, second in ((1, 1.0, 1.0), (2, 2.0, 2.125), (3, 3.0, 2.5)):
        before.add_metrics(round, loss=first, seconds_here=first, bad=float("nan"))
        after.add_metrics(round, loss=second, seconds_here=-first, bad=float("nan"))
    assert compare(before, after, 1) == ([], [])
    assert compare(before, after, None)[0] == [
        "cohorts differ in 2 of 3 rounds, first in round 2",
        "loss differs in 2 of 3 rounds, first in round 2, by at most 0.5",
    ]
    del after.metrics["loss"]
    assert "loss differs in 3 of 3 rounds, first in round 1" in compare(before, after, None)[0]
