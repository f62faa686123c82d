"""Trainers, which do the local work of clients: each in a module, chosen in training.job.train."""
