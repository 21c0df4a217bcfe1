"""Whatever a stage reads from an earlier one is checked first: a flipped bit is answered with the name of the file."""

import pytest

from tests.counting import Count
from tests.faults.scene import Scene, flip

pytestmark = pytest.mark.timeout(1200)

CELL, BACKBONE = "mini-castle-1shot", "mini-standard"
FIRST_PIXEL = 128  # after the header of a .npy file
READ_BY = {
    "data/mini/0/images.npy": f"train@{CELL}",
    "data/mini/0/images.npy ": "pretrain@mini",
    "data/mini/0/manifest.parquet": "episodes@mini",
    "data/mini/0/dataset.json": "episodes@mini",
    "episodes/mini/val/0/5way-1shot.safetensors": "pretrain@mini",
    f"models/pretrained/{BACKBONE}/0/model.safetensors": f"train@{CELL}",
    f"models/pretrained/{BACKBONE}/0/model.json": f"train@{CELL}",
    "episodes/mini/test/0/5way-1shot.safetensors": f"evaluate@{CELL}",
    f"models/cells/{CELL}/0/model.safetensors": f"evaluate@{CELL}",
    f"models/cells/{CELL}/0/model.json": f"evaluate@{CELL}",
    f"models/cells/{CELL}/0/embeddings.safetensors": f"evaluate@{CELL}",
    f"results/cells/{CELL}/0/tasks.parquet": "paper",
    f"results/cells/{CELL}/0/curve.json": "paper",
    "data/mini/0/dataset.json ": "paper",
    "data/tiered/0/manifest.parquet": "paper",
    "data/office/0/images.npy": "paper",  # its first image, which the paper shows
}


def test_a_flipped_bit_is_named_before_use(scene: Scene, faults: Count) -> None:
    for name, stage in READ_BY.items():
        faults.tried()
        file = scene.folder / name.strip()
        content = file.read_bytes()
        flip(file, at=FIRST_PIXEL if stage == "paper" and file.suffix == ".npy" else None)
        running = scene.start(stage)
        code = running.wait()
        file.write_bytes(content)
        errors = [line for line in running.said().splitlines() if line.startswith("error: ")]
        assert code == 2 and len(errors) == 1, f"{name}: {running.said()}"
        assert name.strip() in errors[0] or f"{file.parent.relative_to(scene.folder)}: " in errors[0], errors[0]
        assert "again" in errors[0] or "dvc repro" in errors[0], errors[0]
        faults.survived()
    assert scene.contents() == scene.whole
