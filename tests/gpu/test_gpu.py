"""What only a GPU can show: the same numbers as on the CPU, bits that repeat, precision, streaming, NCCL, memory."""

from pathlib import Path

import pytest
import torch

from repro.data import loading
from repro.data.dataset import Dataset
from repro.data.loading import ImageStore, on_device
from repro.evaluation.embed import embed
from repro.models.device import Acceleration, make_deterministic
from repro.training.distributed import World
from stages.settings.params import Named
from tests.training.small import TRAININGS, small_backbone
from tools.rehearsing.numerics import Check, data_parallel, determinism, precision

BACKBONES = [Named("castle_convnet4_small"), Named("castle_resnet12"), Named("castle_resnet640")]


def require(check: Check) -> None:
    assert check.holds, f"{check.name}: {check.found}, allowed {check.bound}"


@pytest.mark.parametrize("kind", TRAININGS)
def test_losses_are_those_of_the_cpu(kind: str, tiny: Dataset, gpu: torch.device) -> None:
    found = []
    for device in (torch.device("cpu"), gpu):
        training = TRAININGS[kind](tiny, world=World(device), dropout=0.0)
        found.append([metrics.loss for _, metrics in zip(range(4), training, strict=False)])
    assert found[1] == pytest.approx(found[0], rel=1e-2)


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
@pytest.mark.parametrize("backbone", BACKBONES, ids=lambda one: one.name)
def test_mixed_precision_points_where_float32_does(backbone: Named, amp: str, gpu: torch.device) -> None:
    require(precision(backbone, 84, Acceleration(amp=amp), gpu))


@pytest.mark.parametrize("backbone", BACKBONES, ids=lambda one: one.name)
def test_the_same_steps_give_the_same_bits(backbone: Named, gpu: torch.device) -> None:
    make_deterministic()
    require(determinism(backbone, 84, Acceleration(amp="bf16"), gpu))


def test_compiled_backbones_train(tiny: Dataset, gpu: torch.device) -> None:
    training = TRAININGS["pretrain"](tiny, world=World(gpu), acceleration=Acceleration(amp="bf16", compile=True))
    assert all(metrics.loss < 10 for _, metrics in zip(range(3), training, strict=False))


def test_images_that_do_not_fit_are_streamed_and_arrive_whole(
    tiny: Dataset, gpu: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = torch.tensor([5, 3, 40])
    resident = ImageStore(tiny.images_NHWC, gpu)
    assert resident.images_NHWC.device == gpu
    monkeypatch.setattr(loading, "RESIDENT_BYTES", 0)
    streaming = ImageStore(tiny.images_NHWC, gpu)
    assert streaming.images_NHWC.device.type == "cpu"
    assert torch.equal(streaming.fetch(rows), resident.fetch(rows))
    assert on_device(torch.zeros(1, 2, 2, 3, dtype=torch.uint8), gpu).device == gpu


def test_embeddings_are_those_of_the_cpu(tiny: Dataset, gpu: torch.device) -> None:
    torch.manual_seed(0)
    backbone, rows = small_backbone(), tiny.roles["val"]
    here, there = (embed(backbone, tiny, rows, device) for device in (torch.device("cpu"), gpu))
    assert torch.allclose(here, there, atol=1e-3)


def test_two_gpus_train_as_one(gpu: torch.device) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("ONE GPU HERE: data-parallel training over NCCL is not tested; it needs two")
    require(data_parallel("cuda"))


def test_a_step_that_is_too_large_is_answered_with_one_that_fits(gpu: torch.device, tmp_path: Path) -> None:
    import multiprocessing

    from tools.rehearsing.fitting import Step, fits_in, largest

    processes = multiprocessing.get_context("forkserver")
    step = Step(Named("castle_resnet12"), 10**6, 84, 3, Acceleration(), "cuda")
    found = largest(lambda images: fits_in(processes, step.of(images)), step.images)
    assert 0 < found < step.images
