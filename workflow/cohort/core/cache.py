"""The user's cache folder, for small results that are slow to compute.

It only saves time: where it cannot be read or written, results are computed, and an entry whose
checksum does not match counts as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError
from cohort.core.files import write_text


def cache_folder() -> Path:
    """The user's folder for cached results, `$XDG_CACHE_HOME/cohort` or `~/.cache/cohort`, which
    can be deleted at any time."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "cohort"


def cached(kind: str, key: Any, compute: Callable[[], Any]) -> Any:
    """Return the stored result of `compute()` for this key, from this or any earlier process; if
    there is none, call `compute` and store its result.

    `key` must name everything that the result depends on; key and result must be JSON values.
    `kind` is the subfolder of the cache.
    """
    try:
        file = cache_folder() / kind / f"{_digest(key)}.json"
    except RuntimeError:  # the user has no home directory
        return compute()
    try:
        entry = json.loads(file.read_text(encoding="utf-8"))
        if entry["checksum"] == _digest([key, entry["value"]]):
            return entry["value"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass  # missing, unreadable or damaged
    value = compute()
    entry = {"key": key, "value": value, "checksum": _digest([key, value])}
    with contextlib.suppress(OSError, UserError):
        write_text(file, json.dumps(entry) + "\n", sync=False)
    return value


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
