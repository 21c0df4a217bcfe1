"""Weights on disk load strictly or not at all."""

from pathlib import Path

import pytest
import torch
from torch import nn

from repro.errors import BadInput
from repro.models.weights import load_strictly, save_weights
from tests.training.small import small_backbone


def test_a_round_trip_keeps_every_bit(tmp_path: Path) -> None:
    first, second = small_backbone().to(memory_format=torch.channels_last), small_backbone()
    save_weights(first, tmp_path / "w.safetensors")
    load_strictly(second, tmp_path / "w.safetensors")
    assert all(map(torch.equal, first.state_dict().values(), second.state_dict().values()))


def test_weights_that_share_memory_are_saved(tmp_path: Path) -> None:
    tied = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    tied[1].weight = tied[0].weight
    save_weights(tied, tmp_path / "w.safetensors")
    apart = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    load_strictly(apart, tmp_path / "w.safetensors")
    assert apart[0].weight is not apart[1].weight
    assert all(map(torch.equal, tied.state_dict().values(), apart.state_dict().values()))


def test_all_differences_are_named_at_once(tmp_path: Path) -> None:
    save_weights(nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(2, 2)}), tmp_path / "w.safetensors")
    other = nn.ModuleDict({"a": nn.Linear(2, 4, bias=False), "c": nn.Linear(1, 1, bias=False)})
    with pytest.raises(BadInput) as caught:
        load_strictly(other, tmp_path / "w.safetensors")
    for part in ("missing c.weight", "unexpected a.bias", "unexpected b.weight", "shape (3, 2) instead of (4, 2)"):
        assert part in str(caught.value)


def test_weights_that_are_not_numbers_are_neither_saved_nor_loaded(tmp_path: Path) -> None:
    layer = nn.Linear(2, 2)
    save_weights(layer, tmp_path / "good.safetensors")
    raw = bytearray((tmp_path / "good.safetensors").read_bytes())
    raw[-4:] = b"\x00\x00\xc0\x7f"  # a float32 NaN
    (tmp_path / "bad.safetensors").write_bytes(bytes(raw))
    with pytest.raises(BadInput, match="bad.safetensors: .* holds NaN"):
        load_strictly(layer, tmp_path / "bad.safetensors")
    nn.init.constant_(layer.weight, torch.inf)
    with pytest.raises(BadInput, match="weight holds NaN or infinite"):
        save_weights(layer, tmp_path / "never.safetensors")
    assert not (tmp_path / "never.safetensors").exists()


def test_a_missing_or_cut_file_names_the_next_step(tmp_path: Path) -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(BadInput, match="no such file.*run the stage"):
        load_strictly(layer, tmp_path / "w.safetensors")
    save_weights(layer, tmp_path / "w.safetensors")
    (tmp_path / "w.safetensors").write_bytes((tmp_path / "w.safetensors").read_bytes()[:-3])
    with pytest.raises(BadInput, match="not a whole safetensors file.*delete it"):
        load_strictly(layer, tmp_path / "w.safetensors")
