"""Tables of sizes: what labels and models weigh on the wire, which is known without any run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cohort.models import MODELS
from cohort.models.counting import counts_of
from cohort.plan.axes import Values
from cohort.results.paper import paper_file, read_paper
from cohort.results.tables.sizes import needs_no_runs


def with_sizes(spec: Values, cells: Iterable[Values], datasets: Mapping[str, Any]) -> Values:
    """Add to the spec of a table of sizes one row per data set and model of its experiment,
    whatever the scale leaves out. Any other table's spec is returned unchanged."""
    return spec | {"sizes": _sizes(cells, datasets)} if needs_no_runs(spec) else spec


def _sizes(cells: Iterable[Values], datasets: Mapping[str, Any]) -> list[Values]:
    sizes: dict[tuple[str, str], Values] = {}
    for cell in cells:
        dataset, model = cell["dataset"], cell["model"]
        if (dataset, model) in sizes:
            continue
        shape, classes = tuple(datasets[dataset]["shape"]), datasets[dataset]["classes"]
        sizes[dataset, model] = {
            "dataset": dataset,
            "model": model,
            "classes": classes,
            "clients": cell["clients"],
            "weights": counts_of(MODELS[model](), shape, classes).weights,
        }
    return list(sizes.values())


def check_paper_item(spec: Mapping[str, Any], study: str) -> None:
    """Raise UserError if a table of sizes names an item (a table or figure of the paper) that the
    file of the paper's values lacks."""
    file = paper_file(study, spec)
    if file is not None:
        read_paper(file, spec["paper"], "")
