"""Predictions from measured parts: what grows is scaled by what it grows with, the rest stays."""

import pytest

from stages.settings.grid import read_grid_file
from stages.settings.params import read_params
from tests.paths import ROOT
from tests.rehearsing.small import small_workspace
from tools.benchmarks.costs import batch_of, images_of
from tools.rehearsing.choosing import Chosen
from tools.rehearsing.measuring import Bar, Measured
from tools.rehearsing.predicting import Predictor, Rehearsed
from tools.rehearsing.shortening import sample_of
from tools.rehearsing.sizes import DatasetSize, drawn_images, drawn_size
from tools.rehearsing.work import Work


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    folder = small_workspace(tmp_path_factory.mktemp("predicting") / "workspace")
    return Work(read_params(folder / "params.yaml"), read_grid_file(folder / "paper" / "grid.yaml"), ROOT)


def rehearsed(work: Work, *told: Measured) -> Predictor:
    full = {name: drawn_size(one.options, one.size) for name, one in work.params.datasets.items()}
    half = {
        name: DatasetSize({role: number // 2 for role, number in size.images.items()}, size.seen, size.size, 1)
        for name, size in full.items()
    }
    measured = {(each.stage, each.name): each for each in told}
    settings = {key: work.stages[key].settings for key in measured}
    return Predictor(work, Chosen(work), Rehearsed(measured, settings, half, full, {}))


def bar(opened: float, ticks: list[tuple[float, int]], closed: float) -> Bar:
    return Bar("step", (opened, 0.0), [((at, 0.0), number) for at, number in ticks], (closed, 0.0))


def test_packing_grows_with_the_images_and_listing_does_not(work: Work) -> None:
    told = Measured("splits", "mini", [bar(1.0, [(4.0, 0), (5.0, 10), (6.0, 20)], 6.0)], end=(7.0, 0.0))
    predictor = rehearsed(work, told)
    assert predictor.seconds(work.stages["splits", "mini"]) == pytest.approx(7 + 2)  # 2 s of packing, twice the images


def test_a_training_is_its_steps_validations_and_checkpoints(work: Work) -> None:
    stage = work.stages["pretrain", "mini-standard"]
    # Opened after 1 s; validation 0.5 s, warming 2 s; steps of 0.1 s, checkpoints of 0.3 s; 0.4 s to embed at the end.
    ticks, now = [(1.0, 0)], 1.0 + 0.5 + 2.0
    for step in range(1, 10):
        now += 0.1 + (0.3 if step % 2 == 0 else 0.0) + (0.5 if step == 9 else 0.0)
        ticks.append((now, step))
    told = Measured(*stage.key, [bar(1.0, ticks, now)], end=(now + 0.4, 0.0), facts={"steps": 9, "images": 128})
    predictor = rehearsed(work, told)
    pace = predictor.pace(told)
    assert pace is not None
    assert (pace.step, pace.checkpoint) == (pytest.approx(0.1), pytest.approx(0.3))
    assert (pace.validation, pace.warming, pace.after) == tuple(map(pytest.approx, (0.5, 2.0, 0.4)))
    steps, validations = predictor.steps(stage)
    assert (steps, validations) == (240 // 128, 1)
    size, half = predictor.rehearsed.full["mini"], predictor.rehearsed.samples["mini"]
    rows = size.stored_rows / half.stored_rows
    validated = drawn_images(500, 240) / drawn_images(500, 120)  # 20 tasks of 5 ways, a shot and 4 queries
    expected = 1 + 2 + 0.1 * steps + 2 * 0.5 * validated + 0.4 * rows
    assert predictor.seconds(stage) == pytest.approx(expected)


def test_a_step_of_more_images_takes_longer(work: Work) -> None:
    stage = work.stages["train", "mini-castle-1shot"]
    spec, learns = batch_of(stage.settings, 10)
    assert learns
    ticks = [(1.0, 0), *((1.0 + 0.5 * step, step) for step in range(1, 10))]
    told = Measured(*stage.key, [bar(1.0, ticks, 5.5)], end=(6.0, 0.0))
    times = []
    for images in (images_of(spec), 2 * images_of(spec)):
        told.facts = {"steps": 9, "images": images}
        times.append(rehearsed(work, told).seconds(stage) or 0.0)
    steps, _ = rehearsed(work, told).steps(stage)
    assert times[0] - times[1] == pytest.approx(0.25 * steps)  # half of the 0.5 s of each step


def test_a_stage_whose_kind_fails_has_no_prediction(work: Work) -> None:
    told = Measured("pretrain", "mini-standard", problem="RuntimeError: no")
    assert rehearsed(work, told).seconds(work.stages["pretrain", "mini-standard"]) is None


def test_every_list_and_step_can_be_drawn_from_the_sample(work: Work) -> None:
    keep = sample_of("mini", work, seen=10)
    episodes = work.resolver.episodes("mini")
    assert keep["test"] > max(episodes.shots) + episodes.query
    assert 10 * keep["seen_test"] >= max(entry.way for entry in episodes.test) * episodes.query
    assert 10 * keep["train"] >= work.resolver.pretraining("mini").batch


def test_the_real_grid_has_a_measured_stage_for_every_stage() -> None:
    real = Work(read_params(ROOT / "params.yaml"), read_grid_file(ROOT / "paper" / "grid.yaml"), ROOT)
    chosen = Chosen(real)
    keys = {stage.key for stage in chosen.stages}
    assert {chosen.stands_for(stage) for stage in real.stages.values()} <= keys
    assert len(keys) < len(real.stages)
    methods = {(stage.settings.method, stage.settings.dataset) for stage in real.of("evaluate")}
    assert methods == {(s.settings.method, s.settings.dataset) for s in chosen.stages if s.kind == "evaluate"}
    for stage in chosen.stages:  # what a rehearsed stage reads is rehearsed too
        assert stage.kind == "paper" or set(stage.needs) <= keys


def test_only_what_is_named_is_left() -> None:
    params, grid = read_params(ROOT / "params.yaml"), read_grid_file(ROOT / "paper" / "grid.yaml")
    only = Work(params, grid, ROOT, ["mini", "castle"])
    assert {stage.settings.dataset for stage in only.of("evaluate")} == {"mini"}
    assert {stage.settings.method for stage in only.of("evaluate")} == {"castle"}
    assert [stage.name for stage in only.of("splits")] == ["mini"]
    assert ("pretrain", "mini-cosine") not in only.stages
