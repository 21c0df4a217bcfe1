"""Tasks in, per-task measures out."""
