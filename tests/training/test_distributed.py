"""Two processes train as one would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from repro.data.dataset import Dataset
from repro.errors import BadInput
from repro.training.distributed import ALONE, World, process_group
from tests.training.ranked_run import trainings


def test_two_gloo_processes_give_the_losses_of_one(tiny: Dataset, tiny_folder: Path, tmp_path: Path) -> None:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "tests.training.ranked_run"]
    done = subprocess.run(
        [sys.executable, *command, str(tiny_folder), str(tmp_path / "two.json")],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "two.json").read_text())
    assert told["processes"] == 2
    alone = trainings(tiny, ALONE)
    for name, training in alone.items():
        list(training)
        assert len(training.history["loss"]) >= 14
        for measure in ("loss", "lr"):
            assert told["histories"][name][measure] == pytest.approx(training.history[measure], abs=1e-4), name
        # A query whose two nearest prototypes tie to seven digits may fall either way: one of 480.
        both = told["histories"][name]["validation"], training.history["validation"]
        assert both[0] == pytest.approx(both[1], abs=100 / 480 + 1e-6, nan_ok=True), name


def test_shares_make_up_the_batch() -> None:
    rows = torch.arange(11)
    shares = [World(rank=rank, size=3).share(rows) for rank in range(3)]
    assert [len(share) for share in shares] == [4, 4, 3]
    assert torch.equal(torch.cat(shares), rows)
    with pytest.raises(BadInput, match="a batch of 11 cannot be shared by 12 processes"):
        World(size=12).share(rows)


def test_alone_nothing_is_exchanged() -> None:
    layer = nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    gradient = layer.weight.grad.clone()
    ALONE.align(layer)
    ALONE.average_gradients(layer.parameters())
    assert torch.equal(layer.weight.grad, gradient)
    assert ALONE.agree(0.5) == 0.5
    with process_group("cpu") as world:
        assert world == ALONE


def test_batch_norm_that_cannot_be_shared_is_named() -> None:
    with pytest.raises(BadInput, match="0: BatchNorm1d.*cannot be shared by CPU processes"):
        World(size=2).share_batch_norm(nn.Sequential(nn.BatchNorm1d(3)))
