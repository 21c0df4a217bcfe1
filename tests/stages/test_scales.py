"""Scales: overlays over params.yaml; the numbers that the paper and the release state are held here."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from repro import paths
from repro.data.dataset import Dataset
from repro.errors import BadInput
from repro.methods.registry import method_class
from repro.models.pretrained import Pretrained
from repro.options import checked
from repro.training.augment import Augmentation
from repro.training.episodic import MetaTraining, meta_train
from repro.training.pretrain import Pretraining, pretrain
from stages.settings import scales
from stages.settings.grid import Grid
from stages.settings.params import Params
from stages.settings.resolving import Resolver
from tests.paths import ROOT
from tests.training.small import DIM, small_backbone

BASE = {file: (ROOT / file).read_text() for file in scales.CHOSEN}
every_scale = pytest.mark.parametrize("scale", ["embedded", "laptop", "paper", "paper_clean", "released"])


def settings(scale: str) -> dict[str, Any]:
    """What every stage is run with, by stage and name."""
    texts = scales.scaled(scale, BASE)
    params, grid = (
        checked(kind, scales.read(texts[file]), str(file))
        for kind, file in ((Params, paths.PARAMS), (Grid, paths.GRID))
    )
    return {f"{stage}/{name}": each for stage, name, each in Resolver(params, grid, ROOT).all()}


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_all_scales_have_the_same_stages() -> None:
    whole = [name for name in scales.names() if name != "laptop"]
    assert all(settings(name).keys() == settings("embedded").keys() for name in whole)


def test_the_laptops_scale_has_every_cell_of_mini_and_no_other_dataset() -> None:
    laptop, embedded = settings("laptop"), settings("embedded")
    others = ("tiered", "heterogeneous", "office")
    assert laptop.keys() == {key for key in embedded if not key.split("/")[1].startswith(others)}
    backbone = laptop["pretrain/mini-standard"].backbone
    assert (laptop["splits/mini"].size, backbone.options["widths"]) == (32, [64, 64, 128, 256])


def test_the_papers_numbers() -> None:
    paper = settings("paper")
    pretraining = paper["pretrain/mini-standard"].pretraining
    assert (pretraining.lr, pretraining.momentum) == (0.1, 0.9)
    for name in ("mini-castle-5shot", "mini-acastle-5shot", "office-castle_minus-1shot"):
        cell = paper[f"train/{name}"]
        assert (cell.training.lr, cell.training.momentum) == (1e-4, 0.9)
        assert [cell.training.schedule(step, 10_000) for step in (2000, 2001)] == [1, 0.5]
        spec = method_class(cell.method)(small_backbone(), DIM, 64, **cell.options).batch_spec(cell.shot)
        assert spec is not None and (spec.classes, spec.shot, spec.free) == (24, cell.shot, 128)
    lists = [
        entry.tasks for name, each in paper.items() if name.startswith("episodes/") for entry in each.episodes.test
    ]
    assert set(lists) == {10_000}


def test_the_code_familys_numbers_where_the_paper_is_silent() -> None:
    paper = settings("paper")
    pretraining, training = paper["pretrain/mini-standard"].pretraining, paper["train/mini-castle-1shot"].training
    assert pretraining.nesterov and pretraining.augmentation == Augmentation(resized_crop=0.08, flip=True, jitter=0.4)
    assert training.nesterov and training.augmentation == Augmentation()
    assert paper["pretrain/mini-cosine"].backbone.options == {"final_activation": False}  # DFSL's
    extras = {name: settings(name)["splits/mini"].options for name in ("paper", "paper_clean", "released")}
    assert {name: (it["crop"], it["extra"]) for name, it in extras.items()} == {
        "paper": ("center224", "published"),
        "paper_clean": ("center224", "clean"),
        "released": ("center224", "published"),
    }


def test_the_releases_numbers() -> None:
    castle = settings("released")["train/mini-castle-1shot"]
    rates = [castle.training.lr * castle.training.schedule(step, 300) for step in (1, 11, 31)]
    assert rates == pytest.approx([2e-4, 2e-5, 2e-7])
    method = method_class("castle")(small_backbone(), DIM, 64, **castle.options)
    assert not method.seen_weight_SD.requires_grad
    one, five = (settings("released")[f"train/mini-acastle-{shot}shot"] for shot in (1, 5))
    assert [each.training.schedule(11, 300) for each in (one, five)] == [0.1, 0.5]
    assert (one.options.get("dictionary_lr_scale", 1.0), five.options["dictionary_lr_scale"]) == (1.0, 10.0)
    assert one.training.nesterov and five.training.lr == 2e-4


@every_scale
def test_budgets_of_the_embedded_benchmark_reach_no_other_scale(scale: str) -> None:
    base = yaml.safe_load(BASE[paths.PARAMS])
    for name in ("mini", "tiered", "heterogeneous", "office"):
        entry = base["datasets"][name]
        entry["pretraining"], entry["training"] = {"epochs": 12345}, {"steps": 12345}
    for entry in base["methods"].values():
        entry.update({"training": {"steps": 12345}} if "training" in entry else {})
    marked = {**BASE, paths.PARAMS: yaml.safe_dump(base)}
    found = scales.scaled(scale, marked)[paths.PARAMS]
    assert ("12345" in found) == (scale == scales.EMBEDDED)


def test_a_scale_lies_over_another_and_says_only_what_differs() -> None:
    paper, released = (scales.read(scales.scaled(name, BASE)[paths.PARAMS]) for name in ("paper", "released"))
    places = {line.partition(":")[0] for line in scales.changes(paper, released)}
    assert places and all(place.startswith("methods.") for place in places)


@every_scale
def test_every_training_runs(scale: str, tiny: Dataset) -> None:
    planned = settings(scale)
    torch.manual_seed(0)
    chosen = planned["pretrain/mini-standard"]
    model = Pretrained(small_backbone(), DIM, tiny.seen_classes, chosen.classifier.name, **chosen.classifier.options)
    shorter = {**vars(chosen.pretraining), "epochs": 2}
    steps = pretrain(model, tiny, Pretraining(**shorter), seed=0, validate=None)
    assert [metrics.step for metrics in steps] == [1, 2]
    for name in ("castle", "acastle"):
        cell = planned[f"train/mini-{name}-1shot"]
        method = method_class(name)(small_backbone(), DIM, tiny.seen_classes, **cell.options | {"classes": 6})
        short = MetaTraining(**{**vars(cell.training), "steps": 3})
        assert [one.step for one in meta_train(method, tiny, short, shot=1, seed=0, validate=None)] == [1, 2, 3]


def test_a_list_stays_on_its_line_with_its_comment() -> None:
    """Five seeds are one changed line of params.yaml."""
    after = scales.scaled("five_seeds", BASE)
    old, new = (texts[paths.PARAMS].splitlines() for texts in (BASE, after))
    ((was, now),) = [(one, other) for one, other in zip(old, new, strict=True) if one != other]
    assert was.replace("[0]", "[0, 1, 2, 3, 4]") == now
    assert after[paths.GRID] == BASE[paths.GRID]


def test_an_overlay_changes_replaces_and_removes() -> None:
    base = {"a": {"b": 1, "c": 2}, "options": {"x": 1}, "schedule": {"name": "cosine", "options": {"y": 1}}, "gone": 1}
    scales.put_on(base, {"a": {"b": 3}, "options": {"z": 1}, "schedule": {"name": "decay"}, "gone": None, "new": [1]})
    assert base == {"a": {"b": 3, "c": 2}, "options": {"z": 1}, "schedule": {"name": "decay"}, "new": [1]}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with the parameters, the grid, and something that a run has rendered."""
    for file in (*scales.CHOSEN, *(scales.SCALES / f"{name}.yaml" for name in ("paper", "released"))):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text((ROOT / file).read_text())
    (tmp_path / "dvc.lock").write_text("embedded")
    (tmp_path / "evaluate").mkdir()
    (tmp_path / "evaluate" / "dvc.lock").write_text("embedded")
    (tmp_path / ".gitignore").write_text(".scales\n")
    (tmp_path / "tools" / "scales" / "only_mini.yaml").write_text(
        "datasets: {tiered: ~, heterogeneous: ~, office: ~}\n"
    )
    monkeypatch.chdir(tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        subprocess.run([*git, *command], check=True)
    return tmp_path


def status() -> str:
    return subprocess.run(["git", "status", "--porcelain"], capture_output=True, text=True, check=True).stdout


def test_there_and_back_leaves_a_clean_tree_and_keeps_what_each_scale_rendered(repository: Path) -> None:
    scales.apply("paper")
    assert scales.current() == "paper"
    for lock in ("dvc.lock", "evaluate/dvc.lock"):
        (repository / lock).write_text("paper")
    scales.apply("embedded")
    assert status() == "" and scales.current() == "embedded"
    scales.apply("paper")
    assert all((repository / lock).read_text() == "paper" for lock in ("dvc.lock", "evaluate/dvc.lock"))
    scales.apply("released")
    scales.apply("embedded")
    assert status() == ""


def test_a_scale_without_a_dataset_drops_its_lines_of_the_grid(repository: Path) -> None:
    scales.apply("only_mini")
    grid = scales.read((repository / paths.GRID).read_text())
    lines = {name: line for group in ("trained", "untrained", "adapted") for name, line in grid[group].items()}
    assert len(lines) > 20 and {line["dataset"] for line in lines.values()} == {"mini"}
    scales.apply("embedded")
    assert status() == ""


def test_edits_that_are_not_committed_are_not_overwritten(repository: Path) -> None:
    edited = (repository / "params.yaml").read_text().replace("seeds: [0]", "seeds: [1]", 1)
    (repository / "params.yaml").write_text(edited)
    with pytest.raises(BadInput, match="edits that are in no scale; commit them"):
        scales.apply("paper")
    assert (repository / "params.yaml").read_text() == edited


@pytest.mark.parametrize("failing", ["copytree", "copy2", "copyfile"])
def test_a_full_disk_changes_nothing(failing: str, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "paper" / "figures").mkdir(exist_ok=True)
    (repository / "paper" / "figures" / "F1.tex").write_text("ours")
    scales.apply("paper")
    before = {file: file.read_bytes() for file in repository.rglob("*") if file.is_file() and ".git" not in file.parts}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(scales.shutil, failing, full)
    with pytest.raises(BadInput, match="no space left for it; free some space"):
        scales.apply("embedded")
    after = {file: file.read_bytes() for file in repository.rglob("*") if file.is_file() and ".git" not in file.parts}
    assert after == before


def test_a_scale_there_is_not_is_named(repository: Path) -> None:
    with pytest.raises(BadInput, match="scale is 'moon', expected one of embedded"):
        scales.apply("moon")


@pytest.mark.parametrize(
    ("overlay", "said"),
    {
        "over: other\n": "over is 'mine', expected another of only_mini, paper, released",
        "grid: 3\n": "grid is 3, expected what differs from paper/grid.yaml",
        "grid: {trained: 5}\n": "grid: trained is 5, expected",
        "grid: {trained: ~}\n": "grid: trained is missing",
        "grid: {trained: {a: {method: castle}}}\n": "trained.a.dataset is missing",
        "grid: {random: 5}\n": "grid: random is 5, expected",
        "grid: {adapted: {../../x: {dataset: mini, method: castle_adapted, shot: 1, ways: [5], base: a}}}\n": "letters",
    }.items(),
)
def test_a_scale_that_is_none_is_one_sentence_and_changes_nothing(overlay: str, said: str, repository: Path) -> None:
    (repository / scales.SCALES / "mine.yaml").write_text(overlay)
    (repository / scales.SCALES / "other.yaml").write_text("over: mine\n")
    with pytest.raises(BadInput) as refused:
        scales.apply("mine")
    assert said in str(refused.value)
    assert not [line for line in status().splitlines() if not line.startswith("??")]


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff", "is no text"), (b"[1]\n", "holds no mapping"), (b"{", "not plain")]
)
def test_committed_parameters_that_are_none_are_one_sentence(content: bytes, said: str, repository: Path) -> None:
    whole = (repository / "params.yaml").read_bytes()
    (repository / "params.yaml").write_bytes(content)
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-am", "b"], check=True)
    (repository / "params.yaml").write_bytes(whole)
    with pytest.raises(BadInput, match=f"^params.yaml as committed: {said}"):
        scales.apply("paper")
    assert (repository / "params.yaml").read_bytes() == whole
