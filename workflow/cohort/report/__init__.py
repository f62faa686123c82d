"""One page that a person reads: every figure and table of a set of studies, and how many runs stand behind each."""
