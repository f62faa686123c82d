"""Results are kept in the user's cache folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from cohort.core.files import cache_folder, cached


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Results that were computed, with an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return []


def computed(calls: list[int], key: object, kind: str = "kind") -> int:
    """A result that says how many were computed before it."""

    def compute() -> int:
        calls.append(len(calls))
        return calls[-1]

    result: int = cached(kind, key, compute)
    return result


def test_where_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/where")
    assert cache_folder() == Path("/some/where/cohort")
    for unset in ("", "relative"):  # which the XDG specification says to ignore
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache_folder() == tmp_path / ".cache" / "cohort"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "cohort"


def test_a_result_is_computed_once_per_key_and_kind(calls: list[int]):
    keys = [["a", 1], ["a", 2], {"b": 1, "c": 2}]
    assert [computed(calls, key) for key in keys] == [0, 1, 2]
    assert [computed(calls, key) for key in keys] == [0, 1, 2]
    assert computed(calls, {"c": 2, "b": 1}) == 2
    assert computed(calls, keys[0], "other") == 3


def test_no_other_file_is_left(calls: list[int], tmp_path: Path):
    computed(calls, "key")
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file.suffix == ".json"


def test_an_error_is_not_kept(calls: list[int]):
    def fail() -> int:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        cached("kind", "key", fail)
    assert computed(calls, "key") == 0


def test_a_read_only_folder(calls: list[int], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(
        "XDG_CACHE_HOME", "/proc"
    )  # where nobody may write, the administrator either
    assert [computed(calls, "key") for _ in range(2)] == [0, 1]


def test_a_user_without_a_home(calls: list[int], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert [computed(calls, "key") for _ in range(2)] == [0, 1]
