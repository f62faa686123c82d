"""Records of an experiment as one tidy table, with names and units, beside what the papers print."""
