"""The report's sums: seeds count, a busy machine is said to be one."""

from pathlib import Path
from typing import Any

import pytest

from stages.settings.grid import read_grid_file
from stages.settings.params import read_params
from tests.paths import ROOT
from tests.rehearsing.small import small_workspace
from tools.rehearsing.choosing import Chosen
from tools.rehearsing.measuring import Bar, Measured
from tools.rehearsing.predicting import Predictor, Rehearsed
from tools.rehearsing.report import busy_lines, failure_lines, totals
from tools.rehearsing.sizes import drawn_size
from tools.rehearsing.work import Work


def predictor_of(folder: Path, wall: float, cpu: float, **changes: Any) -> Predictor:
    """Every splits stage takes so long; nothing else was measured."""
    workspace = small_workspace(folder / "workspace", **changes)
    work = Work(read_params(workspace / "params.yaml"), read_grid_file(workspace / "paper" / "grid.yaml"), ROOT)
    full = {name: drawn_size(one.options, one.size) for name, one in work.params.datasets.items()}
    bar = Bar("image", (0.0, 0.0), [((wall, cpu), 1)], (wall, cpu))
    told = {stage.key: Measured(*stage.key, [bar], end=(wall, cpu)) for stage in work.of("splits")}
    return Predictor(work, Chosen(work), Rehearsed(told, {}, full, full, {}))


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]])
def test_every_seed_takes_its_time_and_disk(tmp_path: Path, seeds: list[int]) -> None:
    predictor = predictor_of(tmp_path, 10.0, 9.0, seeds=seeds)
    stages = predictor.work.of("splits")
    found = totals(predictor, stages, places=2)
    assert found.seconds[1] == 4 * 10.0 * len(seeds)
    assert found.seconds[2] == 2 * 10.0 * len(seeds)
    assert found.outputs == len(seeds) * sum(predictor.bytes(stage) for stage in stages)


def test_a_busy_machine_is_said_to_be_one(tmp_path: Path) -> None:
    predictor = predictor_of(tmp_path, 10.0, 2.0)
    stages = predictor.work.of("splits")
    (line,) = busy_lines(predictor, stages, totals(predictor, stages, 1).seconds[1])
    assert "20 % of the time" in line and "about 8.0 s" in line
    assert not busy_lines(predictor, stages, wall=9.0)


def test_a_failure_comes_with_the_end_of_its_log() -> None:
    told = Measured("train", "x", problem="RuntimeError: no", log="\n".join(map(str, range(50))))
    lines = failure_lines([told, Measured("train", "y")])
    assert lines[0] == "- **train x fails**: RuntimeError: no"
    assert "49" in lines and "10" not in lines
