"""Datasets, splits, tasks and randomness."""
