"""Records, published numbers and run folders that are not what they should be."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from repro.files import seal
from repro.results.records import read_records, summarise
from repro.results.store import Cell, Reading, Results
from stages.tracking import bad_input_exits
from tests.bad_inputs.asking import Damage, Refused, ask, cut, ended, removed, written

CELL = "results/cells/mini-mc_knn-1shot/0"
RECORDS = f"{CELL}/tasks.parquet"
PAPER = "stages paper"
HM = Reading(Cell("mini", "mc_knn", 1), "gfsl", 5, "hm")


def table(change: Callable[[pa.Table], pa.Table]) -> Damage:
    """Records changed by hand and stored soundly."""
    return lambda folder: pq.write_table(change(pq.read_table(folder / RECORDS)), folder / RECORDS)


def column(name: str, values: Callable[[np.ndarray], object]) -> Damage:
    """One column of the records with other values."""

    def change(rows: pa.Table) -> pa.Table:
        new = pa.array(values(rows[name].to_numpy()))
        return rows.set_column(rows.column_names.index(name), name, new)

    return table(change)


UNREADABLE: dict[str, Refused] = {
    "absent": (removed(RECORDS), "not a file of per-task records"),
    "truncated": (cut(RECORDS), "not a file of per-task records"),
    "empty": (written(RECORDS, b""), "not a file of per-task records"),
    "text": (written(RECORDS, "task,hm\n1,60\n"), "not a file of per-task records"),
    "only magic bytes": (written(RECORDS, b"PAR1" + b"\0" * 64 + b"PAR1"), "not a file of per-task records"),
    "without a column": (table(lambda rows: rows.drop_columns(["hm"])), "its columns are not those"),
    "with a column too many": (table(lambda rows: rows.append_column("x", rows["hm"])), "its columns are not those"),
    "with words for numbers": (column("hm", lambda values: ["x"] * len(values)), "its columns are not those"),
    "without saying which tasks": (table(lambda rows: rows.replace_schema_metadata({})), "its columns are not those"),
    "with metadata that is no JSON": (
        table(lambda rows: rows.replace_schema_metadata({"tasks": "{"})),
        "not a file of per-task records",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_records_that_are_none_get_one_sentence(name: str, workspace: Path, bad_inputs) -> None:
    damage, expected = UNREADABLE[name]
    damage(workspace)
    bad_inputs.tried()

    def read() -> None:
        with bad_input_exits():
            read_records(workspace / RECORDS)

    ended(read).require(expected)
    bad_inputs.answered()


def test_records_of_other_tasks_get_one_sentence(workspace: Path, bad_inputs) -> None:
    lists = json.dumps({"gfsl_5way": "one list", "fsl_5way": "another list"})
    table(lambda rows: rows.replace_schema_metadata({"tasks": lists}))(workspace)
    seal(workspace / CELL, "tasks.parquet")
    bad_inputs.tried()

    def read() -> None:
        results = Results(workspace / "results" / "cells", {})
        results.sample(HM)
        with bad_input_exits():
            results.sample(replace(HM, protocol="fsl", measure="u_u"))

    ended(read).require("fsl_5way was measured on task list another list; expected one list for all cells")
    bad_inputs.answered()


@pytest.mark.parametrize("content", ["[1, 2", "[1, 2]", '{"gfsl_5way": [1]}', '{"gfsl_5way": [["a", "b"]]}'])
def test_a_curve_that_is_none_gets_one_sentence(content: str, workspace: Path, bad_inputs) -> None:
    written(f"{CELL}/curve.json", content)(workspace)
    seal(workspace / CELL, "curve.json")
    bad_inputs.tried()

    def read() -> None:
        with bad_input_exits():
            Results(workspace / "results" / "cells", {}).curve(HM.cell, 5)

    ended(read).require("curve.json: not a seen-unseen curve")
    bad_inputs.answered()


def test_a_measure_that_is_no_number_is_left_out_not_averaged(workspace: Path) -> None:
    column("hm", lambda values: np.where(np.arange(len(values)) == 3, np.nan, values).astype(np.float32))(workspace)
    seal(workspace / CELL, "tasks.parquet")
    assert "hm" not in summarise(read_records(workspace / RECORDS))["gfsl_5way"]
    assert Results(workspace / "results" / "cells", {"mini": 7}).sample(HM) is None


ORIGIN_OF_NOTHING = {
    **{"stage": "evaluate", "seed": 0, "settings": {}, "inputs": {}},
    **{"code": "0" * 64, "output": "0" * 64},
}


def origin(content: str) -> Damage:
    """Another origin beside the records, sealed as an evaluation would."""

    def change(folder: Path) -> None:
        (folder / CELL / "origin.json").write_text(content)
        seal(folder / CELL, *(file.name for file in sorted((folder / CELL).iterdir()) if file.name != "SHA256SUMS"))

    return change


TABLE: dict[str, Refused] = {
    "truncated records": (cut(RECORDS), "tasks.parquet: not a file of per-task records"),
    "no published numbers": (removed("paper/published.yaml"), "published.yaml: no such file"),
    "published numbers that are none": (written("paper/published.yaml", "- 1\n"), "not a list of published"),
    "a published word": (
        written("paper/published.yaml", "T1a: {label: x, rows: {a: {kind: measured, values: {hm: [x, 1]}}}}\n"),
        "not a list of published tables",
    ),
    "a published number of another kind": (
        written("paper/published.yaml", "T1a: {label: x, rows: {a: {kind: guessed, values: {}}}}\n"),
        "kind guessed, expected measured or cited",
    ),
    "a published number that is none": (
        written("paper/published.yaml", "T1a: {label: x, rows: {a: {kind: cited, values: {hm: [.nan, 1]}}}}\n"),
        "nan, expected a number",
    ),
    "published code": (
        written("paper/published.yaml", "T1a: !!python/object/apply:os.mkdir [ran]\n"),
        "not a list of published tables",
    ),
    "a published table without its rows": (
        written("paper/published.yaml", "T1a: {label: x, rows: {}}\n"),
        "T1a names no row",
    ),
    "a published row that no table shows": (
        written("paper/published.yaml", "T1a: {label: x, rows: {castel: {kind: cited, values: {hm: [1, 1]}}}}\n"),
        "T1a shows no row castel, expected some of dfsl, castle_minus",
    ),
    "an origin that is none": (origin("{}"), "origin.json: not the origin of a record (stage is None"),
    "an origin of another record": (
        origin(json.dumps(dict(ORIGIN_OF_NOTHING, cell=Path(CELL).parent.name))),
        "its output is 00",
    ),
    "published bytes": (written("paper/published.yaml", b"\xff\xfe"), "not a list of published tables"),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_the_paper_is_made_of_gets_one_sentence(name: str, judge: Callable[..., None]) -> None:
    damage, expected = TABLE[name]
    judge(damage, PAPER, expected)


TEMPLATE = "paper/templates/claims.md"
TEMPLATES: dict[str, Refused] = {
    "missing": (removed(TEMPLATE), "templates: claims.md cannot be filled"),
    "broken": (written(TEMPLATE, "\n{% if %}\n"), "templates: claims.md cannot be filled (Expected an expression"),
    "of unknown facts": (written(TEMPLATE, "{{ nobody }}\n"), "a template cannot be filled ('nobody' is undefined)"),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_that_cannot_be_filled_gets_one_sentence(name: str, workspace: Path, bad_inputs) -> None:
    damage, expected = TEMPLATES[name]
    damage(workspace)
    bad_inputs.tried()
    ask(workspace, PAPER).require(expected)
    assert not list((workspace / "paper").rglob("*.partial"))  # figures may be there already, each of them whole
    bad_inputs.answered()
