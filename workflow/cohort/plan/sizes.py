"""Tables of sizes, whose numbers the plan knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cohort.core.errors import UserError
from cohort.metrics.paper import paper_file, read_paper
from cohort.models import MODELS
from cohort.plan.axes import Values
from cohort.tables.sizes import needs_no_runs


def with_sizes(spec: Values, cells: Iterable[Values], datasets: Mapping[str, Any]) -> Values:
    """A table, and where it shows sizes each data set and model of its experiment, whatever a scale makes of that."""
    return spec | {"sizes": _sizes(cells, datasets)} if needs_no_runs(spec) else spec


def _sizes(cells: Iterable[Values], datasets: Mapping[str, Any]) -> list[Values]:
    found: dict[tuple[str, str], Values] = {}
    for cell in cells:
        facts, dataset, model = datasets[cell["dataset"]], cell["dataset"], cell["model"]
        weights = MODELS[model]().weights(tuple(facts["shape"]), facts["classes"])
        sizes = {
            "dataset": dataset,
            "model": model,
            "classes": facts["classes"],
            "clients": cell["clients"],
            "weights": weights,
        }
        found.setdefault((dataset, model), sizes)
    return list(found.values())


def check_sizes(spec: Mapping[str, Any], where: str, study: str) -> None:
    """Refuse an item of the paper that is not known."""
    file = paper_file(study, spec)
    if file is None:
        return
    try:
        read_paper(file, spec["paper"], "")
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
