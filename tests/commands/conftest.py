"""A study of six cells, whose records a test writes itself."""

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cohort.commands.cli import main
from cohort.plan import Plan, load
from cohort.records.history import History
from cohort.records.record import Record, write
from cohort.training.cell import Cell

ROUNDS = 10
STUDY = {
    "title": "Six cells",
    "settings": {
        **{"dataset": "digits", "model": "small-mlp", "clients": 4, "cohort": 2},
        **{"rounds": ROUNDS, "batch": 16, "lr": 0.05, "reserve": 60},
    },
    "experiments": {
        "one": {
            "axes": {
                **{"partition": ["iid"], "J": ["J2"]},
                **{"strategy": ["fedavg", "loss"], "seed": [0, 1, 2]},
            }
        }
    },
    "tables": {
        "tab1": {
            **{"experiment": "one", "title": "Accuracy", "metric": "test_accuracy"},
            **{"rows": ["partition"], "columns": "strategy"},
        }
    },
}


def replan(**changes: Any) -> Plan:
    """The plan of the study with some settings changed, in the working directory."""
    study = STUDY | {"settings": STUDY["settings"] | changes}
    Path("config/studies/six.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    return load()


@pytest.fixture
def plan(project: Path) -> Plan:
    """The six cells: fedavg with seeds 0, 1, 2, then loss. Two small studies stay."""
    for file in Path("config/studies").glob("*.yaml"):
        if file.stem not in ("demo", "ucb"):
            file.unlink()
    config = Path("config/config.yaml")
    config.write_text(config.read_text().replace("studies: [demo]", "studies: [six]"))
    return replan()


def record(
    settings: dict[str, Any],
    accuracy: float = 0.5,
    *,
    digest: str = "k0123456789ab",
    weights: str = "a",
    science: dict[str, int] | None = None,
    seconds: float = 1.0,
    **provenance: Any,
) -> Record:
    """Make a record with the same test accuracy in every round, whose rounds took `seconds` each:
    a run that its cell can have, if it takes two steps."""
    clients, rounds = settings["clients"], settings["rounds"]
    cohorts = [np.array([0, 1])] * rounds
    history = History(cohorts=cohorts, responders=cohorts.copy())
    for round in range(1, rounds + 1):
        history.add_metrics(round, test_accuracy=accuracy, test_loss=1, test_calibration_error=0)
        history.add_metrics(round, test_classes_named=2, train_loss=1, update_norm=1)
        history.add_metrics(round, cohort_entropy=1)
        history.add_cost(round, seconds=seconds, client_steps=4, selection_samples=0)
        history.add_cost(round, bytes_down=0, bytes_up=0)
    arrays = dict.fromkeys(("loss", "accuracy"), np.ones(clients))
    arrays |= {"size": np.full(clients, 2), "selected": np.repeat([rounds, 0], [2, clients - 2])}
    session = {
        "started": "2026-01-01T00:00:00+00:00",
        "from_round": 0,
        "device": "a CPU",
        "trainer": "serial",
    }
    defaults = {
        **{"versions": {"torch": "2.0", "numpy": "2.0"}, "commit": "abc", "trainer": "serial"},
        **{"devices": ["a CPU"], "sessions": [session], "peak_memory_mb": 1.0},
    }
    header = {
        **{"format": 1, "digest": digest, "status": "done", "settings": settings},
        **{"science": science or {}, "weights_sha256": weights * 64},
        "provenance": defaults | provenance,
    }
    return Record(header, history, arrays | {"label_counts": np.ones((clients, 2), dtype=int)})


def finish(
    cell: Cell,
    accuracy: float = 0.5,
    root: str = "",
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> Path:
    """Write the record of a cell, below another folder or with other settings if they are given."""
    path = Path(root, cell.path)
    options = {"science": cell.science} | options
    write(path, record(settings or cell.plain_settings(), accuracy, digest=cell.digest, **options))
    return path


def output_of(*arguments: str, fails: bool = False) -> str:
    """Run a command and return its output, with the error at the end if it fails."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            main(arguments)
        except SystemExit as ended:
            assert fails, ended
            return output.getvalue() + str(ended)
    assert not fails
    return output.getvalue()
