"""The table that `make stress` prints."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.slurm.conftest import dealt, lab, slurm  # noqa: F401 (fixtures)
from tests.workflow.conftest import fresh, fresh_once  # noqa: F401 (fixtures)

Tell = Callable[[str, str], None]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


ROWS = pytest.StashKey[list[tuple[str, str]]]()


@pytest.fixture
def tell(pytestconfig: pytest.Config) -> Tell:
    """Adds a row: what was done, and what came of it."""
    return lambda action, result: pytestconfig.stash[ROWS].append((action, result))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line("\n| what was done | what came of it |\n|---|---|")
    for action, result in terminalreporter.config.stash[ROWS]:
        terminalreporter.write_line(f"| {action} | {result} |")
