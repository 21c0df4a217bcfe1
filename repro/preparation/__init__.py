"""From raw images, or fonts, to a stored dataset: sources, splits, the augmented seen sets, packing."""
