"""The programs under comparison: each a worker process that speaks benchmarks.protocol."""
