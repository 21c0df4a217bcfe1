"""Devices, number formats, determinism."""

import os

import pytest
import torch

from repro.errors import BadInput
from repro.models.device import Acceleration, make_deterministic, pick_device


def test_the_device_is_found_or_refused() -> None:
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert pick_device("cpu").type == "cpu"
    with pytest.raises(BadInput, match="'gpu' is unknown; expected auto"):
        pick_device("gpu")
    with pytest.raises(BadInput, match="'cuda:99'.*use auto or cpu"):
        pick_device("cuda:99")
    with pytest.raises(BadInput, match="amp 'fp8' is unknown; expected one of none, bf16, fp16"):
        Acceleration(amp="fp8")


def test_determinism_covers_convolutions_and_matrix_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", False)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    try:
        make_deterministic()
        assert torch.backends.cudnn.deterministic
        assert torch.are_deterministic_algorithms_enabled()
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    finally:
        torch.use_deterministic_algorithms(False)
        os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
