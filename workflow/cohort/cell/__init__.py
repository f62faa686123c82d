"""Cells: their settings, digests and evaluation rounds."""
