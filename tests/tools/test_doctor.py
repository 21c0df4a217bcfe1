"""tools/doctor: a verdict per row, an exit code, and the same facts for machines."""

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repro.preparation.doctor import Finding, Report, examine
from repro.preparation.sources import SOURCES
from tests.preparation import raw_trees
from tests.preparation.raw_trees import SEEN, TEST, VAL, mini_name, write_csv

ROOT = Path(__file__).resolve().parents[2]


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
    heard: list[tuple[int, int]] = []
    examine_mini(mini, progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (46, 46)


def run_here(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Call the tool's main in this process, which saves importing torch again."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    monkeypatch.setattr(sys, "argv", ["doctor", *arguments])
    return runpy.run_path(str(ROOT / "tools" / "doctor"), run_name="doctor")["main"]()


def test_the_command_prints_a_table_and_its_exit_code_tells(tmp_path: Path):
    raw_trees.folder_tree(tmp_path / "my pictures", "abc", 24)
    command = [sys.executable, ROOT / "tools" / "doctor", "image_folder", f"root={tmp_path / 'my pictures'}"]
    shown = subprocess.run([*command, "classes=[1,1,1]", "extra=4"], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "fit to be packed" in shown.stdout


def test_json_has_every_finding_and_all_counts(tmp_path: Path, monkeypatch, capsys):
    raw_trees.folder_tree(tmp_path, "abc", 24)
    (tmp_path / "b" / "3.jpg").write_bytes(b"")
    assert run_here(monkeypatch, "image_folder", f"root={tmp_path}", "classes=[1,1,1]", "extra=4", "--json") == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["passed"] is False
    assert [row["check"] for row in facts["findings"] if row["verdict"] == "fail"] == ["files"]
    assert sum(sum(roles.values()) for roles in facts["counts"].values()) == 72


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["imagenet"], "invalid choice: 'imagenet'"),
        (["image_folder", "rot=/x"], "'rot=/x' is no option of this source"),
        (["image_folder", "root"], "'root' is no option of this source, expected key=value"),
        (["office_home"], "no root given, expected root="),
    ],
)
def test_wrong_usage_ends_with_two(arguments: list[str], message: str, monkeypatch, capsys):
    with pytest.raises(SystemExit) as ended:
        run_here(monkeypatch, *arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_help_lists_every_source_with_its_options(monkeypatch, capsys):
    with pytest.raises(SystemExit) as ended:
        run_here(monkeypatch, "--help")
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"  {source}: " in shown for source in SOURCES)
    assert "miniimagenet: root lists extra=drawn" in shown
