"""Stratify's masked labels, as an experiment of their own: what the encrypted protocol costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.metric import Metric
from cohort.settings import EVALUATION_PLANS
from cohort.training.procedures.procedure import Procedure

if TYPE_CHECKING:
    from cohort.training.cell import Cell


@dataclass(frozen=True, kw_only=True)
class MaskedLabels(Procedure):
    """One round of the protocol of masked labels (privacy/masked_labels.py), in which all clients
    take part with the label counts that they hold. Nothing is trained, so nothing is evaluated
    either.

    The metrics are the times of the paper's Table IV. The paper maps the labels of all clients
    concurrently; here one after another, and the mean client counts. Encryption comes before what
    the table measures.
    """

    name: ClassVar[str] = "masked-labels"
    requires: ClassVar[str] = "tenseal"
    metrics: ClassVar[Mapping[str, Metric]] = {
        "seconds_unique_list": Metric("Time to list the unique labels", "s", better="low"),
        "seconds_mapping": Metric("Time to map a client's labels", "s", better="low"),
        "seconds_counts": Metric("Time to count all labels", "s", better="low"),
        "seconds_encrypting": Metric("Time of a client to encrypt", "s", better="low"),
        "comparisons": Metric("Encrypted comparisons", digits=0, better="low", whole=True),
    }

    def check(self, cell: Cell) -> None:
        settings = cell.settings
        self.check_plain(cell)
        if settings.rounds != 1:
            raise ValueError(f"has a single round: rounds is {settings.rounds}, but must be 1")
        for plan in EVALUATION_PLANS[1:]:  # the first one always has a value
            if getattr(settings, plan):
                raise ValueError(f"trains no model that could be evaluated: leave out {plan}")
