"""The networks, one file per family, and how to count their weights and operations."""

from cohort.core.components import Catalog
from cohort.models.model import Model

MODELS = Catalog("cohort.models", Model)

__all__ = ["MODELS", "Model"]
