"""Estimates of steps, evaluated samples, memory and time, worked out by hand."""

from __future__ import annotations

import pytest

from cohort.plan.cost import _evaluated_samples, client_steps, memory_mb, operations, round_seconds
from cohort.selection.peco import Peco
from tests.plan.test_cost import DEMO, DIGITS, SMALL, TEXT, cell_with

SMALL_WEIGHTS = (64 + 1) * 64 + (64 + 1) * 10


def test_steps_of_probes_by_hand():
    """Eight of twenty clients take two batches. Of J4 the cohort of four has two left; of J2e the
    second epoch, five batches."""
    probe = DEMO | {"selector": {"name": "probe", "pool": 2.0, "batches": 2}}
    assert client_steps(cell_with(probe), DIGITS) == 10 * (8 * 2 + 4 * 2)
    assert client_steps(cell_with(probe | {"J": "J2e"}), DIGITS) == 10 * (8 * 2 + 4 * 5)


def test_samples_set_aside_are_not_trained_on():
    """800 of 1,437 are left, 40 for each of twenty clients: three batches."""
    settings = DEMO | {"J": "J1e", "validation": 637}
    assert client_steps(cell_with(settings), DIGITS) == 10 * 4 * 3


def test_more_samples_that_are_evaluated_by_hand():
    """FedCor may ask all twenty clients in every round; a data set may come with validation samples,
    a tenth of which is used, too."""
    asking = DEMO | {"selector": {"name": "fedcor"}}
    assert _evaluated_samples(cell_with(asking), DIGITS) == pytest.approx(360 + 10 * 1437)
    own = DIGITS | {"validation": 100}
    assert _evaluated_samples(cell_with(DEMO), own) == 360 + 100
    assert _evaluated_samples(cell_with(DEMO | {"validation": 60}), own) == 360 + 60


def test_operations_by_hand():
    """160 steps on 1437 / 20 / 5 samples, three passes each, and 360 that are evaluated once."""
    assert operations(cell_with(DEMO), DIGITS) == pytest.approx(
        2 * SMALL * (3 * 160 * 1437 / 20 / 5 + 360)
    )


def test_memory_of_tables_and_texts():
    """A column is stored in two bytes, a pixel in one; a text's characters become whole numbers of
    eight bytes for the network, of which the largest client has ten times its share, thrice."""
    table = memory_mb(cell_with(DEMO), DIGITS | {"kind": "table"}) - memory_mb(
        cell_with(DEMO), DIGITS
    )
    assert table == pytest.approx(1797 * 64 / 1e6)
    text = DEMO | {"model": "char-lstm", "clients": 100, "cohort": 10}
    halved = memory_mb(cell_with(text), TEXT) - memory_mb(cell_with(text | {"samples": 0.5}), TEXT)
    assert halved == pytest.approx(10 * 4_014_850 / 200 * 80 * 3 * 8 / 1e6)


def test_bfloat16_has_no_native_code():
    """Four layers by PyTorch, in which a sample takes three passes and 128 numbers; in an evaluation
    one pass and a third of the numbers' time."""
    passed, output = 2 * SMALL / 8.5e10, 128 * 4.5e-9
    steps = 160 * (4 * 3e-4 + 1437 / 20 / 5 * (3 * passed + output))
    expected = steps + 360 * (passed + output / 3) + 10 * (1.5e-3 + 4 * 4e-4)
    assert round_seconds(cell_with(DEMO | {"precision": "bfloat16"}), DIGITS) == pytest.approx(
        expected
    )


def test_memory_of_selectors():
    """DivFL keeps the last update of each of twenty clients, before and after a round; PECO what it
    computes with."""
    plain = memory_mb(cell_with(DEMO), DIGITS)
    updates = memory_mb(cell_with(DEMO | {"selector": {"name": "divfl"}}), DIGITS) - plain
    assert updates == pytest.approx(2 * 20 * SMALL_WEIGHTS * 4 / 1e6)
    peco = memory_mb(cell_with(DEMO | {"selector": {"name": "peco"}, "reserve": 100}), DIGITS)
    assert peco - plain == pytest.approx(Peco().memory(100, 10, 20) / 1e6)
