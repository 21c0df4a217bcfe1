"""Trained models on disk, and methods built on top of them."""
