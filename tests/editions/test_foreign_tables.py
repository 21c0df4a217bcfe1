"""Tables of others that mean nothing, or two things at once, are refused in a sentence."""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from repro.editions.sides import table_side
from repro.errors import BadInput
from repro.results.store import Cell, Reading

CELL = Cell("mini", "castle", 1)
NAME = CELL.name
MEAN, TASK = "cell,way,measure,mean", "cell,way,task,tasks"
REFUSED = {
    "no row": (f"{MEAN}\n", "has 0 rows and no number"),
    "no measure": (f"{TASK}\n{NAME},5,0,abc\n", "has 1 rows and no number"),
    "an infinite mean": (f"{MEAN}\n{NAME},5,hm,1e999\n", "mean is inf, expected percent"),
    "no mean": (f"{MEAN}\n{NAME},5,hm,\n", "mean is nan, expected percent"),
    "a mean beyond all percents": (f"{MEAN}\n{NAME},5,hm,1e308\n", "mean is 1e\\+308, expected percent"),
    "a negative interval": (f"{MEAN},interval\n{NAME},5,hm,3,-4\n", "interval is -4, expected percent from 0"),
    "a part of a way": (f"{MEAN}\n{NAME},5.5,hm,3\n", "way is 5.5, expected a whole number from 1"),
    "a negative way": (f"{MEAN}\n{NAME},-5,hm,3\n", "way is -5, expected a whole number from 1"),
    "infinite ways": (f"{MEAN}\n{NAME},inf,hm,3\n", "way is inf, expected a whole number"),
    "a mean twice": (f"{MEAN}\n{NAME},5,hm,3\n{NAME},5,hm,4\n", "way 5, measure hm twice, expected it once"),
    "a column twice": (f"{MEAN},mean\n{NAME},5,hm,3,4\n", "it has the column mean twice"),
    "fields beyond the header": (f"{MEAN}\n{NAME},5,hm,3,4,5\n", "not a table"),
    "no cell": (f"{MEAN}\n,5,hm,3\n", "cell is nan, expected text"),
    "a protocol there is not": (f"{MEAN},protocol\n{NAME},5,hm,3,x\n", "protocol is 'x', expected one of gfsl"),
    "a task twice": (
        f"{TASK},hm\n{NAME},5,0,a,3\n{NAME},5,0,a,4\n",
        "seed 0 twice, expected it once; .* need the column seed",
    ),
    "tasks of two lists": (f"{TASK},hm\n{NAME},5,0,a,3\n{NAME},5,1,b,4\n", "has tasks of several lists"),
    "a task without its measure": (f"{TASK},hm\n{NAME},5,0,a,3\n{NAME},5,1,a,\n", "lacks hm of some tasks"),
    "an infinite task": (f"{TASK},hm\n{NAME},5,0,a,inf\n{NAME},5,1,a,3\n", "hm is inf, expected percent"),
    "a mean of hundreds of digits": (f"{MEAN}\n{NAME},5,hm,{'9' * 400}\n", "mean is 9+, expected percent"),
    "a negative seed": (f"{TASK},seed,hm\n{NAME},5,0,a,-1,3\n", "seed is -1, expected a whole number from 0"),
}
COLUMNS: dict[str, tuple[dict[str, Any], str]] = {
    "bytes for a name": ({"cell": [b"\xff"]}, "cell is b'.xff', expected text"),
    "a list for a measure": ({"measure": [["hm"]]}, "measure is .*, expected text"),
    "a truth value for ways": ({"way": [True]}, "way is True, expected a whole number"),
    "a time for a mean": ({"mean": pa.array([1], pa.timestamp("s"))}, "mean is 1970.*, expected percent"),
    "more ways than any": ({"way": pa.array([2**64 - 1], pa.uint64())}, "way is 18446744073709551615, expected"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_without_one_meaning_is_refused(name: str, tmp_path: Path, bad_inputs) -> None:
    text, said = REFUSED[name]
    (tmp_path / "theirs.csv").write_text(text)
    bad_inputs.tried()
    with pytest.raises(BadInput, match=said):
        table_side(tmp_path / "theirs.csv", [CELL])
    bad_inputs.answered()


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_another_type_is_refused(name: str, tmp_path: Path, bad_inputs) -> None:
    columns, said = COLUMNS[name]
    sound: dict[str, Any] = {"cell": [NAME], "way": [5], "measure": ["hm"], "mean": [3.0]}
    pq.write_table(pa.table(sound | columns), tmp_path / "theirs.parquet")
    bad_inputs.tried()
    with pytest.raises(BadInput, match=said):
        table_side(tmp_path / "theirs.parquet", [CELL])
    bad_inputs.answered()


@pytest.mark.parametrize("said", [b"[1]", b'{"index_columns": [{"kind": "range"}], "columns": []}', b"{"])
def test_what_pandas_wrote_beside_a_table_is_not_believed(said: bytes, tmp_path: Path) -> None:
    table = pa.table({"cell": [NAME], "way": [5], "measure": ["hm"], "mean": [3.0]})
    pq.write_table(table.replace_schema_metadata({b"pandas": said}), tmp_path / "theirs.parquet")
    found = table_side(tmp_path / "theirs.parquet", [CELL]).mean(Reading(CELL, "gfsl", 5, "hm"))
    assert found and found.mean == 3


def test_a_header_of_many_columns_is_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "theirs.csv").write_text(f"{MEAN}{',' * 100_000}\n")
    started = time.process_time()
    with pytest.raises(BadInput, match="not a table"):
        table_side(tmp_path / "theirs.csv", [CELL])
    assert time.process_time() - started < 5


def test_a_digest_of_digits_is_text(tmp_path: Path) -> None:
    (tmp_path / "theirs.csv").write_text(f"{TASK},hm\n{NAME},5,0,0012,3\n{NAME},5,1,0012,4\n")
    sample = table_side(tmp_path / "theirs.csv", [CELL]).sample(Reading(CELL, "gfsl", 5, "hm"))
    assert sample and sample.seeds[0].tasks.endswith("/0012")
