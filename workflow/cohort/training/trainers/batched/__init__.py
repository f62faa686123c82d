"""The whole cohort as one program with a client axis, for GPUs."""
