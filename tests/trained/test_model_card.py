"""README.md beside weights: read by the Hugging Face library, sealed with the folder, the same for the same model."""

from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard

from repro.data.dataset import Dataset, open_dataset
from repro.files import check_seal, sha256
from repro.methods.registry import method_names
from repro.trained.building import load_method
from repro.trained.folders import README, WEIGHTS, Card, build_pretrained, write_model
from repro.trained.model_card import model_card
from tests.conftest import write_tiny_dataset

CARD = Card(dataset="tiny", backbone="castle_convnet4_small", channels=1, seen_classes=8, classifier="linear")


def write(folder: Path, data: Dataset) -> Path:
    write_model(folder, build_pretrained(CARD, seed=0), CARD, data, torch.device("cpu"), seed=0)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("data") / "tiny"
    write_tiny_dataset(folder, seen=8, val=2, test=2, per_class=3, size=16)
    return open_dataset(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, data: Dataset) -> Path:
    return write(tmp_path_factory.mktemp("model"), data)


def test_the_hub_reads_it_and_the_seal_names_it(folder: Path) -> None:
    card = ModelCard.load(folder / README)
    assert card.data.library_name == "castle-repro" and "generalized-few-shot-learning" in card.data.tags
    assert "8 seen classes" in card.text and set(check_seal(folder)) >= {README, WEIGHTS}


def test_the_line_of_code_in_it_loads_the_model(folder: Path) -> None:
    (line,) = [line for line in (folder / README).read_text().splitlines() if line.startswith("method = ")]
    names = {"Path": Path, "load_method": load_method}
    exec(line.replace("this folder", str(folder)), names)  # noqa: S102 - as its reader does
    assert names["method"].seen_classes == 8  # type: ignore[attr-defined]


def test_the_same_model_has_the_same_card(folder: Path, data: Dataset, tmp_path: Path) -> None:
    assert sha256(write(tmp_path, data) / README) == sha256(folder / README)


@pytest.mark.parametrize("name", method_names())
def test_every_method_speaks_in_its_own_words(name: str) -> None:
    text = model_card(Card(**{**vars(CARD), "method": name, "options": {"temperature": 0.5}}), 1234)
    assert ModelCard(text).data.tags[-1] == name
    assert "temperature = 0.5" in text and "1,234" in text and f'"{name}"' in text
