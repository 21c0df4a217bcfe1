"""What is known before anything runs: no GPU, data that is missing, a disk or a memory that is too small."""

import multiprocessing
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from repro.errors import BadInput
from repro.models.device import PLAIN
from stages.settings.grid import read_grid_file
from stages.settings.params import Named, read_params
from tests.paths import ROOT
from tests.preparation.raw_trees import folder_tree
from tests.rehearsing.small import small_workspace
from tools.rehearsing import checks, fitting
from tools.rehearsing.fitting import Step, advice, fits_in, largest
from tools.rehearsing.work import Work


def work_of(folder: Path, **changes: Any) -> Work:
    workspace = small_workspace(folder / "workspace", **changes)
    return Work(read_params(workspace / "params.yaml"), read_grid_file(workspace / "paper" / "grid.yaml"), ROOT)


def raw(root: Path) -> dict[str, Any]:
    return {"source": "image_folder", "size": 16, "options": {"root": str(root), "classes": [3, 2, 2], "extra": 4}}


def test_no_gpu_is_said_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad_inputs: Any) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    work = work_of(tmp_path, machine={"device": "cuda"})
    bad_inputs.tried()
    with pytest.raises(BadInput, match=r"machine.device: device 'cuda': 0 CUDA devices.*nvidia-smi is not here"):
        checks.device_of(work)
    bad_inputs.answered()
    assert "nvidia-smi is not here" in checks.describe_device(torch.device("cpu"))


def test_data_that_is_missing_in_the_third_dataset_is_named_before_any_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad_inputs: Any
) -> None:
    work = work_of(tmp_path)
    datasets = dict(work.params.datasets)
    third = list(datasets)[2]
    datasets[third] = type(datasets[third])(**raw(tmp_path / "nowhere"))
    work.params = type(work.params)(**{**vars(work.params), "datasets": datasets})
    monkeypatch.setattr(checks, "examine", lambda *_, **__: pytest.fail("nothing is read"))
    bad_inputs.tried()
    with pytest.raises(BadInput, match=rf"datasets.{third}.options.root is .*nowhere, which is not there; .*--only"):
        checks.sizes_of_data(work)
    bad_inputs.answered()


def test_data_that_the_doctor_refuses_is_named(tmp_path: Path, bad_inputs: Any) -> None:
    root = folder_tree(tmp_path / "raw", [f"class {number}" for number in range(7)], per_class=6)
    work = work_of(tmp_path)
    datasets = {**work.params.datasets, "mini": type(work.params.datasets["mini"])(**raw(root))}
    work.params = type(work.params)(**{**vars(work.params), "datasets": datasets})
    work.resolver = work.resolver.with_params(work.params)
    bad_inputs.tried()
    with pytest.raises(BadInput, match=r"datasets.mini: .*tasks.*tools/doctor --dataset NAME"):
        checks.sizes_of_data(work)
    bad_inputs.answered()


def test_a_disk_that_is_too_small_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 10**9))
    assert checks.disk_verdict(4 * 10**9, tmp_path) == ""
    verdict = checks.disk_verdict(6 * 10**9, tmp_path)
    assert "5.00 GB free, the whole run needs 6.00 GB" in verdict and checks.LINK in verdict
    cached(tmp_path, "hardlink,reflink,copy")
    assert "cache.type" not in checks.disk_verdict(6 * 10**9, tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
    assert "1.0 MB free, the whole run needs 9.0 MB" in checks.disk_verdict(9 * 10**6, tmp_path)


def cached(folder: Path, types: str, name: str = "config") -> None:
    (folder / ".dvc").mkdir(exist_ok=True)
    (folder / ".dvc" / name).write_text(f"[cache]\n    type = {types}\n")


@pytest.mark.parametrize(
    ("types", "copies"),
    [("hardlink,symlink", 1), ('"hardlink,reflink,copy"', 1), ("reflink,copy", 2), ("copy,hardlink", 2), ("", 2)],
)
def test_outputs_count_twice_unless_the_cache_links_them(tmp_path: Path, types: str, copies: int) -> None:
    assert checks.cache_copies(tmp_path) == 2, "DVC's own default copies where it cannot share blocks"
    cached(tmp_path, types)
    assert checks.cache_copies(tmp_path) == copies
    cached(tmp_path, "copy", "config.local")
    assert checks.cache_copies(tmp_path) == 2


def test_the_configuration_of_this_repository_links(tmp_path: Path) -> None:
    (tmp_path / ".dvc").mkdir()
    shutil.copy(ROOT / ".dvc" / "config", tmp_path / ".dvc" / "config")
    assert checks.cache_copies(tmp_path) == 1


def test_the_largest_step_is_found_by_halving() -> None:
    tried: list[int] = []
    assert largest(lambda images: tried.append(images) or images <= 50, 128) in range(43, 51)
    assert len(tried) < 8
    assert largest(lambda images: True, 128) == 128
    assert largest(lambda images: False, 128) == 0


def test_a_step_beyond_the_memory_is_answered_with_one_that_fits() -> None:
    """A limit on the address space stands in for a small GPU: torch says that it cannot allocate."""
    limit = _address_space() + 1500 * 2**20
    step = Step(Named("castle_resnet12"), 2000, 84, 3, PLAIN, "cpu", memory_limit=limit)
    processes = multiprocessing.get_context("forkserver")
    assert not fits_in(processes, step)
    assert fits_in(processes, step.of(1))


def _address_space() -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize")]
    return int(line.split()[1]) * 1024


def test_the_advice_names_the_setting(tmp_path: Path) -> None:
    work = work_of(tmp_path)
    pretrain, train = work.stages["pretrain", "mini-standard"], work.stages["train", "mini-castle-1shot"]
    assert "40 of its 128 images a step fit; set pretraining.batch to 40, or set precision.amp" in advice(
        pretrain, 40, 128
    )
    assert "lower the options of castle that draw images" in advice(train, 40, 152)
    evaluation = work.stages["evaluate", "mini-castle-1shot"]
    told = fitting.Measured("evaluate", "mini-castle-1shot", memory=True)
    assert "lower machine.memory_mb from 512 to 256" in fitting.memory_advice(told, evaluation)
