"""Config files to planned cells: loading, validation, expansion, identity, cost."""

from cohort.plan.plan import CLAIMS, Plan, all_studies, drawn_names, load
from cohort.plan.study import Experiment, Row, Study

__all__ = ["CLAIMS", "Experiment", "Plan", "Row", "Study", "all_studies", "drawn_names", "load"]
