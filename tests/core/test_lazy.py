"""A lazy module is imported at its first use, and then is that module to whoever uses it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cohort.core.lazy import lazy


def test_a_lazy_module_is_imported_at_its_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "far_away.py").write_text("value = 3\ndef double(number): return 2 * number\n")
    monkeypatch.syspath_prepend(tmp_path)
    far_away = lazy("far_away")
    assert "far_away" not in sys.modules
    assert far_away.double(far_away.value) == 6
    assert sys.modules["far_away"].double is far_away.double
    monkeypatch.delitem(sys.modules, "far_away")


def test_a_missing_attribute_and_a_missing_module_raise_as_usual():
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = lazy("json").no_such_name
    with pytest.raises(ModuleNotFoundError):
        _ = lazy("no_such_module").anything
