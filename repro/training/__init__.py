"""Pre-training, meta-training, checkpoints."""
