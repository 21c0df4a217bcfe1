"""Randomness is handed in: a root seed and a purpose give an independent generator.

Naming the purpose means that adding one draw somewhere cannot shift another draw elsewhere.
"""

import hashlib

import torch


def derive_seed(seed: int, *purpose: str | int) -> int:
    """Give a 63-bit seed for this purpose: equal arguments give equal seeds on every machine."""
    text = "/".join([str(seed), *map(str, purpose)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """Give a CPU generator for this purpose; draws stay on the CPU so that every device sees the same ones."""
    return torch.Generator().manual_seed(derive_seed(seed, *purpose))
