"""What Snakemake and the command line share: input functions, targets, status, previews."""
