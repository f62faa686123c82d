"""Training a cell: rounds, procedures, trainers, objectives, server rules, checkpoints."""
