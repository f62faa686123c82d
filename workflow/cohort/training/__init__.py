"""From a frozen plan file to a record: procedures, trainers, objectives, server rules, checkpoints."""
