"""Networks that know tensors, not tasks."""
