"""Editions: what a finished run leaves in the repository, small and yet enough to rebuild its tables."""
