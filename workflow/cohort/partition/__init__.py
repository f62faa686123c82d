"""Partitions: how samples are dealt to clients. Each scheme is a file in `schemes/`; dealing
depends only on the pool of samples, the number of clients and a random generator."""

import functools

from cohort.core.component_names import parse
from cohort.core.components import Catalog
from cohort.partition.schemes import (
    Classes,
    Covering,
    Dirichlet,
    DirichletDomains,
    Domains,
    Iid,
    IsolatedDomain,
    Overlap,
    PlainDirichlet,
    Pool,
    Quantity,
    Roles,
    Sampled,
    Scheme,
    parse_overlap,
)

SCHEMES = Catalog(
    "cohort.partition.schemes",
    Scheme,
    (
        Classes,
        Covering,
        Dirichlet,
        DirichletDomains,
        PlainDirichlet,
        Domains,
        Iid,
        IsolatedDomain,
        Overlap,
        Quantity,
        Roles,
        Sampled,
    ),
)

__all__ = ["SCHEMES", "Pool", "Scheme", "parse_partition"]


@functools.cache
def parse_partition(text: str) -> Scheme:
    """Build the scheme that a partition's name describes, such as `classes-2` or
    `dir-0.1-overlap0.2x2`."""
    base, marker, ratios = text.partition("-overlap")
    scheme = parse(base, SCHEMES, "partition")
    return parse_overlap(scheme, ratios) if marker else scheme
