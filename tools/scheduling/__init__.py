"""The pipeline's stale stages, run in parallel on Ray by one process that alone speaks to DVC."""
