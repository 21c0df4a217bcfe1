"""Embedding once: the same vectors as the network itself gives, stored with the model's hash, checked."""

from pathlib import Path

import pytest
import timm
import torch
from torch import Tensor, nn

import repro.models  # noqa: F401 - registers the backbones
from repro.data.dataset import Dataset, open_dataset
from repro.data.loading import ImageStore, normalise
from repro.errors import BadInput
from repro.evaluation.embed import Embedded, embed, folded, read_embeddings, write_embeddings
from tests.conftest import write_tiny_dataset
from tests.faults.scene import flip

CPU = torch.device("cpu")
BACKBONES = ("castle_convnet4_small", "castle_convnet4", "castle_resnet12", "castle_resnet640")


class Flat(nn.Module):
    """Mean and spread of an image, NaN for a chosen one; its control flow cannot be traced."""

    def __init__(self, poison: float | None = None) -> None:
        super().__init__()
        self.poison = poison
        self.norm = nn.BatchNorm2d(1)

    def forward(self, images: Tensor) -> Tensor:
        images = self.norm(images)
        features = torch.stack([images.mean(dim=(1, 2, 3)), images.std(dim=(1, 2, 3))], dim=1)
        if self.poison is not None and bool((features[:, 0] > self.poison).any()):
            return features.masked_fill(features[:, :1] > self.poison, torch.nan)
        return features


@pytest.mark.parametrize("name", BACKBONES)
def test_folding_keeps_the_embedding_and_the_network(name: str) -> None:
    torch.manual_seed(0)
    network = timm.create_model(name, in_chans=1, num_classes=0)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
    images = torch.randn(2, 1, 28, 28)
    fast = folded(network)
    assert network.training and not any(isinstance(module, nn.BatchNorm2d) for module in fast.modules())
    with torch.no_grad():
        assert torch.allclose(fast(images), network.eval()(images), rtol=1e-3, atol=1e-4)


def test_embeddings_are_the_networks_own_in_the_order_asked_for(tiny: Dataset) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    rows = torch.tensor([5, 700, 3, 41, 200])
    found = embed(network, tiny, rows, CPU, batch=2)
    images = normalise(ImageStore(tiny.images_NHWC, CPU).fetch(rows))
    with torch.no_grad():
        assert found.dtype == torch.float32 and torch.allclose(found, network.eval()(images), atol=1e-5)


def test_a_network_that_cannot_be_traced_is_embedded_all_the_same(tiny: Dataset) -> None:
    rows = torch.arange(7)
    images = normalise(ImageStore(tiny.images_NHWC, CPU).fetch(rows))
    assert torch.allclose(embed(Flat(poison=1e9), tiny, rows, CPU), Flat(poison=1e9).eval()(images), atol=1e-6)


def test_images_that_are_not_embedded_are_not_checked(tmp_path: Path) -> None:
    write_tiny_dataset(tmp_path / "tiny")
    flip(tmp_path / "tiny" / "images.npy", at=-1)
    dataset = open_dataset(tmp_path / "tiny")
    last = len(dataset.labels_N) - 1
    assert len(embed(Flat(), dataset, torch.arange(last), CPU)) == last
    with pytest.raises(BadInput, match=rf"images\.npy: content is \w+ in image {last}, expected"):
        embed(Flat(), dataset, torch.tensor([last]), CPU)


def test_an_embedding_that_is_no_number_names_image_and_class(tiny: Dataset) -> None:
    features = embed(Flat(), tiny, torch.arange(len(tiny.labels_N)), CPU)[:, 0]
    worst = int(features.argmax())
    poison = float(features.topk(2).values.mean())
    name = tiny.header.classes[int(tiny.labels_N[worst])].name
    with pytest.raises(BadInput, match=rf"the embedding of image {worst} \(class {name}\) is not finite"):
        embed(Flat(poison), tiny, torch.arange(len(tiny.labels_N)), CPU)


def stored() -> Embedded:
    return Embedded(torch.tensor([2, 3, 9]), torch.arange(12.0).view(3, 4), "0123abcd")


def test_stored_embeddings_come_back_as_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_embeddings(tmp_path / name, stored())
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    back = read_embeddings(tmp_path / "first", "0123abcd")
    assert torch.equal(back.rows_N, stored().rows_N) and torch.equal(back.embeddings_ND, stored().embeddings_ND)
    assert torch.equal(back.of(torch.tensor([[9, 2], [2, 3]]))[..., 0], torch.tensor([[8.0, 0.0], [0.0, 4.0]]))


def test_embeddings_of_another_model_or_image_are_refused(tmp_path: Path) -> None:
    write_embeddings(tmp_path / "embeddings", stored())
    with pytest.raises(BadInput, match="embeddings of model 0123abcd, expected ffff"):
        read_embeddings(tmp_path / "embeddings", "ffff")
    (tmp_path / "embeddings").write_bytes(b"no")
    with pytest.raises(BadInput, match="not stored embeddings"):
        read_embeddings(tmp_path / "embeddings", "0123abcd")
    for row in (4, 11):
        with pytest.raises(BadInput, match=f"image {row} has no embedding"):
            stored().of(torch.tensor([3, row]))
