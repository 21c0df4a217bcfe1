"""One seed repeats and two differ, through the real stages: images, tasks, first weights and what they measure."""

import hashlib
from pathlib import Path

import pytest
import yaml

from tests.bad_inputs.asking import ask
from tests.pipeline.small_params import small_params

pytestmark = pytest.mark.timeout(600)
COMMANDS = (
    "stages splits mini",
    "stages episodes mini",
    "stages pretrain mini-linear --dataset mini --classifier linear --random",
    "stages evaluate one --dataset mini --method mc_knn --shot 1 --ways 5 --model models/pretrained/mini-linear",
)
# What depends on the seed. Cards and descriptions of settings do not.
SEEDED = (
    "data/mini/images.npy",
    "data/mini/manifest.parquet",
    "episodes/mini/test/5way-1shot.safetensors",
    "episodes/mini/val/5way-1shot.safetensors",
    "models/pretrained/mini-linear/model.safetensors",
    "models/pretrained/mini-linear/embeddings.safetensors",
    "results/cells/one/tasks.parquet",
    "results/cells/one/metrics.json",
)


def results(folder: Path, seed: int) -> dict[str, str]:
    """Run the stages with a seed; the content of what they leave."""
    folder.mkdir()
    params = small_params() | {"seed": seed}
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    for command in COMMANDS:
        answer = ask(folder, command)
        assert answer.code == 0, answer.said
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in SEEDED}


def test_one_seed_repeats_and_two_differ(tmp_path: Path) -> None:
    first, again, other = (results(tmp_path / name, seed) for name, seed in (("a", 3), ("b", 3), ("c", 4)))
    assert first == again
    assert not [name for name in SEEDED if first[name] == other[name]]
