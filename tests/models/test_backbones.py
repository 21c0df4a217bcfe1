"""The backbones through timm: sizes, names of weights, DropBlock and its schedule."""

import pytest
import timm
import torch

from repro.errors import BadInput
from repro.evaluation.embed import folded
from repro.models import create_backbone, own_backbones
from repro.models.resnet12 import Block, drop_block

FEATURES = {"castle_convnet4": 64, "castle_convnet4_small": 64, "castle_resnet12": 640, "castle_resnet640": 640}
SIDE = 32


def test_all_backbones_are_registered() -> None:
    assert set(own_backbones()) == set(FEATURES)


@pytest.mark.parametrize("name", FEATURES)
def test_images_become_pooled_features_in_either_memory_layout(name: str) -> None:
    torch.manual_seed(0)
    backbone = timm.create_model(name, in_chans=1, num_classes=0).eval()
    images = torch.randn(2, 1, SIDE, SIDE)
    with torch.no_grad():
        features_ND = backbone(images)
        same_ND = backbone.to(memory_format=torch.channels_last)(images.to(memory_format=torch.channels_last))
    assert features_ND.shape == (2, FEATURES[name]) and backbone.num_features == FEATURES[name]
    torch.testing.assert_close(same_ND, features_ND, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FEATURES)
def test_without_the_final_activation_features_take_both_signs_folded_or_not(name: str) -> None:
    """What DFSL's cosine classifier stands on; the weights have the same names either way."""
    torch.manual_seed(0)
    images = torch.randn(8, 1, SIDE, SIDE)
    usual, _ = create_backbone(name, 1)
    bare, _ = create_backbone(name, 1, final_activation=False)
    bare.load_state_dict(usual.state_dict())
    with torch.no_grad():
        usual_ND, bare_ND, folded_ND = usual.eval()(images), bare.eval()(images), folded(bare)(images)
    # Averages of leaky activations dip below zero too, by a tenth.
    assert (bare_ND < 0).double().mean() > 0.2
    assert bare_ND.min() < 3 * usual_ND.min() - 0.01
    torch.testing.assert_close(folded_ND, bare_ND, rtol=1e-3, atol=1e-4)


def test_a_classifier_comes_where_timm_is_asked_for_one() -> None:
    backbone = timm.create_model("castle_convnet4_small", in_chans=1, num_classes=5)
    assert backbone(torch.zeros(2, 1, 28, 28)).shape == (2, 5)
    backbone.reset_classifier(0)
    assert backbone(torch.zeros(2, 1, 28, 28)).shape == (2, 64)


def test_resnet12_has_the_released_weights_names_and_size() -> None:
    backbone, dim = create_backbone("castle_resnet12", 3)
    names = dict(backbone.named_parameters())
    blocks = {name.rsplit(".", maxsplit=2)[0] for name in names if "conv" in name}
    assert dim == 640 and blocks == {f"layer{number}.0" for number in (1, 2, 3, 4)}
    assert {name.removeprefix("layer4.0.") for name in names if name.startswith("layer4")} == {
        *(f"conv{number}.weight" for number in (1, 2, 3)),
        *(f"bn{number}.{kind}" for number in (1, 2, 3) for kind in ("weight", "bias")),
        *("downsample.0.weight", "downsample.1.weight", "downsample.1.bias"),
    }
    assert sum(parameter.numel() for parameter in names.values()) == 12_424_320


@pytest.mark.parametrize("name", ["resnet10t", "mobilenetv3_small_050"])
def test_any_timm_model_serves_as_backbone(name: str) -> None:
    backbone, dim = create_backbone(name, 1)
    with torch.no_grad():
        assert backbone.eval()(torch.zeros(2, 1, SIDE, SIDE)).shape == (2, dim)


def test_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(BadInput, match="unknown backbone 'resnet13'.*castle_resnet12"):
        create_backbone("resnet13", 3)
    with pytest.raises(BadInput, match="does not take the options .'widht'"):
        create_backbone("castle_convnet4", 3, widht=3)


def test_drop_block_drops_the_asked_share_in_squares_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    dropped = drop_block(torch.ones(64, 32, 10, 10), torch.tensor(0.1), 5)
    zero = dropped == 0
    # Squares may overlap, so the share falls a little short of the rate.
    assert 0.07 < zero.double().mean() <= 0.105
    assert dropped.mean() == pytest.approx(1, abs=1e-5)
    # A zero belongs to at least one full 5×5 square of zeros.
    windows = torch.nn.functional.max_pool2d(1 - zero.float(), 5, stride=1)
    grown = torch.nn.functional.max_pool2d(torch.nn.functional.pad(1 - windows, (4, 4, 4, 4)), 5, stride=1)
    assert torch.equal(grown.bool(), zero)


def test_drop_block_of_a_map_smaller_than_the_square_stays_finite() -> None:
    assert drop_block(torch.ones(8, 4, 2, 2), torch.tensor(0.9), 5).isfinite().all()


def test_drop_block_grows_with_the_batches_that_batch_norm_has_seen() -> None:
    torch.manual_seed(0)
    block = Block(2, 3, drop_rate=0.5, block_size=2, warm_up=10)
    images = torch.randn(16, 2, 16, 16)

    def zeros(batches: int) -> float:
        block.bn1.num_batches_tracked.fill_(batches)
        return (block(images) == 0).double().mean().item()

    early, half, full, late = zeros(0), zeros(4), zeros(9), zeros(99)
    assert 0 < early < half < full
    assert late == pytest.approx(full, abs=0.05)
    assert (block.eval()(images) == 0).sum() == 0
