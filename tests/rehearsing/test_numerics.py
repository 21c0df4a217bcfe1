"""Precision, determinism and equality of processes on the CPU: they hold, and what is wrong is found."""

import re

import pytest
import torch
from torch import Tensor, nn

from repro.models.device import Acceleration
from stages.settings.params import Named
from tools.rehearsing import numerics
from tools.rehearsing.numerics import SMALL, Check, data_parallel, determinism, precision

CPU = torch.device("cpu")
RESNET = Named("castle_resnet12")


def require(check: Check) -> None:
    assert check.holds, f"{check.name}: {check.found}, allowed {check.bound}"


@pytest.mark.parametrize(("backbone", "size"), [(SMALL, 28), (RESNET, 32)], ids=["convnet", "resnet"])
def test_bf16_has_the_loss_and_the_direction_of_float32(backbone: Named, size: int) -> None:
    check = precision(backbone, size, Acceleration(amp="bf16"), CPU)
    require(check)
    assert not check.found.startswith("loss 0.00%") or "1.0000" not in check.found, "bf16 was not used"


def test_the_same_steps_give_the_same_bits() -> None:
    require(determinism(SMALL, 16, Acceleration(), CPU))


def test_two_gloo_processes_train_as_one() -> None:
    require(data_parallel("cpu"))


def test_a_format_that_loses_the_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = numerics._one_batch

    def noisy(*given: object) -> tuple[float, Tensor]:
        loss, gradient = exact(*given)  # type: ignore[arg-type]
        is_mixed = given[2].amp != "none"  # type: ignore[attr-defined]
        return loss, gradient + is_mixed * gradient.std() * torch.randn_like(gradient)

    monkeypatch.setattr(numerics, "_one_batch", noisy)
    check = precision(SMALL, 16, Acceleration(amp="bf16"), CPU)
    assert not check.holds and float(re.findall(r"0\.\d+$", check.found)[0]) < 0.95


def test_steps_that_draw_from_elsewhere_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noise(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return images + torch.rand(images.shape, generator=fresh)

    fresh = torch.Generator()
    build = numerics._model

    def restless(backbone: Named) -> nn.Module:
        model = build(backbone)
        model.backbone = nn.Sequential(Noise(), model.backbone)
        return model

    monkeypatch.setattr(numerics, "_model", restless)
    assert not determinism(SMALL, 16, Acceleration(), CPU).holds
