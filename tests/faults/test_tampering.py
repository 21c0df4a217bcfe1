"""Whatever a stage reads from an earlier one is checked first: a flipped bit is answered with the name of the file."""

import pytest

from tests.counting import Count
from tests.faults.scene import Scene, flip

pytestmark = pytest.mark.timeout(1200)

CELL, BACKBONE = "mini-castle-1shot", "mini-linear"
READ_BY = {
    "data/mini/images.npy": "episodes@mini",
    "data/mini/manifest.parquet": "episodes@mini",
    "data/mini/dataset.json": "episodes@mini",
    "episodes/mini/val/5way-1shot.safetensors": f"pretrain@{BACKBONE}",
    f"models/pretrained/{BACKBONE}/model.safetensors": f"train@{CELL}",
    f"models/pretrained/{BACKBONE}/model.json": f"train@{CELL}",
    "episodes/mini/test/5way-1shot.safetensors": f"evaluate@{CELL}",
    f"models/cells/{CELL}/model.safetensors": f"evaluate@{CELL}",
    f"models/cells/{CELL}/model.json": f"evaluate@{CELL}",
    f"models/cells/{CELL}/embeddings.safetensors": f"evaluate@{CELL}",
    f"results/cells/{CELL}/tasks.parquet": "paper",
    f"results/cells/{CELL}/curve.json": "paper",
    "data/mini/dataset.json ": "paper",
    "data/tiered/manifest.parquet": "paper",
    "data/office/images.npy": "paper",
}


def test_a_flipped_bit_is_named_before_use(scene: Scene, faults: Count) -> None:
    for name, stage in READ_BY.items():
        faults.tried()
        file = scene.folder / name.strip()
        content = file.read_bytes()
        flip(file)
        running = scene.start(stage)
        code = running.wait()
        file.write_bytes(content)
        errors = [line for line in running.said().splitlines() if line.startswith("error: ")]
        assert code == 2 and len(errors) == 1, f"{name}: {running.said()}"
        assert name.strip() in errors[0] or f"{file.parent.relative_to(scene.folder)}: " in errors[0], errors[0]
        assert "again" in errors[0] or "dvc repro" in errors[0], errors[0]
        faults.survived()
    assert scene.contents() == scene.whole
