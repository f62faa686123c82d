"""Plan what to run: config files are loaded, validated, expanded into cells and resolved."""

from cohort.plan.loading import (
    Plan,
    all_studies,
    claim_names,
    drawn_names,
    load,
    misnamed_studies,
    require_study,
)
from cohort.plan.study import Experiment, Row, Study

__all__ = [
    "Experiment",
    "Plan",
    "Row",
    "Study",
    "all_studies",
    "claim_names",
    "drawn_names",
    "load",
    "misnamed_studies",
    "require_study",
]
