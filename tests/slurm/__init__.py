"""The workflow on a real SLURM, which this machine plays alone."""
