"""DVC's own time: measured on a pipeline of the wished length, in two files and in one."""

from pathlib import Path

from repro import paths
from tools.benchmarks.dvc_time import TIMED, Project


def test_a_longer_pipeline_is_ours_with_more_cells_and_all_of_it_is_up_to_date(tmp_path: Path) -> None:
    two, one = (Project(tmp_path / name, 61, in_one_file=name == "one") for name in ("two", "one"))
    stages = [sorted(stage.name for stage in project.repo.index.stages) for project in (two, one)]
    assert len(stages[0]) == 61 and stages[0] == stages[1] and f"evaluate@{TIMED}" in stages[0]
    assert (two.folder / paths.EVALUATIONS_LOCK).exists() and not (one.folder / paths.EVALUATIONS_LOCK).exists()
    assert two.nothing_s() > 0  # it fails where something runs


def test_a_stage_costs_less_beside_fewer_stages_in_its_lock(tmp_path: Path) -> None:
    two, one = (Project(tmp_path / name, 61, in_one_file=name == "one") for name in ("two", "one"))
    assert 0 < two.stage_s() < one.stage_s()
