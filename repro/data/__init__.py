"""Stored datasets, tasks, batches and randomness."""
