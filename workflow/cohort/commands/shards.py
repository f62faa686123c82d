"""`cohort shards`: how a partition deals a data set, before anything is trained on it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from cohort.cell.settings import SHARD_KEYS
from cohort.commands.planning import add_config, add_json, load_plan
from cohort.commands.run import make_data
from cohort.commands.screen import print_json
from cohort.core.errors import errors_at
from cohort.data.sampling import scaled_count
from cohort.data.shards import Shards
from cohort.data.store import read_labels
from cohort.partition.deal import deal_data
from cohort.plan import Plan
from cohort.selection.entropy import entropy_bits

MOST_CLIENTS = MOST_CLASSES = 30  # whose label counts are printed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the settings that shards depend on, and --json."""
    add_config(parser)
    add_json(parser)
    parser.add_argument(
        "partition",
        metavar="PARTITION",
        help="as in a study, e.g. classes-2 or dir-0.1-overlap0.2x2",
    )
    parser.add_argument(
        "--dataset", required=True, metavar="NAME", help="a data set of config/datasets.yaml"
    )
    parser.add_argument(
        "--clients", required=True, type=int, metavar="N", help="the number of clients"
    )
    parser.add_argument(
        "--seed", default=0, type=int, metavar="N", help="the seed of the cells that use it (0)"
    )
    parser.add_argument(
        "--samples",
        default=1.0,
        type=float,
        metavar="SHARE",
        help="the share of the data set that is used (1.0)",
    )
    parser.add_argument(
        "--validation",
        default=0,
        type=int,
        metavar="N",
        help="training samples set aside before dealing (0)",
    )
    parser.add_argument(
        "--holdout",
        default=0.0,
        type=float,
        metavar="SHARE",
        help="the share of its samples that each client sets aside (0.0)",
    )


def run(options: argparse.Namespace) -> None:
    """Print the shards."""
    settings = {key: getattr(options, key) for key in SHARD_KEYS}
    print_shards(load_plan(options), settings, as_json=options.json)


def print_shards(plan: Plan, settings: dict[str, Any], *, as_json: bool = False) -> None:
    """Deal as the workflow would, without writing, and print what the clients hold.

    Label counts are printed for small federations only, unless as JSON.
    """
    with errors_at("cohort shards"):
        planned = plan.plan_shards(settings)
    data = planned.inputs["data"]
    make_data(plan, data)
    dealing = Dealing(settings, deal_data(planned.settings, data), *read_labels(data)[:2])
    if as_json:
        print_json(dealing.summarize())
        return
    exact = plan.scheme(planned.settings).exact
    dealing.print_summary("borrowing" if exact else "sharing")
    clients, classes = dealing.shards.label_counts.shape
    print()
    if clients <= MOST_CLIENTS and classes <= MOST_CLASSES:
        _print_counts(dealing.shards, "borrowed" if exact else "shared")
    else:
        print(
            f"The label counts are printed for up to {MOST_CLIENTS} clients "
            f"and {MOST_CLASSES} classes."
        )


@dataclass(frozen=True)
class Dealing:
    """Shards of these settings, with the label and group of every sample of the data set."""

    settings: dict[str, Any]
    shards: Shards
    labels: np.ndarray
    groups: np.ndarray | None

    def summarize(self) -> dict[str, Any]:
        """The settings, and what each client holds."""
        groups, overlap = self.groups_held(), self.shards.overlap
        return {
            **self.settings,
            "label_counts": self.shards.label_counts.tolist(),
            "groups_held": None if groups is None else groups.tolist(),
            "overlap": None if overlap is None else overlap.tolist(),
            "label_entropy": entropy_bits(self.shards.label_counts).tolist(),
            "held_by_nobody": self.left_out(),
            "validation": len(self.shards.validation),
        }

    def groups_held(self) -> np.ndarray | None:
        """The number of groups of each client."""
        if self.groups is None:
            return None
        return np.array([len(np.unique(self.groups[part])) for part in self.shards.indices])

    def left_out(self) -> int:
        """The number of samples that no client holds and that are not set aside."""
        used = scaled_count(len(self.labels), self.settings["samples"])
        held = np.union1d(np.concatenate(self.shards.indices), self.shards.validation)
        return used - len(held)

    def print_summary(self, verb: str) -> None:
        """Print how sizes and classes spread over clients, the entropy of their labels, their
        overlap, and how many samples no client holds."""
        settings, counts, groups = self.settings, self.shards.label_counts, self.groups_held()
        clients, classes = counts.shape
        print(
            f"{settings['partition']} of {settings['dataset']}, seed {settings['seed']}: "
            f"{clients} clients, {classes} classes"
        )
        print(f"{'':20}{'lowest':>8}{'median':>8}{'highest':>8}")
        _print_spread("samples per client", counts.sum(axis=1))
        _print_spread("classes per client", (counts > 0).sum(axis=1))
        if groups is not None:
            _print_spread("groups per client", groups)
        entropy = entropy_bits(counts).mean() + 0.0  # not -0
        print(
            f"label entropy: {entropy:.2f} bits in the mean over clients; "
            f"{np.log2(classes):.2f} is every class alike"
        )
        print(f"overlapping clients: {_overlap_sentence(self.shards, verb)}")
        if left_out := self.left_out():
            print(f"samples that nobody holds: {left_out}")
        if len(self.shards.validation):
            print(f"samples set aside for validation: {len(self.shards.validation)}")


def _print_spread(name: str, values: np.ndarray) -> None:
    print(f"{name:20}{values.min():>8}{np.median(values):>8g}{values.max():>8}")


def _overlap_sentence(shards: Shards, verb: str) -> str:
    if shards.overlap is None:
        return "0"
    shares = shards.overlap[shards.overlap > 0]
    return f"{len(shares)}, {verb} {shares.min():.1%} to {shares.max():.1%} of their samples"


def _print_counts(shards: Shards, title: str) -> None:
    """Print the label counts of each client, with the share of its samples that others hold too."""
    counts = shards.label_counts
    width = len(str(counts.max())) + 1
    overlap = shards.overlap if shards.overlap is not None else np.zeros(len(counts))
    header = "".join(f"{label:>{width}}" for label in range(counts.shape[1]))
    print(f"client samples {title:>8} {'class':>{width}}{header}")
    for client, row in enumerate(counts):
        cells = "".join(f"{count or '.':>{width}}" for count in row)
        share = f"{overlap[client]:.1%}" if overlap[client] else "-"
        print(f"{client:>6}{row.sum():>8}{share:>9} {'':{max(width, 5)}}{cells}")
