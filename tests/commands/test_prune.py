"""`cohort prune`: what no study has goes, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cohort.core.paths import state_folder
from cohort.plan import Plan, load
from tests.commands.conftest import finish, replan

OutputOf = Callable[..., str]


def test_runs_of_more_seeds_stay(plan: Plan, output_of: OutputOf):
    """README recommends `--seeds 5`. Shards and checkpoints of those seeds stay too."""
    begun, *further = (
        cell for key, cell in load({"seeds": 5}).cells.items() if key not in plan.cells
    )
    old = finish(next(iter(replan(lr=0.5).cells.values())))
    replan()
    kept = [finish(cell) for cell in further]
    kept += [state_folder(begun.path) / "checkpoint.safetensors", Path(begun.inputs["shards"])]
    for file in kept[-2:]:
        file.parent.mkdir(parents=True)
        file.touch()
    assert "in 1 records" in output_of("prune", "--delete")
    assert "(cohort prune --restored --delete)" in output_of("prune", "--restored")
    assert not old.exists() and all(file.exists() for file in kept) and len(kept) == 5
