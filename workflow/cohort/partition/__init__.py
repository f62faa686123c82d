"""Partitions: how samples are dealt to clients, by the pool, their number and a generator."""

from cohort.partition.schemes import SCHEMES, Pool, Scheme, parse_partition

__all__ = ["SCHEMES", "Pool", "Scheme", "parse_partition"]
