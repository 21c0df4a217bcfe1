"""Editions: what a finished run leaves in the repository, small enough to be committed and enough to rebuild its tables."""
