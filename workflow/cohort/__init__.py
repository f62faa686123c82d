"""Cohort: which clients should train next? Experiments in federated learning, from a study in YAML to its figures."""

__version__ = "0.1.0"
