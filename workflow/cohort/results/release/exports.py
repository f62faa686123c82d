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
from cohort.results.release.events import write_events
from cohort.results.release.frames import Data

LABELS = ("dataset", "model", "partition", "J", "strategy", "seed")
"""The settings that a row of curves.csv repeats, so that it can be read alone."""


def write_csv(data: Data, folder: Path) -> list[Path]:
    """Write a CSV file for each frame that has rows; lists are JSON texts."""
    frames = {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    labels = data.runs[["digest", *LABELS]]
    frames["curves"] = labels.merge(data.curves, on="digest")
    files = []
    for name, frame in frames.items():
        if len(frame):
            files.append(folder / f"{name}.csv")
            texts = frame.assign(**{key: frame[key].map(_as_json) for key in _nested(frame)})
            with atomic_write(files[-1]) as temporary:
                texts.to_csv(temporary, index=False, lineterminator="\n")
    return files


def write_tensorboard(data: Data, folder: Path) -> list[Path]:
    """Write an event file for each run, with its metrics and costs by round, in a folder that is
    called like its record."""
    curves = dict(list(data.curves.groupby("digest")))
    folders = []
    for run in data.runs.to_dict("records"):
        name = f"seed{run['seed']}-{run['digest']}"
        run_path = Path(*(str(run[label]) for label in LABELS[:-1]), name)
        folders.append(folder / run_path)
        write_events(folders[-1], _by_round(curves[run["digest"]]))
    return folders


def _by_round(curves: pd.DataFrame) -> Iterator[tuple[int, dict[str, float]]]:
    """The values of each round by their tags, `metrics/test_accuracy`."""
    tagged = curves.assign(tag=curves["group"] + "/" + curves["metric"])
    for round, rows in tagged.groupby("round"):
        yield int(str(round)), dict(zip(rows["tag"], rows["value"], strict=True))


FORMATS: dict[str, Callable[[Data, Path], list[Path]]] = {
    "csv": write_csv,
    "tensorboard": write_tensorboard,
}


def _nested(frame: pd.DataFrame) -> Iterable[str]:
    """The columns whose values are lists."""
    for name, column in frame.items():
        if column.dtype == object and column.map(pd.api.types.is_list_like).any():
            yield str(name)


def _as_json(value: Any) -> str:
    return "" if value is None else json.dumps(np.asarray(value).tolist())
