"""Hope: the first values of a run beside what was published; what is far off is said loudly, with suspects."""

import json
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro import paths
from repro.editions.edition import kept_edition
from repro.results.store import Cell, Reading
from tests.paths import ROOT
from tools.scheduling.progress import Progress
from tools.scheduling.table import Board
from tools.watching import kept
from tools.watching.hope import Hope, first_cell, first_pretraining

PROVENANCE = {"source": "miniimagenet", "crop": "squashed", "extra": "published"}
PROVENANCE |= {"extra_listed": 100, "extra_among_training": 47}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of Mini at the paper's scale, as far as its files are looked at."""
    monkeypatch.chdir(tmp_path)
    plan("splits", "mini", size=84, source="miniimagenet")
    plan("pretrain", "mini-standard", dataset="mini", way=5, shot=1)
    plan("evaluate", "mini-castle-1shot", dataset="mini", method="castle", shot=1, way=5, ways=[5, 20])
    (tmp_path / "params.yaml").write_text("benchmark: {name: ImageNet, scale: '84 px'}\n")
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "published.yaml").symlink_to(ROOT / "paper" / "published.yaml")
    write(
        paths.dataset("mini", 0) / "dataset.json",
        {"provenance": PROVENANCE, "images": 60_000, "image_shape": [84, 84, 3], "classes": [{"split": "seen"}] * 64},
    )
    return tmp_path


def plan(stage: str, name: str, **values: Any) -> None:
    write(paths.settings(stage, name), {"seeds": [0], **values})


def write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def pretrained(accuracy: float, name: str = "mini-standard") -> None:
    curve = f"step,loss,lr,val_prototype_accuracy\n1,4.1,0.1,\n2,4.0,0.1,{accuracy - 3}\n3,3.9,0.1,{accuracy}\n"
    write(paths.pretrained(name, 0) / "curve.csv", curve)


def measured(hm: float) -> None:
    write(paths.results("mini-castle-1shot", 0) / "metrics.json", {"gfsl_5way": {"hm": {"mean": hm}}})


def test_a_first_value_as_expected_is_said_beside_the_published_one(workspace: Path) -> None:
    pretrained(52.3)
    hope = Hope()
    assert hope("splits") == []
    (line,) = hope("pretrain_cosine")
    assert "nearest prototypes" in line and "52.3 %" in line and "check at the paper's scale 55.0 %" in line
    assert hope("pretrain") == [], "it is said once"


def test_a_backbone_that_learnt_nothing_is_loud_and_names_the_doctors_facts(workspace: Path) -> None:
    pretrained(22.0)
    _, loud = Hope()("pretrain")
    assert loud.startswith("!!! FAR OFF") and "hardly above guessing (20.0 %)" in loud
    assert "60,000 images at 84 px" in loud and "crop is squashed" in loud
    assert "47 of 100 (47%) are training images" in loud


@pytest.mark.parametrize(("hm", "way"), [(66.0, ""), (40.0, "below"), (90.0, "above")])
def test_the_first_cell_is_held_against_the_published_one(workspace: Path, hm: float, way: str) -> None:
    measured(hm)
    value = first_cell()
    assert value is not None
    assert value.beside == {"published": 66.22}
    assert (way in value.far_off) if way else not value.far_off


def test_smaller_images_are_not_held_against_the_papers_numbers(workspace: Path) -> None:
    plan("splits", "mini", size=32, source="miniimagenet")
    pretrained(38.0)
    measured(30.0)
    for value in (first_pretraining(), first_cell()):
        assert value is not None and value.beside and not value.far_off


def test_an_edition_says_what_to_expect_of_nearest_prototypes(workspace: Path) -> None:
    with_editions(workspace)
    pretrained(66.0)
    value = first_pretraining()
    assert value is not None and value.expected is not None
    (label,) = [name for name in value.beside if "edition embedded (glyphs" in name]
    assert value.expected == value.beside[label], "MC + kNN on test tasks"
    pretrained(value.expected - 15)
    assert "points below" in (first_pretraining() or pytest.fail("nothing found")).far_off
    plan("pretrain", "mini-cosine", dataset="mini", way=5, shot=1)
    pretrained(45.0, "mini-cosine")
    os.utime(paths.pretrained("mini-cosine", 0) / "curve.csv", (1, 1))
    assert (first_pretraining() or pytest.fail("nothing found")).expected is None, "nobody measures that backbone so"


def test_a_number_of_an_edition_is_read_where_it_is_printed_and_is_that_of_its_records(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_editions(workspace)
    reading = Reading(Cell("mini", "castle", 1), "gfsl", 5, "hm")
    restored = kept._restored(kept_edition("embedded"), reading)
    monkeypatch.setattr(kept, "_restored", lambda *_: pytest.fail("it is printed"))
    (printed,) = [value for label, value in kept.of_editions(reading).items() if label.startswith("edition embedded ")]
    assert printed == pytest.approx(restored)
    assert kept.of_editions(Reading(Cell("flowers", "castle", 1), "gfsl", 5, "hm")) == {}


def with_editions(workspace: Path) -> None:
    """The editions of this repository, and its benchmark."""
    (workspace / "paper" / "editions").symlink_to(ROOT / "paper" / "editions")
    write(workspace / "params.yaml", "benchmark: {name: glyphs, scale: '28 px, Conv-4'}\n")
    plan("splits", "mini", size=28, source="glyphs")


def test_the_first_that_was_finished_is_shown_and_strange_files_are_passed_over(workspace: Path) -> None:
    plan("pretrain", "mini-cosine", dataset="mini", way=5, shot=1)
    pretrained(50.0)
    pretrained(51.0, "mini-cosine")
    os.utime(paths.pretrained("mini-cosine", 0) / "curve.csv", (1, 1))
    write(paths.pretrained("mini-old", 0) / "curve.csv", "step\n1\n")
    assert (first_pretraining() or pytest.fail("nothing found")).found == 51.0
    write(paths.results("mini-castle-1shot", 0) / "metrics.json", "{")
    assert Hope()("evaluate") == []


def test_before_anything_is_finished_nothing_is_said(workspace: Path) -> None:
    assert Hope()("pretrain") == [] and Hope()("evaluate") == []


def test_the_scheduler_says_it_right_after_the_stage_that_ran(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretrained(21.0)
    schedule: Any = SimpleNamespace(stages={}, counts=Counter)
    board = Board(schedule, workspace / "seconds.json", Hope())
    stage = SimpleNamespace(addressing="pretrain@mini")
    board.tell(Progress(stage, "pretrain", workspace / "log", state="failed"))
    assert "FAR OFF" not in capsys.readouterr().out
    again = SimpleNamespace(addressing="pretrain_cosine@mini")
    board.tell(Progress(again, "pretrain_cosine", workspace / "log", state="ran", node="here"))
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("ran pretrain_cosine@mini")
    assert "nearest prototypes" in told[1] and told[2].startswith("!!! FAR OFF")
