"""What one stage leaves for the next, damaged in between: datasets, tasks, weights, cards, embeddings, checkpoints."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from repro.files import seal
from tests.bad_inputs.asking import Damage, Row, RunsCode, cut, grid, removed, several, written

TASKS = "stages episodes mini"
MODEL = "models/pretrained/mini-standard/0"
MEASURE = "stages evaluate mini-mc_knn-1shot"
TRAIN = "stages train mini-protonet-1shot"
WEIGHTS = f"{MODEL}/model.safetensors"
CHECKPOINT = "checkpoints/mini-protonet-1shot-0/step-000000002"


def flipped(file: str) -> Damage:
    """One bit in the middle of the file is another."""

    def flip(folder: Path) -> None:
        content = bytearray((folder / file).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / file).write_bytes(content)

    return flip


def tensors(change: Callable[[dict[str, Tensor]], object], file: str = WEIGHTS) -> Damage:
    """Weights changed by hand and stored soundly."""

    def store(folder: Path) -> None:
        loaded = {name: tensor.clone() for name, tensor in load_file(folder / file).items()}
        change(loaded)
        save_file(loaded, folder / file)

    return store


def facts(file: str, **changes: object) -> Damage:
    """A JSON file with other values."""

    def change(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(content | changes))

    return change


def link(file: str) -> Damage:
    """A file that is a link to itself."""
    return several(removed(file), lambda folder: (folder / file).symlink_to(Path(file).name))


def poisoned(name: str, value: float) -> Damage:
    return tensors(lambda loaded: loaded[name].fill_(value))


TABLE: dict[str, Row] = {
    "no dataset": (lambda folder: shutil.rmtree(folder / "data"), TASKS, "no dataset.json; expected a folder of"),
    "a truncated array": (cut("data/mini/0/images.npy"), TRAIN, "images.npy: content is"),
    "an array with one other bit": (flipped("data/mini/0/images.npy"), TRAIN, "images.npy: content is"),
    "no manifest": (removed("data/mini/0/manifest.parquet"), TASKS, "manifest.parquet: content is no file"),
    "a manifest that is a link to itself": (
        link("data/mini/0/manifest.parquet"),
        TASKS,
        "manifest.parquet: content is",
    ),
    "a description that is no JSON": (
        cut("data/mini/0/dataset.json"),
        TASKS,
        "dataset.json: not a dataset description",
    ),
    "a description of something else": (written("data/mini/0/dataset.json", "[]"), TASKS, "not a dataset description"),
    "a description with another domain": (
        facts("data/mini/0/dataset.json", domains=["../../params.yaml"]),
        TASKS,
        "dataset.json: content is",
    ),
    "a seal that leaves the images out": (
        lambda folder: seal(folder / "data" / "mini" / "0", "dataset.json", "manifest.parquet"),
        TRAIN,
        "images.npy: content is",
    ),
    "no tasks": (lambda folder: shutil.rmtree(folder / "episodes"), MEASURE, "not a stored task list"),
    "truncated tasks": (cut("episodes/mini/test/0/5way-1shot.safetensors"), MEASURE, "not a stored task list"),
    "tasks with one other bit": (flipped("episodes/mini/test/0/5way-1shot.safetensors"), MEASURE, "5way-1shot"),
    "tasks of other images": (
        tensors(lambda loaded: loaded["support"].fill_(10**6), "episodes/mini/test/0/5way-1shot.safetensors"),
        MEASURE,
        "not a stored task list",
    ),
    "no weights": (removed(WEIGHTS), TRAIN, "model.safetensors"),
    "truncated weights": (cut(WEIGHTS), TRAIN, "model.safetensors"),
    "a pickle for weights": (written(WEIGHTS, pickle.dumps(RunsCode())), TRAIN, "model.safetensors"),
    "a torch file for weights": (lambda folder: torch.save(RunsCode(), folder / WEIGHTS), TRAIN, "model.safetensors"),
    "weights of another shape": (
        tensors(lambda loaded: loaded.update({"classifier.weight_SD": torch.zeros(3, 64)})),
        TRAIN,
        "model.safetensors",
    ),
    "a weight too many": (tensors(lambda loaded: loaded.update(more=torch.zeros(1))), TRAIN, "model.safetensors"),
    "weights that are no numbers": (poisoned("classifier.weight_SD", float("nan")), TRAIN, "model.safetensors"),
    "infinite weights": (poisoned("classifier.weight_SD", float("inf")), TRAIN, "model.safetensors"),
    "no card": (removed(f"{MODEL}/model.json"), MEASURE, "no readable model.json"),
    "a card of something else": (written(f"{MODEL}/model.json", "{}"), MEASURE, "no readable model.json"),
    "a card with a word for a number": (facts(f"{MODEL}/model.json", seen_classes="many"), TRAIN, "model.json"),
    "a card of another backbone": (facts(f"{MODEL}/model.json", backbone="castle_resnet12"), TRAIN, "mini-standard"),
    "a pre-trained backbone for a trained method": (
        grid(untrained__KNN__method="castle_adapted"),
        "stages plan",
        "castle_adapted adapts a trained castle, expected it under `adapted`; move it",
    ),
    "a seal that names nothing": (written(f"{MODEL}/SHA256SUMS", ""), MEASURE, "SHA256SUMS: names no file"),
    "a seal that leaves the weights out": (
        lambda folder: seal(folder / MODEL, "model.json"),
        MEASURE,
        "model.safetensors: SHA256SUMS beside it does not name it",
    ),
    "truncated embeddings": (cut(f"{MODEL}/embeddings.safetensors"), MEASURE, "embeddings.safetensors: content is"),
    "embeddings of another model": (tensors(lambda loaded: loaded["classifier.weight_SD"].add_(1)), MEASURE, "model"),
    "a checkpoint that is none": (written(f"{CHECKPOINT}/state.json", "{}"), TRAIN, "not a checkpoint"),
    "a checkpoint of a newer format": (
        written(
            f"{CHECKPOINT}/state.json",
            json.dumps({"format": 99, "step": 2, "best": None, "loss_scale": {}, "sha256": {}, "settings": {}}),
        ),
        TRAIN,
        "format 99, expected",
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_damaged_artefacts_get_one_sentence(name: str, judge: Callable[..., None]) -> None:
    judge(*TABLE[name])
