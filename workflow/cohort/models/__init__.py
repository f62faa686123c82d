"""The networks: one file per family."""

from cohort.core.components import catalog
from cohort.models.model import Model

MODELS = catalog("cohort.models", Model)

__all__ = ["MODELS", "Model"]
