"""`pytest tests/golden --record` records golden runs that are missing or outdated."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record",
        action="store_true",
        help="record golden runs that are missing or of another science version",
    )
