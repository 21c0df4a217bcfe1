"""What tools/status knows: runs as their records tell them, the pipeline's parts, and how both are shown."""
