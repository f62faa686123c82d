"""Config files to planned cells: loading, validation, expansion, identity, cost."""

from cohort.plan.plan import CLAIMS_TABLE, Plan, all_studies, drawn_names, load
from cohort.plan.study import Experiment, Row, Study

__all__ = [
    "CLAIMS_TABLE",
    "Experiment",
    "Plan",
    "Row",
    "Study",
    "all_studies",
    "drawn_names",
    "load",
]
