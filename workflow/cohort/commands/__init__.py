"""The `cohort` command line: one file per command."""
