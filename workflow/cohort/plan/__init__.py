"""Plan what to run: config files are loaded, validated, expanded into cells and resolved."""

from cohort.plan.loading import Plan, all_studies, drawn_names, load, require_study
from cohort.plan.study import Row, Study

__all__ = ["Plan", "Row", "Study", "all_studies", "drawn_names", "load", "require_study"]
