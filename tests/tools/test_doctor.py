"""tools/doctor: a verdict per row, an exit code, and the same facts for machines."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from PIL import Image

from repro.data.episodes import TaskSpec
from repro.preparation.doctor import Finding, Report, examine
from repro.preparation.sources import SOURCES, options_of
from tests.paths import ROOT
from tests.preparation import raw_trees
from tests.preparation.raw_trees import SEEN, TEST, VAL, mini_name, write_csv
from tests.tools.calling import call_tool


@pytest.fixture
def mini(tmp_path: Path) -> dict[str, object]:
    """A MiniImageNet whose published extra lists hold one training image per half and class."""
    lists = raw_trees.mini_lists(tmp_path / "lists", [2, 3, 5, 7, 11, 16], "counter")
    for half, ranks in (("val", (1, 2, 4)), ("test", (8, 9, 11))):
        rows = [(mini_name(class_id, rank, "ilsvrc"), class_id) for class_id in SEEN for rank in ranks]
        write_csv(lists / f"aux_{half}.csv", rows)
    return {
        "root": raw_trees.ilsvrc(tmp_path / "train", (*SEEN, *VAL, *TEST), 16),
        "lists": lists,
        "classes": raw_trees.class_table(tmp_path / "classes.tsv"),
        "per_class": 6,
        "extra_per_half": 4,
    }


def findings(report: Report) -> dict[str, Finding]:
    assert len({each.check for each in report.findings}) == len(report.findings)
    return {each.check: each for each in report.findings}


def examine_mini(options: dict[str, object], **how: object) -> Report:
    return examine("miniimagenet", 0, options, task_images=6, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("decode", [True, False])
def test_a_sound_root_passes_with_all_counts(mini, decode: bool):
    report = examine_mini(mini, decode=decode)
    rows = findings(report)
    assert report.passed
    assert rows["role train"].seen == "12 images, 6 per class"
    assert rows["role seen_val"].seen == "8 images, 4 per class"
    assert rows["duplicates"].verdict == "pass"
    assert report.counts[SEEN[0]] == {"train": 6, "seen_val": 4, "seen_test": 4}
    assert report.counts[VAL[0]] == {"val": 6}
    assert rows["files"].verdict == ("pass" if decode else "warn")


@pytest.mark.parametrize("decode", [True, False])
def test_the_mini_variant_is_told_and_published_repeats_are_counted(mini, decode: bool):
    rows = findings(examine_mini({**mini, "extra": "published"}, decode=decode))
    assert rows["naming of the lists"].seen == "counters (n0153282900000005.jpg)"
    assert rows["extra seen images"].seen == "as published"
    assert rows["published extra images"].seen == "4 of 12 (33%) are training images"
    assert rows["published extra images"].verdict == "warn"
    assert rows["train and seen_val"].verdict == rows["train and seen_test"].verdict == "warn"
    clean = examine_mini({**mini, "extra": "clean"}, decode=decode)
    assert clean.passed
    assert findings(clean)["extra seen images"].seen == "as published, without training images"
    assert findings(clean)["duplicates"].verdict == "pass"


def test_empty_and_truncated_files_are_counted_and_named(mini):
    folder = Path(str(mini["root"])) / SEEN[0]
    first, second = (folder / mini_name(SEEN[0], rank, "ilsvrc") for rank in (2, 3))
    first.write_bytes(b"")
    second.write_bytes(second.read_bytes()[:200])
    report = examine_mini(mini)
    row = findings(report)["files"]
    assert not report.passed
    assert row.verdict == "fail"
    assert row.seen.startswith("2 bad: ")
    assert f"{first}: is empty" in row.seen
    assert f"{second}: cannot be decoded" in row.seen


def test_contents_shared_between_given_splits_are_a_warning(mini):
    root = Path(str(mini["root"]))
    shutil.copy(root / SEEN[0] / mini_name(SEEN[0], 2, "ilsvrc"), root / TEST[0] / mini_name(TEST[0], 3, "ilsvrc"))
    report = examine_mini(mini)
    assert report.passed
    assert findings(report)["train and test"].verdict == "warn"
    assert findings(report)["train and test"].seen.startswith("1 contents in both, such as ")


@pytest.fixture
def copy(tmp_path: Path) -> dict[str, object]:
    """MiniImageNet as it is passed around, with a picture in two splits and one twice in training."""
    root = raw_trees.mini_copy(tmp_path / "mini", 8)
    images = root / "images"
    for one, other in (((SEEN[0], 1), (VAL[0], 1)), ((SEEN[0], 2), (SEEN[1], 2))):
        shutil.copy(images / mini_name(*other, "counter"), images / mini_name(*one, "counter"))
    table = raw_trees.class_table(tmp_path / "classes.tsv")
    return {"root": str(root), "classes": str(table), "per_class": 8, "held_out": [2, 2]}


@pytest.mark.parametrize("decode", [True, False])
def test_the_passed_around_copy_is_told_with_what_is_held_out_and_what_is_dropped(copy, decode: bool):
    report = examine_mini(copy, decode=decode)
    rows = findings(report)
    assert report.passed
    assert rows["variant"].seen.endswith("the passed-around copy: its own images, no ILSVRC-12")
    assert rows["extra seen images"].seen == "2 + 2 of each seen class, held out of training"
    assert rows["duplicates"].verdict == "pass"
    assert rows["copies across splits"].seen.startswith("pairs: 1; the first of each is left out")
    assert rows["copies across splits"].seen.endswith("n0000000100000001.jpg (train) = n0000000300000001.jpg (val)")
    assert rows["copies within a split"].seen.endswith("n0000000100000002.jpg = n0000000200000002.jpg (train)")


def test_further_classes_in_a_copy_are_told_and_not_used(copy):
    raw_trees.put(Path(str(copy["root"])) / "images" / "n9999999900000001.jpg")
    row = findings(examine_mini(copy, decode=False))["unlisted images"]
    assert row.seen == "not used, because in no list: 1 (among them class n99999999, which no list has)"
    assert row.verdict == "warn"


def test_kinds_of_pictures_are_told(copy):
    images = Path(str(copy["root"])) / "images"
    grey, cmyk = (images / mini_name(VAL[0], rank, "counter") for rank in (2, 3))
    Image.open(grey).convert("L").save(grey)
    Image.open(cmyk).convert("CMYK").save(cmyk)
    turned = images / mini_name(VAL[0], 4, "counter")
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(turned).save(turned, exif=exif)
    rows = findings(examine_mini(copy))
    assert rows["greyscale pictures"].seen == f"1 greyscale, made RGB, such as {grey}"
    assert rows["CMYK pictures"].verdict == "pass"
    assert rows["turned pictures"].verdict == "warn"
    assert rows["picture sizes"].seen == "24×20 and 20×24"


def test_a_picture_saved_again_in_another_split_is_found(copy):
    images = Path(str(copy["root"])) / "images"
    content = (images / mini_name(SEEN[1], 5, "counter")).read_bytes()
    comment = b"\xff\xfe\x00\x04hi"  # a JPEG segment that is no part of the picture
    (images / mini_name(TEST[1], 6, "counter")).write_bytes(content[:2] + comment + content[2:])
    row = findings(examine_mini(copy))["same pictures"]
    assert row.seen.startswith("1 in two roles, saved differently: ")
    assert mini_name(TEST[1], 6, "counter") in row.seen and mini_name(SEEN[1], 5, "counter") in row.seen


def test_a_class_of_equal_pictures_fails(copy):
    images = Path(str(copy["root"])) / "images"
    for rank in range(1, 9):
        name = mini_name(TEST[0], rank, "counter")
        Image.new("RGB", (20, 20), "white").save(images / name, quality=60 + rank)
    report = examine_mini(copy)
    assert findings(report)["variety"].seen == f"all 8 images of class {TEST[0]} are alike"
    assert not report.passed


def test_a_crop_without_effect_is_told(copy):
    raw_trees.put(Path(str(copy["root"])) / "images" / mini_name(VAL[0], 3, "counter"), size=(40, 40))
    rows = findings(examine_mini({**copy, "crop": "center224"}))
    assert rows["crop"].seen == "center224 has no effect on 1 pictures, which are small squares already"
    assert "crop" not in findings(examine_mini(copy))


def lists_of(*specs: TaskSpec):
    return lambda data: specs


def test_tasks_that_cannot_be_drawn_fail_with_the_reason(copy):
    fine = TaskSpec("test", way=2, shot=1, tasks=10, query=2)
    report = examine("miniimagenet", 0, copy, decode=False, tasks=lists_of(fine))
    assert report.passed
    assert findings(report)["role test"].expected == "at least 3 per class"
    assert findings(report)["tasks"].seen == "all lists can be drawn (2 to 2 ways, 1 to 1 shots)"
    wide = TaskSpec("test", way=5, shot=1, tasks=10, query=1)
    rows = findings(examine("miniimagenet", 0, copy, decode=False, tasks=lists_of(fine, wide)))
    assert rows["tasks test 5-way 1-shot"].verdict == "fail"
    assert "test has no more than 2 classes, tasks ask for 5 ways" in rows["tasks test 5-way 1-shot"].seen


def test_classes_too_small_for_a_task_fail(mini):
    rows = findings(examine("miniimagenet", 0, mini, decode=False))
    assert rows["role test"].verdict == "fail"
    assert rows["role test"].seen == f"12 images, 6 per class (fewest: {TEST[0]})"
    assert rows["role test"].expected == "at least 20 per class"


def test_a_wrong_layout_is_one_failing_row(tmp_path: Path):
    report = examine("image_folder", 0, {"root": tmp_path / "none", "classes": [1, 1, 1], "extra": 2})
    assert [each.verdict for each in report.findings] == ["fail"]
    assert "none: cannot be listed" in report.findings[0].seen


def test_progress_hears_every_image(mini):
    calls: list[tuple[int, int]] = []
    examine_mini(mini, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (46, 46)


def folder_words(root: object) -> list[str]:
    """What names an image folder of three classes on the command line."""
    return ["image_folder", f"root={root}", "classes=[1,1,1]", "extra=4"]


def test_the_command_prints_a_table_and_its_exit_code_tells(tmp_path: Path):
    raw_trees.folder_tree(tmp_path / "my pictures", "abc", 24)
    command = [sys.executable, ROOT / "tools" / "doctor", *folder_words(tmp_path / "my pictures")]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "fit to be packed" in shown.stdout


def test_json_has_every_finding_and_all_counts(tmp_path: Path, monkeypatch, capsys):
    raw_trees.folder_tree(tmp_path, "abc", 24)
    (tmp_path / "b" / "3.jpg").write_bytes(b"")
    assert call_tool(monkeypatch, "doctor", *folder_words(tmp_path), "--json") == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["passed"] is False
    assert [row["check"] for row in facts["findings"] if row["verdict"] == "fail"] == ["files"]
    assert sum(sum(roles.values()) for roles in facts["counts"].values()) == 72


def test_json_of_names_that_are_no_utf8_can_be_printed(tmp_path: Path, monkeypatch, capsys):
    raw_trees.folder_tree(tmp_path, "abc", 24)
    os.rename(tmp_path / "b" / "3.jpg", os.fsencode(tmp_path / "b") + b"/\xff\x1b[2J.jpg")
    (tmp_path / "b" / "\udcff\x1b[2J.jpg").write_bytes(b"")
    assert call_tool(monkeypatch, "doctor", *folder_words(tmp_path), "--json") == 1
    said = capsys.readouterr().out
    assert said.isascii() and "\x1b" not in said and "\\udcff" in said


def entry(folder: Path, root: Path) -> None:
    """A params.yaml whose dataset mini is an image folder."""
    facts = yaml.safe_load((ROOT / "params.yaml").read_text())
    facts["datasets"]["mini"] |= {
        "source": "image_folder",
        "options": {"root": str(root), "classes": [1, 1, 1], "extra": 4},
    }
    (folder / "params.yaml").write_text(yaml.safe_dump(facts))
    (folder / "paper").mkdir()
    shutil.copy(ROOT / "paper" / "grid.yaml", folder / "paper")


@pytest.mark.parametrize("named", [True, False])
def test_the_episodes_entry_is_checked_too(tmp_path: Path, monkeypatch, capsys, named: bool):
    raw = raw_trees.folder_tree(tmp_path / "raw", "abc", 24)
    entry(tmp_path, raw)
    monkeypatch.syspath_prepend(ROOT / "tools")
    monkeypatch.setattr("_bootstrap.ROOT", tmp_path)
    words = ["--dataset", "mini"] if named else folder_words(raw)
    assert call_tool(monkeypatch, "doctor", "--json", *words) == 1
    failed = [row for row in json.loads(capsys.readouterr().out)["findings"] if row["verdict"] == "fail"]
    assert "tasks test 5-way 1-shot" in {row["check"] for row in failed}
    assert "test has no more than 1 classes, tasks ask for 5 ways" in failed[0]["seen"]


def test_a_path_is_taken_as_it_is_typed_and_control_characters_do_not_reach_the_terminal(
    tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "600")
    for name in ("2020-01-01", "010", "a: b", "\x1b[31mred"):
        raw_trees.folder_tree(tmp_path / name, "abc", 24)
        (tmp_path / name / "d\x1b[2J").mkdir()
        assert call_tool(monkeypatch, "doctor", *folder_words(name), "--fast") == 1
        shown = capsys.readouterr().out
        assert "holds no JPEG or PNG" in shown
        assert "\x1b" not in shown


def test_help_lists_every_source_with_its_options(monkeypatch, capsys):
    assert call_tool(monkeypatch, "doctor", "--help") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: tools/doctor ")
    for source in SOURCES:
        section = shown.split(f"options of {source}:")[1].split("options of")[0]
        for key, option in options_of(source).items():
            assert f"\n  {key}" in section
            assert option.meaning in " ".join(section.split())
