"""Partitions: how samples are dealt to clients, by the pool of samples and a random generator."""

from cohort.partition.scheme import Pool, Scheme
from cohort.partition.schemes import SCHEMES, parse_partition

__all__ = ["SCHEMES", "Pool", "Scheme", "parse_partition"]
