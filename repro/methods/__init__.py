"""One file per row of the paper's tables."""
