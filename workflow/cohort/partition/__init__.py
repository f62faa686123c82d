"""Partitions: how samples are dealt to clients. Dealing depends only on the pool of samples, the
number of clients and a random generator."""

from cohort.partition.schemes import SCHEMES, Pool, Scheme, parse_partition

__all__ = ["SCHEMES", "Pool", "Scheme", "parse_partition"]
