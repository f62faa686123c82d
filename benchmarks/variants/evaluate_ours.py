"""Ours: the pipeline's evaluation of all samples."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.protocol import serve
from benchmarks.variants.inputs import arguments
from benchmarks.variants.ours import generate_avx2, samples_of, task_of
from benchmarks.work import read_work
from cohort.training.evaluation import evaluate
from cohort.training.job.machine import set_up


def main() -> None:
    """Serve evaluations of all samples; the result is loss and accuracy."""
    set_up("float32", torch.device("cpu"))
    options = arguments()
    if options.avx2:
        generate_avx2()
    given = read_work(options.folder)
    task, samples = task_of(given), samples_of(given)
    weights, everything = task.initial_weights(), torch.arange(len(given.labels))
    results: list[float] = []

    def step() -> None:
        results[:] = evaluate(task.model, weights, samples, everything)[:2]

    serve(step, lambda: np.array(results))


if __name__ == "__main__":
    main()
