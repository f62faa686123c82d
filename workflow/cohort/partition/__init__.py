"""Partitions: how samples are dealt to clients. Each scheme is a file in `schemes/`; dealing
depends only on the pool of samples, the number of clients and a random generator."""

import functools

from cohort.core.component_names import parse
from cohort.core.components import Catalog
from cohort.partition.scheme import Pool, Scheme
from cohort.partition.schemes.overlap import read_overlap

SCHEMES = Catalog("cohort.partition.schemes", Scheme)

__all__ = ["SCHEMES", "Pool", "Scheme", "parse_name"]


@functools.cache
def parse_name(text: str) -> Scheme:
    """The scheme that a partition's name means, such as `classes-2` or `dir-0.1-overlap0.2x2`."""
    base, marker, ratios = text.partition("-overlap")
    scheme = parse(base, SCHEMES, "partition")
    return read_overlap(scheme, ratios) if marker else scheme
