"""Claims: sentences of papers turned into comparisons over cells, and their verdicts."""
