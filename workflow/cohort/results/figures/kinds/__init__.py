"""One file per kind of figure."""
