"""`python -m benchmarks.gpu`: everything that needs a GPU, in pieces of less than nine minutes."""
