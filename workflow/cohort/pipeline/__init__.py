"""What Snakemake and the command line share."""
