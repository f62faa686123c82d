"""One cell as a job: lease, GPU, checkpoints, record."""
