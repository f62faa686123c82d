"""How a run ends whose component breaks its contract."""

from __future__ import annotations

import pytest

from cohort.core.errors import UserError
from cohort.training.task import Task
from tests.training.small_task import run

ALL = {"sizes": (4, 9, 2, 6), "cohort": 2, "rounds": 3, "J": "J2"}


def sentence_of(task: Task) -> str:
    """The one sentence in which a run ends."""
    with pytest.raises(UserError) as caught:
        run(task)
    assert str(caught.value).startswith("strategy 'none', round ")
    return str(caught.value)
