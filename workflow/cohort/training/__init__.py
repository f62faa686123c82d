"""Training, from a planned cell to its record: procedures, trainers, objectives, server rules."""
