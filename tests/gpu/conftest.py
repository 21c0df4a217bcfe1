"""Tests of this folder need a GPU: `tools/test --gpu` runs them; elsewhere they are skipped, and the skip says so."""

import pytest
import torch

WHY = "NO GPU HERE: paths that need CUDA are not tested on this machine; run `tools/test --gpu` on one that has it"


@pytest.fixture(scope="session", autouse=True)
def gpu() -> torch.device:
    """The first GPU."""
    if not torch.cuda.is_available():
        pytest.skip(WHY)
    return torch.device("cuda", 0)
