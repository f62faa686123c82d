"""One file per kind of claim."""
