"""Makes `tree/` and `expected.json` by an earlier version of Cohort, to be read by this one.

    git worktree add /tmp/earlier 993ec9b
    python tests/earlier/make_tree.py /tmp/earlier

993ec9b is the last revision before the package was split into folders. The tree is what its users
have on disk: a study of finished cells (`earlier`, run by Snakemake) and one of cells that were
stopped at a checkpoint (`stopped`). `expected.json` holds the histories of the stopped cells, as
the earlier version writes them when nothing stops it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import yaml

HERE = Path(__file__).parent
PARTS = ("Snakefile", "rules", "workflow", "config", "profiles", "resources/paper_values")
KEPT = ("config/studies", "results/cells", "results/plan", ".snakemake/metadata")
SERIES = (
    *(f"metrics/{name}" for name in ("train_loss", "test_loss", "test_accuracy", "learning_rate")),
    *(f"cost/{name}" for name in ("client_steps", "bytes_up", "bytes_down")),
)
LIST_CELLS = """
import json
from cohort.plan import load
plan = load({"studies": ["stopped"]})
rows = plan.study("stopped").experiments["main"].rows
found = {row.labels["series"]: (row.digest, plan.cells[row.digest].path) for row in rows}
print(json.dumps(found))
"""


class Stop(NamedTuple):
    """After which round a cell is stopped, and which trainer it has."""

    round: int
    trainer: str = "auto"


SETTINGS = {
    "dataset": "digits",
    "samples": 0.5,
    "clients": 5,
    "cohort": 2,
    "rounds": 6,
    "batch": 16,
    "lr": 0.05,
    "momentum": 0.5,
    "lr_decay": 0.99,
    "reserve": 30,
    "model": "small-mlp",
    "evaluate_every": 2,
}
DEALT = {"partition": "dir-0.5", "J": "J2"}
CENTRALIZED = {"procedure": "centralized", "clients": 1, "cohort": 1, "lr_decay": 1.0} | {
    "partition": "iid",
    "J": "J1e",
    "strategy": "centralized",
}
FINISHED = {
    "fedavg": DEALT | {"strategy": "fedavg"},
    "entropy": DEALT | {"strategy": "fedentopt"},
    "private": DEALT | {"strategy": "fedentopt-dp"},
    "probe": DEALT | {"strategy": "probe"},
    "scaffold": DEALT | {"strategy": "scaffold"},
    "diverged": DEALT | {"strategy": "fedavg", "lr": 1e30},
    "concat": DEALT | {"strategy": "fedconcat", "procedure": "concat-2"},
    "centralized": CENTRALIZED | {"schedule": "onecycle"},
}
LONGER = DEALT | {"J": "J3"}
CONCAT = LONGER | {"strategy": "fedconcat"}
STOPPED = {
    "probe": LONGER | {"strategy": "probe"},
    "entropy": LONGER | {"strategy": "fedentopt"},
    "private": LONGER | {"strategy": "fedentopt-dp", "selector.epsilon": 0.02},
    "scaffold": LONGER | {"strategy": "scaffold"},
    "clusters": CONCAT | {"procedure": "concat-2-classifier0.5"},
    "classifier": CONCAT | {"procedure": "concat-2-classifier0.5-warm1"},
    "onecycle": CENTRALIZED | {"schedule": "onecycle", "batch": 32},
    "plateau": CENTRALIZED | {"schedule": "plateau-patience1", "validation": 50},
}
STOPS = {
    "probe": Stop(3),
    "entropy": Stop(3, "serial"),
    "private": Stop(3, "batched"),
    "scaffold": Stop(3),
    "clusters": Stop(2),  # within the rounds that train each cluster's network
    "classifier": Stop(4),  # after the first round that trains the classifier
    "onecycle": Stop(3),
    "plateau": Stop(4),
}


def study(title: str, cells: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One experiment, whose cells have the names that are given here as their series."""
    keys = dict.fromkeys(key for settings in cells.values() for key in settings)
    columns = {key: [settings.get(key) for settings in cells.values()] for key in keys}
    shown = {"experiment": "main", "metric": "test_accuracy"}
    return {
        "title": title,
        "settings": SETTINGS,
        "experiments": {
            "main": {"axes": {"seed": [0]}, "paired": [{"series": list(cells)} | columns]}
        },
        "figures": {"fig1": shown | {"kind": "curves", "columns": "J", "hue": "series"}},
        "tables": {"tab1": shown | {"rows": ["J"], "columns": "series"}},
    }


STUDIES = {
    "earlier": study("Finished by an earlier version", FINISHED),
    "stopped": study("Stopped at a checkpoint by an earlier version", STOPPED),
}


def project(checkout: Path, folder: Path) -> Path:
    """A copy of the earlier version in which the two studies are the only ones."""
    for part in PARTS:
        if (checkout / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "studies")
            shutil.copytree(checkout / part, folder / part, ignore=ignored)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkout / part, folder / part)
    (folder / "environment.yml").touch()
    (folder / "config/studies").mkdir()
    for name, study in STUDIES.items():
        text = yaml.safe_dump(study, sort_keys=False)
        (folder / f"config/studies/{name}.yaml").write_text(text)
    config = folder / "config/config.yaml"
    config.write_text(config.read_text().replace("studies: [demo]", "studies: [earlier]"))
    return folder


def python(folder: Path, *arguments: str) -> str:
    """Runs Python with the project's own package."""
    environment = os.environ | {"PYTHONPATH": str(folder / "workflow")}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def history(record: Path) -> dict[str, Any]:
    """Cohorts, probed clients, losses, accuracies and costs, round by round."""
    with h5py.File(record) as file:
        found = {
            name: file[name][()].tolist() for name in ("cohorts", "probes/pools") if name in file
        }
        for name in SERIES:
            if name in file:
                rounds, values = (
                    file[f"{name}/{part}"][()].tolist() for part in ("round", "value")
                )
                found[name] = [
                    [number, round(value, 6)] for number, value in zip(rounds, values, strict=True)
                ]
    return found


def keep(folder: Path) -> None:
    """Copy what a user of the project would not want to lose: records, checkpoints, plan files."""
    shutil.rmtree(HERE / "tree", ignore_errors=True)
    for part in KEPT:
        shutil.copytree(folder / part, HERE / "tree" / part)
    (HERE / "tree/results/plan/driver.lock").unlink(missing_ok=True)
    for note in (HERE / "tree/.snakemake/metadata").iterdir():
        if not b64decode(note.name).startswith(b"results/cells/"):
            note.unlink()


def main(checkout: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        stopped = project(checkout, Path(temporary, "stopped"))
        whole = project(checkout, Path(temporary, "whole"))
        cells = json.loads(python(stopped, "-c", LIST_CELLS))
        python(stopped, "-m", "snakemake", "--cores", "2", "earlier", "--config", "device=cpu")
        expected = {}
        for name, stop in STOPS.items():
            digest, path = cells[name]
            run = ("-m", "cohort", "run", digest, "--config", f"trainer={stop.trainer}")
            python(stopped, *run, "device=cpu", "--until", str(stop.round))
            python(whole, *run, "device=cpu")
            expected[name] = {"digest": digest, "path": path, "stopped": stop.round}
            expected[name] |= {"history": history(whole / path)}
        keep(stopped)
        lines = (f"{json.dumps(name)}: {json.dumps(cell)}" for name, cell in expected.items())
        (HERE / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
