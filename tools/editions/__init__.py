"""The rooms of tools/edition, tools/bundle and tools/compare."""
