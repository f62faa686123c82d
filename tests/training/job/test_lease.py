"""Leases, and records that are published."""

from __future__ import annotations

from pathlib import Path

import pytest

from cohort.core.files import lock
from cohort.training.job.lease import LEASE, is_held, lease, publish, was_abandoned


def test_a_lease_is_held_then_gone_and_stays_of_a_run_that_failed(tmp_path: Path):
    folder = tmp_path / "state"
    with lease(folder, waiting=lambda: pytest.fail("nobody has it")):
        assert is_held(folder) and not was_abandoned(folder)
    assert not (folder / LEASE).exists() and not was_abandoned(folder)
    with pytest.raises(KeyError), lease(folder, waiting=lambda: None):
        raise KeyError
    assert was_abandoned(folder) and not is_held(folder)
    with lock(folder / LEASE):
        assert not was_abandoned(folder)


def test_a_published_record_stays_where_it_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    finished, place = tmp_path / "finished.h5", tmp_path / "record.h5"
    for content in (b"one", b"two"):
        finished.write_bytes(content)
        publish(finished, place)
        assert finished.read_bytes() == place.read_bytes() == content
        finished.unlink()
    finished.write_bytes(b"three")
    monkeypatch.setattr("os.link", lambda *paths: (_ for _ in ()).throw(OSError))
    publish(finished, place)
    assert finished.read_bytes() == place.read_bytes() == b"three"
