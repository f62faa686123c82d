"""Kinds of claims: one file each."""
