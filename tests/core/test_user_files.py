"""Versions of the user's own files: which runs other ones made."""

import hashlib
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from cohort.core import user_files
from cohort.core.components import Catalog, explain_value_errors
from cohort.core.errors import UserError
from cohort.core.process import last_line, log_output
from cohort.selection import Selector

pytestmark = pytest.mark.usefixtures("empty_folder")


@pytest.fixture
def files() -> dict[str, str]:
    """The SHA-256 of the files in a folder `my`, by module."""
    contents = {
        "selection/turns.py": ("my.selection.turns", b"turns"),
        "training/procedures/own/__init__.py": ("my.training.procedures.own", b"fields"),
        "training/procedures/own/rounds.py": ("my.training.procedures.own.rounds", b"rounds"),
    }
    for name, (_, content) in contents.items():
        file = Path("my", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return {module: hashlib.sha256(content).hexdigest() for module, content in contents.values()}


def test_files_that_changed_since_a_run(files: dict[str, str]):
    """One that is gone did not; one that changed between two sessions did."""
    turns, rounds = "my.selection.turns", "my.training.procedures.own.rounds"
    provenance = {"my": files | {"my.selection.gone": "0" * 64}, "sessions": [{"device": "cpu"}]}
    assert user_files.changed_files(provenance) == []
    Path("my/selection/turns.py").write_bytes(b"other turns")
    assert user_files.changed_files(provenance) == ["my/selection/turns.py"]
    sessions = [{"my": {rounds: "1" * 64}}, {"my": {turns: user_files.version_of(turns)} | files}]
    assert user_files.changed_files({"sessions": sessions}) == [
        "my/training/procedures/own/rounds.py",
        "my/selection/turns.py",
    ]
    assert user_files.changed_files({"sessions": [{}]}) == []


def test_a_component_is_looked_for_where_its_name_is_quoted():
    """Neither in a file with a similar name nor in one that comes first."""
    Path("my/selection").mkdir(parents=True)
    for file, name in (("a", "slow"), ("fast", "faster"), ("z", "fast")):
        text = "from cohort.selection.simple import Random\nclass Own(Random):\n    name = "
        Path(f"my/selection/{file}.py").write_text(f"{text}'{name}'\n")
    with patch.dict(sys.modules):
        for module in [name for name in sys.modules if name.partition(".")[0] == "my"]:
            del sys.modules[module]
        assert Catalog("cohort.selection", Selector, ())["fast"].__module__ == "my.selection.z"
        assert user_files.loaded_modules() == ["my.selection.z"]


def test_errors_name_the_users_last_line():
    """A ValueError that refuses a setting keeps its sentence; a log's last line says any other."""
    Path("my/partition").mkdir(parents=True)
    Path("my/partition/cards.py").write_text("def deal(count):\n    return [1][int(count)]\n")
    with patch.dict(sys.modules):
        sys.modules.pop("my", None)
        deal = user_files.import_module("cohort.partition", "cards").deal
        where = "my/partition/cards.py, line 2, in deal"
        with pytest.raises(UserError) as refused, explain_value_errors("partition cards: "):
            deal("x")
        assert str(refused.value).startswith("partition cards: invalid literal")
        assert str(refused.value).endswith(f"'x' ({where})")
        with pytest.raises(SystemExit), log_output("deal.log"):
            deal(1)
        assert last_line("deal.log") == f"error: {where}: IndexError('list index out of range')"


def test_a_syntax_error_names_the_file_that_has_it():
    """Not the file that imports that one."""
    Path("my/selection").mkdir(parents=True)
    Path("my/selection/turns.py").write_text("from my.selection import order\n")
    Path("my/selection/order.py").write_text("first = 1\nsecond = = 2\n")
    with patch.dict(sys.modules):
        sys.modules.pop("my", None)
        with pytest.raises(UserError, match=r"^my/selection/order.py, line 2: invalid syntax"):
            user_files.import_module("cohort.selection", "turns")
