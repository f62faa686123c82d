"""`python -m tools.gradients DATA [--out FILE] [--figure FILE]`: bias and variance of a batch's
gradient, by how its samples are drawn (Stratify, section III-B).

DATA is the prepared file of CIFAR-10. The gradient of the loss of all samples of a population is the
truth; a gradient of a batch is an estimate of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import seaborn
import torch
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.tables import number, table
from cohort.core.randomness import generator, torch_seed
from cohort.data.samples import Samples, load
from cohort.data.sampling import draw_share
from cohort.models import MODELS
from cohort.results.figures.style import COLORS, PAGE_WIDTH, apply_theme
from cohort.training.procedures.stratified.label_schedule import ClientData, schedule_batches
from tools.handoffs import deal_labels

MODEL, POPULATION, BATCH, DRAWS = "stratify-cnn", 5000, 100, 200
STEPS, LR = 300, 0.05  # of the training between the two measurements
PARTITIONS = {"covering-1": "#C=1", "dir-0.5": "Dir(0.5)"}
CLIENTS = 10

Draw = Callable[[ClientData, int, np.random.Generator], np.ndarray]
"""Draws a batch of so many samples."""


def draw_simple_random(data: ClientData, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a batch from all samples, each with the same probability: their indices."""
    return rng.choice(len(data.labels), batch, replace=False)


def draw_equal_shares(data: ClientData, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a batch with the same share of each label's samples (stratified): their indices."""
    counts = np.bincount(data.labels)
    parts = [
        rng.choice(np.flatnonzero(data.labels == label), batch * count // counts.sum(), False)
        for label, count in enumerate(counts)
    ]
    return np.concatenate(parts)


def draw_scheduled(data: ClientData, batch: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the first batch of an epoch of Stratify's label schedule: the samples' indices."""
    return schedule_batches(data, rng, batch=batch).samples[:batch]


def draw_from_one_client(
    clients: ClientData, batch_size: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw a client, each with the same probability, and a batch of its samples: their indices."""
    own = clients.samples[int(rng.integers(len(clients.samples)))]
    return rng.choice(own, min(batch_size, len(own)), replace=False)


class Estimate(NamedTuple):
    """Squared bias and variance of a gradient, as multiples of the truth's squared norm. The bias is
    estimated without bias, so it may be below zero."""

    squared_bias: float
    variance: float


FIELDS = Estimate._fields


def estimate_errors(
    gradient: Callable[[np.ndarray], Tensor],
    draw: Callable[[np.random.Generator], np.ndarray],
    truth: Tensor,
    draws: int,
) -> Estimate:
    """Estimate bias and variance of the gradient of drawn batches, added over all weights."""
    mean, squares = torch.zeros_like(truth), 0.0
    for index in range(draws):
        estimate = gradient(draw(generator(0, "gradients", round=index)))
        mean += estimate / draws
        squares += float(estimate.square().sum())
    variance = (squares - draws * float(mean.square().sum())) / (draws - 1)
    size = float(truth.square().sum())
    bias = float((mean - truth).square().sum()) - variance / draws
    return Estimate(bias / size, variance / size)


class Population:
    """Samples, and a network whose gradients on them are measured."""

    def __init__(self, network: nn.Module, samples: Samples):
        self.network, self.samples = network, samples
        self.labels = samples.labels.numpy()

    def gradient(self, chosen: np.ndarray) -> Tensor:
        """The gradient of the mean loss of the chosen samples, of all weights in one vector."""
        self.network.zero_grad()
        indices = torch.from_numpy(chosen)
        outputs = self.network(self.samples.inputs(indices))
        cross_entropy(outputs, self.samples.labels[indices]).backward()
        gradients = [weight.grad for weight in self.network.parameters()]
        return torch.cat(
            [gradient.flatten().double() for gradient in gradients if gradient is not None]
        )

    def truth(self) -> Tensor:
        """The gradient of the mean loss of all samples."""
        parts = np.array_split(np.arange(len(self.labels)), -(-len(self.labels) // 500))
        shares = [self.gradient(part) * len(part) / len(self.labels) for part in parts]
        return torch.stack(shares).sum(dim=0)

    def train(self, steps: int) -> None:
        """Take steps of plain SGD on simple random batches."""
        for step in range(steps):
            rng = generator(0, "training", round=step)
            self.gradient(rng.choice(len(self.labels), BATCH, replace=False))
            with torch.no_grad():
                for weight in self.network.parameters():
                    if weight.grad is not None:
                        weight.sub_(weight.grad, alpha=LR)


def measure_draws(population: Population, draws: int, steps: int) -> pd.DataFrame:
    """Estimate the errors of all ways to draw a batch, before and after training."""
    parts = {
        title: deal_labels(name, population.labels, CLIENTS, seed=0)
        for name, title in PARTITIONS.items()
    }
    whole = next(iter(parts.values()))
    ways: dict[str, tuple[Draw, ClientData]] = {
        "simple random": (draw_simple_random, whole),
        "equal shares of labels": (draw_equal_shares, whole),
    }
    for title, data in parts.items():
        ways[f"Stratify's schedule, {title}"] = draw_scheduled, data
        ways[f"one client, {title}"] = draw_from_one_client, data
    rows = []
    for taken in (0, steps):
        population.train(taken)
        truth = population.truth()
        for name, (draw, data) in ways.items():
            drawn = partial(draw, data, BATCH)
            rows.append((taken, name, *estimate_errors(population.gradient, drawn, truth, draws)))
    return pd.DataFrame(rows, columns=["steps", "batch", *FIELDS])


def summary(measurements: pd.DataFrame) -> str:
    """Format bias and variance before and after training as a Markdown table."""
    steps = sorted(measurements["steps"].unique())
    titles = [f"{field.replace('_', ' ')}, step {step}" for step in steps for field in FIELDS]
    rows = []
    for name in measurements["batch"].unique().tolist():
        part = (
            measurements[measurements["batch"] == name].set_index("steps").loc[steps, list(FIELDS)]
        )
        rows.append([name, *map(number, part.to_numpy().flatten())])
    return table(["batch", *titles], rows)


def plot(measurements: pd.DataFrame, file: Path) -> None:
    """Plot bias and variance into a file, one panel before and one after training."""
    long = measurements.melt(["steps", "batch"], list(FIELDS), "estimate").query("value > 0")
    with rc_context():
        apply_theme()
        figure = Figure(figsize=(PAGE_WIDTH, 2.3), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, steps in zip(panels, measurements["steps"].unique().tolist(), strict=True):
            seaborn.stripplot(
                long[long["steps"] == steps],
                x="value",
                y="batch",
                order=measurements["batch"].unique(),
                hue="estimate",
                hue_order=FIELDS,
                palette=COLORS[1::-1],
                size=5,
                jitter=False,
                ax=axes,
            )
            axes.set(xscale="log", ylabel="", xlabel="multiple of the squared gradient")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
            axes.set_title(f"after {steps} steps" if steps else "initial weights")
            handles, _ = axes.get_legend_handles_labels()
            axes.get_legend().remove()
        names = [field.replace("_", " ") for field in FIELDS]
        figure.legend(handles, names, loc="outside upper center", ncols=len(names))
        figure.savefig(file)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure gradients, print the table, and write the estimates and the figure."""
    parser = argparse.ArgumentParser(prog="tools.gradients")
    parser.add_argument("data", type=Path, help="prepared CIFAR-10, in resources/data")
    parser.add_argument("--out", type=Path, help="write the estimates as CSV")
    parser.add_argument("--figure", type=Path, help="draw the estimates")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    samples = load(chosen.data, "train", torch.device("cpu"), torch.float32)
    some = draw_share(samples.labels.numpy(), POPULATION / len(samples.labels), "population")
    samples = replace(samples, values=samples.values[some], labels=samples.labels[some])
    torch.manual_seed(torch_seed(0, "initial weights"))
    network = MODELS[MODEL]().build(tuple(samples.values.shape[1:]), 10)
    measurements = measure_draws(Population(network, samples), DRAWS, STEPS)
    if chosen.out:
        measurements.to_csv(chosen.out, index=False, float_format="%.6g")
    if chosen.figure:
        plot(measurements, chosen.figure)
    print(summary(measurements))


if __name__ == "__main__":
    main()
