"""One cell without Snakemake: `cohort run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.cell.planned import Planned, freeze, frozen, options_of, plan_file
from cohort.core.errors import UserError

if TYPE_CHECKING:
    from cohort.plan import Plan


def find_cell(plan: Plan, text: str) -> Path:
    """The plan file, newly frozen, of the cell that a path, a digest or its beginning means; listed studies come first."""
    from cohort.plan import all_studies

    for studies in (plan.listed, all_studies()):
        for name in studies:
            plan.study(name)
        found = [
            cell
            for cell in plan.cells.values()
            if cell.path.endswith(text.removeprefix("./")) or cell.digest.startswith(text)
        ]
        if len(found) > 1:
            raise UserError(f"'{text}' is the beginning of {len(found)} digests; give more of it")
        if found:
            freeze(found[0])
            return plan_file(found[0].digest)
    raise UserError(
        f"no study has a cell '{text}' at scale {plan.scale}; cohort status counts those that there are"
    )


def run_cell(plan: Plan | None, file: Path, until: int | None, device: str | None) -> None:
    """Make what the cell needs, then train it, with a live bar."""
    from cohort.training.job.memory import lasting

    with lasting():
        from cohort.training.job.lease import FINISHED, state_folder
        from cohort.training.job.progress import watching
        from cohort.training.job.run import train

    planned = frozen(file)
    if Path(planned.path).exists():
        print(f"{planned.path} exists: delete it to train the cell anew")
        return
    if plan is not None:
        _make_inputs(plan, planned)
    options: dict[str, Any] = options_of(plan.config)["train"] if plan else {}
    options |= {"device": device} if device else {}
    with watching(
        planned.settings["rounds"],
        f"{planned.settings['strategy']}, seed {planned.settings['seed']}",
    ) as watch:
        train(file, planned.path, until=until, watch=watch, **options)
    folder = state_folder(planned.path)
    if Path(planned.path).exists():
        (folder / FINISHED).unlink(missing_ok=True)
        folder.rmdir()


def make_data(plan: Plan, path: str) -> None:
    """Download and prepare the data set of this path, unless it is there."""
    from cohort.data.download import download
    from cohort.data.prepare import prepare

    if not Path(path).exists():
        data = next(item for item in plan.data.values() if item.path == path)
        for name, file in data.inputs.items():
            if not Path(file).exists():
                download(
                    plan.datasets[data.settings["dataset"]]["files"][name],
                    file,
                    **options_of(plan.config)["download"],
                )
        freeze(data)
        prepare(plan_file(data.digest), path)


def _make_inputs(plan: Plan, planned: Planned) -> None:
    from cohort.partition.deal import deal

    make_data(plan, planned.inputs["data"])
    shards = next(item for item in plan.shards.values() if item.path == planned.inputs["shards"])
    if not Path(shards.path).exists():
        freeze(shards)
        deal(plan_file(shards.digest), shards.path)
