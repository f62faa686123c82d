"""What figures, tables and reports call things: metrics with their units, labels, values."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from cohort.core.errors import UserError
from cohort.core.metric import NAME, Metric
from cohort.core.text import counted
from cohort.results.series import label_text
from cohort.selection import SELECTORS
from cohort.training.evaluators import EVALUATORS
from cohort.training.procedures import PROCEDURES
from cohort.training.servers import SERVERS

SECONDS: dict[str, Any] = {"unit": "s", "better": "low"}
SHARE: dict[str, Any] = {"unit": "%", "scale": 100, "digits": 2}
POINTS: dict[str, Any] = {"unit": "points", "scale": 100, "digits": 2}
RECORDED = {
    "train_loss": Metric("Training loss", better="low"),
    "update_norm": Metric("Mean norm of an update"),
    "cohort_entropy": Metric("Cohort label entropy", "bits"),
    "available": Metric("Clients that can be chosen", digits=0, whole=True),
    "total_weight": Metric("Sum of the updates' weights"),
    "updates_used": Metric("Updates that count", digits=0, whole=True),
    "bytes_up": Metric("Upload per round", "MB", 1e-6, better="low", whole=True),
    "bytes_down": Metric("Download per round", "MB", 1e-6, better="low", whole=True),
    "client_steps": Metric("Local steps per round", digits=1, better="low", whole=True),
    "selection_samples": Metric("Samples evaluated to select", digits=1, better="low", whole=True),
    "simulated_seconds": Metric("Simulated time per round", "s", digits=1, better="low"),
    "bytes_between": Metric("Sent between clients per round", "MB", 1e-6, better="low", whole=True),
    "seconds": Metric("Time per round", "s", better="low"),
    "seconds_training": Metric("Training time per round", "s", better="low"),
    "client_seconds_training": Metric("Training time per round and client", "s", better="low"),
    "client_seconds_to_best": Metric("Training time of a client to the best round", **SECONDS),
    "tasks_saved": Metric("Tasks saved", "%", 100, digits=1, better="high"),
    "seconds_selecting": Metric("Selection time per round", "s", better="low"),
    "seconds_scoring": Metric("Scoring CPU time per round", "ms", 1000, better="low"),
    "seconds_transfers": Metric("Time of the model's transfers per round", "s", better="low"),
    "seconds_evaluating": Metric("Evaluation time per round", "s", better="low"),
    "selecting_share": Metric("Time for selecting", "%", 100, digits=2, better="low"),
    "test_accuracy_swing": Metric("Change between rounds, SD", **POINTS, better="low"),
    "loss_minimum_round": Metric("Round of the lowest test loss", digits=0),
    "best_round": Metric("Round of the highest test accuracy", digits=0, better="low"),
    "selection_gini": Metric("Gini coefficient of selections", better="low", normalized=True),
    "selection_entropy": Metric("Normalized entropy of selections", better="high", normalized=True),
    "longest_gap": Metric("Longest wait of a client", "rounds", digits=0, better="low"),
    "never_selected": Metric("Clients never chosen", digits=0, better="low"),
    "idle_rounds": Metric("Rounds in which nobody is there", digits=0, better="low"),
    "least_selected": Metric("Fewest rounds of a client", digits=0),
    "most_selected": Metric("Most rounds of a client", digits=0),
    "selected_sd": Metric("Standard deviation of rounds of a client", digits=2),
    "tenth_percentile_accuracy": Metric("Client accuracy, 10th percentile", **SHARE, better="high"),
    "seconds_to_fedavg": Metric("Simulated time to FedAvg's accuracy", "s", digits=1, better="low"),
    "bytes_down_to_fedavg": Metric("Download to FedAvg's accuracy", "MB", 1e-6, better="low"),
    "reaches_fedavg": Metric("Reaches FedAvg's accuracy", "%", 100, digits=0, better="high"),
    "target_entropy": Metric("Entropy of the test labels"),
    "majority_accuracy": Metric("Accuracy of the most frequent class", "%", 100, digits=2),
    "size": Metric("Samples held", by="client", whole=True),
    "selected": Metric("Rounds in the cohort", digits=0, by="client", whole=True),
    "accuracy": Metric("Client accuracy", "%", 100, digits=2, by="client", partial=True),
    "loss": Metric("Client loss", by="client", partial=True),
    "classes_held": Metric("Classes held", digits=0, by="client"),
    "probe_norm": Metric("Mean norm of a client's probes", by="client"),
    "class_accuracy": Metric("Class accuracy", "%", 100, digits=2, by="class"),
    "label_count": Metric("Samples of a class", by="label", whole=True),
    "test_accuracy_gain": Metric(
        "Gain in test accuracy", **POINTS, better="high", by="pair", signed=True
    ),
}
"""What every run records, and what follows from records. Components declare the rest."""

CATALOGS: tuple[Mapping[str, Any], ...] = (EVALUATORS, PROCEDURES, SELECTORS, SERVERS)


def _declared() -> dict[str, Metric]:
    """The metrics of all runs and of the components that record their own, each declared once."""
    metrics: dict[str, Metric] = {}
    for component in itertools.chain.from_iterable(catalog.values() for catalog in CATALOGS):
        owner = f"metrics of {component.__module__}.{component.__name__}"
        if not isinstance(component.metrics, Mapping):
            raise UserError(f"{owner}: must be metrics by name")
        is_selector = hasattr(component, "select")
        if is_selector and component.metrics and not hasattr(component, "measure"):
            raise UserError(f"{owner}: only a selector that extends MetricRecording records any")
        for name, metric in component.metrics.items():
            is_metric = isinstance(metric, Metric) and (metric.by == "round" or not is_selector)
            if not is_metric or not NAME.fullmatch(name):
                form = "a name of a-z, 0-9 and _, with a Metric by round"
                raise UserError(f"{owner}: '{name}' must be {form}")
            if metrics.setdefault(name, metric) != metric or name in RECORDED:
                raise UserError(f"{owner}: '{name}' is another metric already")
    return metrics | RECORDED


METRICS = _declared()
GAIN = "_gain"  # ends the name of a difference of two results
BY_ROUND = [name for name, metric in METRICS.items() if metric.by == "round"]
BY_STEP = [name for name, metric in METRICS.items() if metric.by == "step"]
BY_CLIENT = [name for name, metric in METRICS.items() if metric.by == "client"]
BY_CLASS = [name for name, metric in METRICS.items() if metric.by == "class"]

SERIES, PANEL = FREE = ("series", "panel")
"""Labels that a study invents: they name curves and panels and are not settings."""
BASELINE = "fedavg"  # the strategy that all others are compared with
CLIENT = "client"
"""The label of results that are clients' and not runs'."""
LABEL_TITLES = {"dataset": "Data set", "lr": "Learning rate", "cohort": "Clients in a round"}
LABEL_TITLES |= {"batch": "Batch size", "selector.tau": "Exponent tau"}
LABEL_TITLES |= {"selector.window": "Window (rounds)", "selector.exploration": "Exploration c"}
SPEAK_FOR_THEMSELVES = ("dataset", "model", "partition", "strategy", *FREE)


@dataclass(frozen=True, kw_only=True)
class Names:
    """The order in which a study shows the values of each label, and their titles."""

    orders: dict[str, list[str]] = field(default_factory=dict)
    titles: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, style: Mapping[str, Any]) -> Self:
        """The names in the `style` of a resolved figure or table, with values as in the metrics."""
        orders = style.get("orders", {})
        texts = {label: list(map(label_text, values)) for label, values in orders.items()}
        return cls(orders=texts, titles=dict(style.get("titles", {})))

    def ordered(self, label: str, values: Iterable[str]) -> list[str]:
        """The distinct values in the study's order, those that it does not list last, ascending."""
        ranks = {value: index for index, value in enumerate(self.orders.get(label, []))}
        ascending = sorted(set(values), key=_natural_key)
        return sorted(ascending, key=lambda value: ranks.get(value, len(ranks)))

    def title(self, label: str) -> str:
        """A label as a title: `selector.buffer` is `Buffer`."""
        last = word(label)
        return LABEL_TITLES.get(label, last[:1].upper() + last[1:])

    def value(self, label: str, value: str) -> str:
        """The name of a value next to its label's: `FedEntOpt`, `16 local steps`, `0.5`."""
        if self.has_title(label, value):
            return self.titles[label][value]
        if label == "J" and (work := re.fullmatch(r"J([0-9]+)(e?)", value)):
            return counted(int(work[1]), "local epoch" if work[2] else "local step")
        return value

    def phrase(self, label: str, value: str) -> str:
        """The name of a value on its own: `FedEntOpt`, `J = 16 local steps`, `buffer = 0.5`."""
        if label in SPEAK_FOR_THEMSELVES or self.has_title(label, value):
            return self.value(label, value)
        return f"{word(label)} = {self.value(label, value)}"

    def has_title(self, label: str, value: str) -> bool:
        """Whether the study gives a value a title."""
        return value in self.titles.get(label, {})


def word(label: str) -> str:
    """A label as it stands within a sentence: `selector.buffer` is `buffer`."""
    return label.rpartition(".")[2].replace("_", " ")


def listed(words: Sequence[str]) -> str:
    """Join words for a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join([*([", ".join(words[:-1])] if len(words) > 1 else []), words[-1]])


def _natural_key(text: str) -> list[Any]:
    parts: list[Any] = re.split(r"([0-9]+(?:\.[0-9]+)?(?:e[-+][0-9]+)?)", text)
    return [float(part) if index % 2 else part for index, part in enumerate(parts)]
