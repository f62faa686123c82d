"""Config files to planned cells: loading, validation, expansion, identity, cost."""

from cohort.plan.plan import Experiment, Plan, Row, Study, all_studies, drawn_names, load

__all__ = ["Experiment", "Plan", "Row", "Study", "all_studies", "drawn_names", "load"]
