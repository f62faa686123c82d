"""FedConcat: clusters of clients with similar labels train one network each, and one classifier
learns from all of these networks together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.core.metric import Metric
from cohort.selection.selector import Allocating, Filtering, Screening
from cohort.training.procedures.federated import OVERLAP_METRICS
from cohort.training.procedures.procedure import Procedure

if TYPE_CHECKING:
    from cohort.training.cell import Cell


@dataclass(frozen=True, kw_only=True)
class Concat(Procedure):
    """Stage 1 is FedAvg within each cluster, among those of its clients that are in the cohort. In
    stage 2 the networks are frozen, and the cohort trains a linear classifier on their concatenated
    last features, by a few batches each; every client counts the same.

    The rounds of the settings are those of both stages, so a client is asked as often as in FedAvg.
    The learning rate decays from its first value in each stage: after stage 1 nothing would be left
    to learn with. The paper does not say how stage 1 is evaluated: here by the mean of the
    probabilities that the clusters' networks give.
    """

    name: ClassVar[str] = "concat"
    trainers: ClassVar[tuple[str, ...]] = ("serial", "native")  # of the clusters' networks
    metrics: ClassVar[Mapping[str, Metric]] = {
        **OVERLAP_METRICS,
        "stage": Metric("Stage", digits=0, whole=True),
        "clusters_trained": Metric("Clusters that trained", digits=0, whole=True),
    }
    clusters: int = parameter(minimum=1, help="how many clusters")
    classifier: float = parameter(
        0.2,
        exclusiveMinimum=0,
        exclusiveMaximum=1,
        help="share of the rounds that train the classifier",
    )
    steps: int = parameter(
        3,
        minimum=1,
        help="batches by which a client trains the classifier, at most one pass over its samples",
    )
    balanced: int = parameter(
        0, minimum=0, maximum=1, help="1: no cluster has more than 1.2 times the mean size"
    )
    warm: int = parameter(
        0, minimum=0, maximum=1, help="1: the classifier begins as the sum of the clusters' own"
    )

    def check(self, cell: Cell) -> None:
        self.check_constant(cell)
        settings, selector, rule = cell.settings, cell.selector, cell.server.name
        if self.clusters > settings.clients:
            raise ValueError(
                f"makes {self.clusters} clusters, but there are only {settings.clients} clients"
            )
        if settings.rounds < 2:
            raise ValueError(
                "needs a round for the clusters and one for the classifier: "
                "rounds must be at least 2"
            )
        if rule != "average":
            raise ValueError(
                f"averages within clusters, and has no use for the server rule '{rule}'"
            )
        if settings.participation != "full":
            raise ValueError(
                "hears everybody whom it asks: "
                f"participation is '{settings.participation}'; leave it out"
            )
        abilities = Allocating | Filtering | Screening
        if isinstance(selector, abilities) or selector.needs - {"label_counts"}:
            raise ValueError(
                f"has no global model to show to the selector '{selector.name}', and trains "
                "clients on all they have: it takes a selector that sees label counts at most"
            )

    def cluster_rounds(self, rounds: int) -> int:
        """How many of so many rounds train the clusters' networks, before the classifier's."""
        return rounds - min(max(1, round(self.classifier * rounds)), rounds - 1)
