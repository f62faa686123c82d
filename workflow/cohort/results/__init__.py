"""Metrics: records as a tidy table per experiment, their names and units, and papers' values."""
