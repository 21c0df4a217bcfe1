"""A stage that is killed at any moment and run again leaves the same bytes as one that was left alone."""

import os
import random

import pytest

from tests.counting import Count
from tests.faults.scene import Scene

KILLS = {"splits@mini": 2, "pretrain@mini": 6, "train@mini-castle-1shot": 5, "evaluate@mini-castle-1shot": 5}
KILLS |= {"paper": 2}  # drawing figures costs, as rendering glyphs does
TIMES = int(os.environ.get("REPRO_LONG", "1"))  # `tools/test --long` says 25: 500 kills
pytestmark = pytest.mark.timeout(3600 * TIMES)
GUESS = 2.0  # seconds, before a stage has been run to its end


@pytest.mark.parametrize("stage", KILLS)
def test_a_killed_stage_run_again_ends_with_the_same_bytes(stage: str, scene: Scene, faults: Count) -> None:
    chance, seconds, kills = random.Random(stage), GUESS, KILLS[stage] * TIMES
    for number in range(kills):
        fraction = (number + chance.random()) / kills
        faults.tried()
        scene.kill_after(stage, fraction * seconds)
        seconds = scene.run(stage)
        assert scene.contents() == scene.whole, f"after a kill at {fraction:.3f} of {seconds:.2f} s"
        faults.survived()
