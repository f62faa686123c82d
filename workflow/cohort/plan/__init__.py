"""Config files to planned cells: loading, validation, expansion, identity, cost."""

from cohort.plan.plan import Plan, all_studies, drawn_names, load
from cohort.plan.study import Experiment, Row, Study

__all__ = ["Experiment", "Plan", "Row", "Study", "all_studies", "drawn_names", "load"]
