"""Finished runs in the formats of other programs: CSV, and event files for TensorBoard."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cohort.core.files import atomic_write
from cohort.core.paths import CELL_FOLDERS, CELL_LABELS
from cohort.results.release.events import write_events
from cohort.results.release.frames import RunFrames


def write_csv(data: RunFrames, folder: Path) -> list[Path]:
    """Write a CSV file for each frame that has rows and return the paths; lists are JSON texts. A
    row of curves.csv repeats its run's labels, so that it can be read alone."""
    frames = {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    labels = data.runs[["digest", *CELL_LABELS]]
    frames["curves"] = labels.merge(data.curves, on="digest")
    files = []
    for name, frame in frames.items():
        if len(frame):
            files.append(folder / f"{name}.csv")
            texts = frame.assign(**{key: frame[key].map(_as_json) for key in _list_columns(frame)})
            with atomic_write(files[-1]) as temporary:
                texts.to_csv(temporary, index=False, lineterminator="\n")
    return files


def write_tensorboard(data: RunFrames, folder: Path) -> list[Path]:
    """Write a TensorBoard event file for each run, with its metrics and costs by round, in a folder
    named after its record; return the folders."""
    curves = dict(list(data.curves.groupby("digest")))
    folders = []
    for run in data.runs.to_dict("records"):
        name = f"seed{run['seed']}-{run['digest']}"
        run_path = Path(*(run[label] for label in CELL_FOLDERS), name)
        folders.append(folder / run_path)
        write_events(folders[-1], _scalars_by_round(curves[run["digest"]]))
    return folders


def _scalars_by_round(curves: pd.DataFrame) -> Iterator[tuple[int, dict[str, float]]]:
    """Pairs of a round and its values by tag, such as `metrics/test_accuracy`."""
    tagged = curves.assign(tag=curves["group"] + "/" + curves["metric"])
    for round, rows in tagged.groupby("round"):
        yield int(str(round)), dict(zip(rows["tag"], rows["value"], strict=True))


FORMATS: dict[str, Callable[[RunFrames, Path], list[Path]]] = {
    "csv": write_csv,
    "tensorboard": write_tensorboard,
}


def _list_columns(frame: pd.DataFrame) -> Iterable[str]:
    """The columns whose values are lists."""
    for name, column in frame.items():
        if column.dtype == object and column.map(pd.api.types.is_list_like).any():
            yield str(name)


def _as_json(value: Any) -> str:
    return "" if value is None else json.dumps(np.asarray(value).tolist())
