"""Per-task records and what they say."""
