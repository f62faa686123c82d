"""What a cell is: its settings, its digest, the rounds in which it is evaluated."""
