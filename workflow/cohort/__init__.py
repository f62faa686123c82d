"""Which clients should train next? Experiments in federated learning, from YAML to figures."""

__version__ = "0.1.0"
