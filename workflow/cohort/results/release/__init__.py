"""Releases: finished runs as Parquet tables, exported from records and restored to them."""
