"""The networks, one file per family, and how to count their weights and operations."""

from cohort.core.components import catalog
from cohort.models.model import Model

MODELS = catalog("cohort.models", Model)

__all__ = ["MODELS", "Model"]
