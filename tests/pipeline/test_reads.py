"""Who reads the images: training all of them; evaluation and the paper only those that they use."""

import sys
from pathlib import Path

import numpy as np
import pytest

from repro.data.dataset import open_dataset
from repro.data.summary import SAMPLES_PER_DOMAIN
from repro.report.class_views import CLASSES, IMAGES, PAIRS
from tests.faults.scene import Scene, copy_workspace
from tests.pipeline.workspace import call

pytestmark = pytest.mark.timeout(1200)
COUNT = str(Path(__file__).with_name("count_reads.py"))
CELL = "mini-castle-1shot"


@pytest.fixture(scope="module")
def scene(workspace: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A copy of the small pipeline's workspace."""
    return Scene(copy_workspace(workspace[0], tmp_path_factory.mktemp("reads") / "copy"))


def bytes_read(scene: Scene, stage: str) -> int:
    call(scene.folder, sys.executable, COUNT, "count.txt", *scene.command(stage))
    return int((scene.folder / "count.txt").read_text())


def test_training_reads_all_images_and_hashes_them_once(scene: Scene) -> None:
    size = (scene.folder / "data" / "mini" / "0" / "images.npy").stat().st_size
    # The hash and the map, once each; numpy looks at the header before it maps, with a buffer.
    assert 2 * size <= bytes_read(scene, f"train@{CELL}") < 2.2 * size


def test_tasks_are_drawn_without_a_look_at_the_images(scene: Scene) -> None:
    assert bytes_read(scene, "episodes@mini") == 0


def test_evaluation_reads_no_image_that_has_a_stored_embedding(scene: Scene) -> None:
    assert bytes_read(scene, f"evaluate@{CELL}") == 0  # in a set this small every image has one


def test_the_paper_reads_the_images_that_it_shows(scene: Scene) -> None:
    of_classes = 2 * CLASSES + 2 * PAIRS + IMAGES  # seen and unseen ones, pairs, images that are never right
    shown = 0
    for name in ("mini", "heterogeneous", "office"):
        dataset = open_dataset(scene.folder / "data" / name / "0")
        images = SAMPLES_PER_DOMAIN * len(dataset.header.domains) + (of_classes if name != "office" else 0)
        shown += images * int(np.prod(dataset.image_shape))
    assert 0 < bytes_read(scene, "paper") <= shown
