"""A stage that runs out of memory is told apart from any other failure, and answered with a step that fits."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from stages.settings.grid import read_grid_file
from stages.settings.params import read_params
from tests.paths import ROOT
from tests.rehearsing.small import small_workspace
from tools.rehearsing import memory
from tools.rehearsing.child import is_out_of_memory
from tools.rehearsing.choosing import Chosen
from tools.rehearsing.measuring import Measured
from tools.rehearsing.predicting import Rehearsed
from tools.rehearsing.sizes import drawn_size
from tools.rehearsing.work import Work


def test_running_out_of_memory_is_told_apart() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.empty(2**50)
    assert is_out_of_memory(refused.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


@pytest.fixture
def work(tmp_path: Path) -> Work:
    folder = small_workspace(tmp_path / "workspace")
    return Work(read_params(folder / "params.yaml"), read_grid_file(folder / "paper" / "grid.yaml"), ROOT, ["mini"])


def rehearsal(work: Work, device: str) -> Any:
    said: list[str] = []
    return SimpleNamespace(work=work, device=torch.device(device), processes=None, tell=said.append, said=said)


def test_the_answer_is_the_largest_step_that_fits(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "fits_in", lambda _, step: step.images <= 40)
    chosen, full = Chosen(work), {"mini": drawn_size(work.params.datasets["mini"].options, 16)}
    measured = {stage.key: Measured(*stage.key) for stage in chosen.stages}
    measured["pretrain", "mini-standard"] = Measured("pretrain", "mini-standard", problem="no memory", memory=True)
    measured["evaluate", "mini-mc_knn-1shot"] = Measured("evaluate", "mini-mc_knn-1shot", problem="no", memory=True)
    found = memory.memory_lines(rehearsal(work, "cpu"), Rehearsed(measured, {}, {}, full, {}), chosen, {})
    assert len(found) == 2
    assert "pretrain mini-standard: 40 of its 128 images a step fit; set pretraining.batch to 40" in found[0]
    assert "lower machine.memory_mb" in found[1]


def test_a_gpu_is_asked_for_the_largest_step_before_anything_runs(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(memory, "fits_in", lambda _, step: tried.append(step.images) or step.images <= 40)
    here = rehearsal(work, "cuda")
    found = memory.too_large_steps(here, {"mini": drawn_size(work.params.datasets["mini"].options, 16)})
    assert tried[0] == max(tried)
    assert len(found) == 1 and here.said and "images a step fit" in here.said[0]


def test_a_cpu_is_counted(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    full = {"mini": drawn_size(work.params.datasets["mini"].options, 16)}
    assert memory.too_large_steps(rehearsal(work, "cpu"), full) == {}
    monkeypatch.setattr(memory, "memory_of", lambda _: 10**6)
    (sentence,) = memory.too_large_steps(rehearsal(work, "cpu"), full).values()
    assert "counted" in sentence and "GB are free" in sentence
