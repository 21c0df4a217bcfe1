"""What `tools/bench` measures."""
