"""Devices, number formats, determinism."""

import os

import pytest
import torch

from repro.errors import BadInput
from repro.models import create_backbone, require_room
from repro.models.device import Acceleration, make_deterministic, pick_device, use_cpu


def test_the_device_is_found_or_refused() -> None:
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert pick_device("cpu").type == "cpu"
    with pytest.raises(BadInput, match="'gpu' is unknown; expected auto"):
        pick_device("gpu")
    with pytest.raises(BadInput, match="'cuda:99'.*use auto or cpu"):
        pick_device("cuda:99")
    with pytest.raises(BadInput, match="amp 'fp8' is unknown; expected one of none, bf16, fp16"):
        Acceleration(amp="fp8")
    with pytest.raises(BadInput, match="amp 'auto' would let results depend on the machine.*one of none, bf16, fp16"):
        Acceleration(amp="auto")


@pytest.mark.parametrize(
    "name", ["mps", "cpu:7", "meta", "xla", "hip", "cuda:-1", "cuda:x", "", "cpu ", "privateuseone"]
)
def test_odd_devices_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is unknown; expected auto, cpu, cuda or cuda:<number>"):
        pick_device(name)


def test_fewer_threads_than_asked_for_are_refused_before_openmp_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")
    use_cpu(1)
    with pytest.raises(BadInput, match="OMP_THREAD_LIMIT is 1, expected at least 2, the `threads` of params.yaml"):
        use_cpu(2)
    assert torch.get_num_threads() == 1


def test_images_too_small_for_a_backbone_are_named_with_the_option() -> None:
    backbone, _ = create_backbone("castle_convnet4_small", 1)
    require_room(backbone, "castle_convnet4_small", (16, 16, 1), "datasets.mini.size")
    assert backbone.training
    with pytest.raises(BadInput, match="images of 8×8 pixels do not pass through .* raise datasets.mini.size"):
        require_room(backbone, "castle_convnet4_small", (8, 8, 1), "datasets.mini.size")


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
