"""How samples are dealt to clients: one file per scheme, each a pure function of a pool of samples, clients and a generator."""

from cohort.core.component_names import parse
from cohort.core.components import catalog
from cohort.partition.scheme import Pool, Scheme
from cohort.partition.schemes.overlap import read_overlap

SCHEMES = catalog("cohort.partition.schemes", Scheme)

__all__ = ["SCHEMES", "Pool", "Scheme", "parse_name"]


def parse_name(text: str) -> Scheme:
    """The scheme that a partition's name means: `classes-2`, `dir-0.1-minimum1`, `dir-0.1-overlap0.2x2`."""
    base, marker, ratios = text.partition("-overlap")
    scheme = parse(base, SCHEMES, "partition")
    return read_overlap(scheme, ratios) if marker else scheme
