"""The networks, and how to count their weights and operations."""

from cohort.models.networks import MODELS, Model

__all__ = ["MODELS", "Model"]
