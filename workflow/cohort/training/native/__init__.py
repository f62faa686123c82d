"""Training and evaluation on a CPU by machine code that is generated for a network at run time."""
