"""What stages share: their configurations from parameters, models and methods on disk, the shown training."""
