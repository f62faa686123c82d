"""Server rules, which merge updates into new global weights: one file each."""

from cohort.core.components import Catalog
from cohort.training.servers.server import ServerRule

SERVERS = Catalog("cohort.training.servers", ServerRule)

__all__ = ["SERVERS", "ServerRule"]
