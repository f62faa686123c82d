"""Kinds of figures: one file each."""
