"""Which branch runs on an accelerator, asserted without one: meta tensors, devices by name, and what was called."""

import os
from typing import Any

import numpy as np
import pytest
import torch

from repro.data import loading
from repro.data.loading import ImageStore, fetched, on_device
from repro.errors import BadInput
from repro.evaluation.bound import BLOCK_QUERIES, BLOCK_QUERIES_ELSEWHERE
from repro.evaluation.workers import workers
from repro.models import create_backbone
from repro.models.device import Acceleration, pick_device
from repro.training import distributed
from repro.training.distributed import World, process_group
from stages.launching import places
from tests.training.small import small_backbone

CUDA, META = torch.device("cuda", 0), torch.device("meta")
IMAGES = np.zeros((6, 4, 4, 3), np.uint8)


def test_a_small_dataset_lies_on_the_accelerator_and_a_large_one_stays_on_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ImageStore(IMAGES, META).images_NHWC.device == META
    monkeypatch.setattr(loading, "RESIDENT_BYTES", IMAGES.nbytes - 1)
    assert ImageStore(IMAGES, META).images_NHWC.device.type == "cpu"
    assert ImageStore(IMAGES, torch.device("cpu")).images_NHWC.device.type == "cpu"


def test_rows_of_a_large_dataset_travel_through_pinned_memory_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        called.append("pinned")
        return tensor

    def to(tensor: torch.Tensor, device: torch.device, non_blocking: bool = False) -> torch.Tensor:
        called.append((device, non_blocking))
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", to)
    images = on_device(torch.zeros(2, 4, 4, 3, dtype=torch.uint8), CUDA)
    assert called == ["pinned", (CUDA, True)]
    assert images.shape == (2, 3, 4, 4)
    called.clear()
    on_device(torch.zeros(2, 4, 4, 3), torch.device("cpu"))
    assert not called, "nothing is copied on the CPU"


def test_the_next_step_is_prepared_ahead_on_an_accelerator_only(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    pool = loading.ThreadPoolExecutor
    monkeypatch.setattr(loading, "ThreadPoolExecutor", lambda max_workers: started.append(1) or pool(max_workers))

    class Drawn:
        rows_N = torch.tensor([1, 2])

    for device, threads in ((torch.device("cpu"), 0), (META, 1)):
        list(fetched(ImageStore(IMAGES, device), lambda step: Drawn(), lambda rows: rows, range(1, 3)))
        assert len(started) == threads, device


@pytest.mark.parametrize(("device", "expected"), [(torch.device("cpu"), "gloo"), (CUDA, "nccl")])
def test_processes_meet_over_nccl_on_gpus_and_gloo_on_cpus(
    monkeypatch: pytest.MonkeyPatch, device: torch.device, expected: str
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(distributed, "pick_device", lambda _: device)
    monkeypatch.setattr(distributed, "make_deterministic", lambda: asked.update(deterministic=True))
    monkeypatch.setattr(distributed.dist, "init_process_group", lambda backend: asked.update(backend=backend))
    monkeypatch.setattr(distributed.dist, "get_rank", lambda: 1)
    monkeypatch.setattr(distributed.dist, "get_world_size", lambda: 2)
    monkeypatch.setattr(distributed.dist, "destroy_process_group", lambda: asked.update(left=True))
    monkeypatch.setattr(torch.cuda, "set_device", lambda given: asked.update(device=given))
    monkeypatch.setattr(os, "environ", os.environ | {"WORLD_SIZE": "2", "LOCAL_RANK": "1"})
    with process_group() as world:
        assert (world.rank, world.size) == (1, 2)
        assert world.device == (torch.device("cuda", 1) if device.type == "cuda" else device), "a GPU for each rank"
    assert asked["backend"] == expected and asked["left"]
    assert ("deterministic" in asked, "device" in asked) == (device.type == "cuda",) * 2


def test_batch_norm_of_several_gpus_is_the_libraries_and_of_cpus_ours() -> None:
    on_gpu, on_cpu = small_backbone(), small_backbone()
    World(CUDA, size=2).share_batch_norm(on_gpu)
    World(torch.device("cpu"), size=2).share_batch_norm(on_cpu)
    norms = [[type(one).__name__ for one in net.modules() if "BatchNorm" in str(type(one))] for net in (on_gpu, on_cpu)]
    assert [set(names) for names in norms] == [{"SyncBatchNorm"}, {"SharedBatchNorm2d"}]


@pytest.mark.parametrize(("amp", "scaled"), [("none", False), ("bf16", False), ("fp16", True)])
def test_only_fp16_scales_its_loss(amp: str, scaled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    assert Acceleration(amp=amp).scaler(CUDA).is_enabled() == scaled


@pytest.mark.parametrize("name", ["castle_convnet4", "castle_resnet12", "castle_resnet640"])
def test_backbones_pass_on_any_device_in_bf16(name: str) -> None:
    """On `meta` nothing is computed, but a tensor made on a fixed device would be refused."""
    with META:
        network, dim = create_backbone(name, 3)
        images = torch.empty(2, 3, 84, 84)
    features = network(images)
    assert (features.device, tuple(features.shape)) == (META, (2, dim))
    features.sum().backward()
    assert all(one.grad is not None and one.grad.device == META for one in network.parameters())


def test_evaluation_takes_large_blocks_one_after_the_other_on_an_accelerator() -> None:
    assert workers(CUDA) == 1
    assert BLOCK_QUERIES.get(CUDA.type, BLOCK_QUERIES_ELSEWHERE) > BLOCK_QUERIES["cpu"]


def test_places_are_the_gpus_that_the_driver_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(places.GPUS, raising=False)
    monkeypatch.setattr(places.shutil, "which", lambda _: None)
    assert places.visible_gpus() == [], "no nvidia-smi, no GPU"
    monkeypatch.setenv(places.GPUS, "3,5")
    assert places.visible_gpus() == ["3", "5"]


def test_a_gpu_that_is_not_there_is_refused_in_a_sentence() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(BadInput, match="'cuda': 0 CUDA devices here; use auto or cpu"):
        pick_device("cuda")
