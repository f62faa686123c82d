"""Ours: the pipeline's own evaluation of all samples."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.protocol import serve
from benchmarks.variants.given import arguments, given_work
from benchmarks.variants.ours import samples_of, task_of
from cohort.training.evaluation import evaluate
from cohort.training.precision import set_up


def main() -> None:
    """Evaluations, when told to."""
    set_up("float32", torch.device("cpu"))
    given = given_work(arguments().folder)
    task, samples = task_of(given), samples_of(given)
    weights, everything = task.initial_weights(), torch.arange(len(given.labels))
    found: list[float] = []

    def step() -> None:
        found[:] = evaluate(task.model, weights, samples, everything)[:2]

    serve(step, lambda: np.array(found))


if __name__ == "__main__":
    main()
