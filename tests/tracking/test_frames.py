"""`runs/` read back as data frames, and the names in a record."""

import json
import shutil

import pytest

from repro.errors import BadInput
from stages.tracking.frames import runs, scalars
from stages.tracking.names import cell_of, file_within, flattened, printable
from tests.tracking import toy


def test_one_row_per_run_with_times_results_and_configuration(tmp_path):
    toy.record_toy(tmp_path, seed=3, method={"name": "castle", "heads": [1, 2]})
    with pytest.raises(RuntimeError):
        toy.record_toy(tmp_path, "office-dfsl-1shot", trouble="crash")
    table = runs(tmp_path)
    wanted = ["id", "stage", "cell", "seed", "status", "start", "stop", "seconds", "continues"]
    assert list(table.columns[:9]) == wanted and list(table.continues) == ["", ""]
    assert list(table.id) == sorted(folder.name for folder in tmp_path.glob("2*"))
    assert list(table.stage) == ["toy", "toy"] and list(table.cell) == ["mini-castle-1shot", "office-dfsl-1shot"]
    assert list(table.status) == ["COMPLETED", "FAILED"] and list(table.seed) == [3, 0]
    first = table.iloc[0]
    assert first["result.hm"] == 63.0 and first["config.method.name"] == "castle"
    assert first["config.method.heads"] == [1, 2]
    assert first.seconds == (first.stop - first.start).total_seconds() > 0


def test_one_row_per_scalar(tmp_path):
    toy.record_toy(tmp_path, steps=3, seed=2)
    table = scalars(tmp_path)
    assert list(table.columns) == ["run", "name", "step", "value", "time"]
    loss = table[table.name == "loss"]
    assert list(loss.step) == [0, 1, 2] and list(loss.value) == [12.0, 6.0, 4.0]
    assert loss.time.is_monotonic_increasing and len(table) == 6


def test_a_run_that_continues_another_names_it(tmp_path):
    with pytest.raises(SystemExit):
        toy.record_toy(tmp_path, steps=9, trouble="interrupt")
    with pytest.raises(SystemExit):
        toy.record_toy(tmp_path, steps=9, trouble="interrupt")
    table = runs(tmp_path)
    assert list(table.continues) == ["", table.id[0]] and list(table.status) == ["INTERRUPTED", "INTERRUPTED"]


def test_sources_and_links_to_outputs_are_no_runs(tmp_path):
    toy.record_toy(tmp_path, outputs={"weights": "0" * 64})
    assert {entry.name for entry in tmp_path.iterdir()} >= {"_sources", "by_output"}
    assert len(runs(tmp_path)) == 1 and len(set(scalars(tmp_path).run)) == 1


def test_no_runs_give_empty_frames_with_the_same_columns(tmp_path):
    assert list(runs(tmp_path).columns[:2]) == ["id", "stage"] and len(runs(tmp_path)) == 0
    assert list(scalars(tmp_path).columns) == ["run", "name", "step", "value", "time"]
    with pytest.raises(BadInput, match="is no folder"):
        runs(tmp_path / "missing")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("run.json", None),
        ("run.json", "{"),
        ("run.json", "[1]"),
        ("run.json", '{"experiment": {"name": "x"}, "status": "RUNNING", "start_time": "noon"}'),
        ("config.json", "[]"),
    ],
)
def test_a_broken_folder_is_left_out_and_named(tmp_path, file, content):
    toy.record_toy(tmp_path)
    broken = tmp_path / "20260101-000000-000-toy-\x1b[31mred-abcdef"
    shutil.copytree(next(tmp_path.glob("2*")), broken)
    (broken / file).unlink()
    if content is not None:
        (broken / file).write_text(content)
    with pytest.warns(UserWarning, match=r"toy-\\x1b\[31mred-abcdef is left out") as said:
        assert len(runs(tmp_path)) == 1
    assert "\x1b" not in str(said[0].message)


def test_a_journal_of_the_wrong_shape_is_left_out_and_named(tmp_path):
    toy.record_toy(tmp_path)
    (folder,) = tmp_path.glob("2*")
    (folder / "metrics.jsonl").write_text(json.dumps(["loss", "first", 1.0, "2026-01-01"]) + "\n")
    with pytest.warns(UserWarning, match=f"{folder.name} is left out"):
        assert len(scalars(tmp_path)) == 0


def test_names_of_cells_values_and_files(tmp_path):
    assert cell_of("20261117-191107-684-train-mini-castle-1shot-4d5aa4") == "mini-castle-1shot"
    assert cell_of("renamed") == ""
    assert flattened({"a": {"b": 1, "c": {}}, "d": [1]}) == {"a.b": 1, "d": [1]}
    assert printable("é\n\x1b[2J\udcff") == "é\\n\\x1b[2J\\udcff"
    assert file_within(tmp_path, "a/b.csv") == tmp_path / "a" / "b.csv"
    (tmp_path / "link").symlink_to("/etc")
    for name in ("../x", "/etc/passwd", "a/../../x", "link/passwd"):
        with pytest.raises(BadInput, match="outside"):
            file_within(tmp_path, name)
