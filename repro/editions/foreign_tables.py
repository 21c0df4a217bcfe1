"""A table of somebody else's, CSV or Parquet: every column is read as what it should hold, or the table is refused."""

import warnings
from collections import Counter
from math import inf, nan
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from repro.errors import BadInput, one_line
from repro.results.records import MEASURES

COMPARED = tuple(measure for measure in MEASURES if measure != "conf_ratio")  # which is no percent
MEANS, BY_TASK = ("cell", "way", "measure", "mean"), ("cell", "way", "task", "tasks")
FORMS = (
    f"columns {', '.join(MEANS)} (and interval), or {', '.join(BY_TASK)} (and seed, where there are several) and a "
    "column per measure"
)
PROTOCOLS = ("gfsl", "fsl", "seen")
SIMULATED = "overlap[0-9]+"  # protocols of our records that nobody else has, left out
USUAL = {"protocol": PROTOCOLS[0], "seed": 0, "interval": nan}  # where a column is not given
TEXTS = ("cell", "protocol", "measure", "tasks")
WHOLE = {"way": 1, "task": 0, "seed": 0}  # the least
LARGEST = 10**9
PERCENT = {"mean": -100, "interval": 0, **dict.fromkeys(COMPARED, -100)}


def read_table(file: Path) -> tuple[pd.DataFrame, bool]:
    """The rows, and whether each is a task; raises BadInput that names what is no such table."""
    if file.exists() and not file.is_file() and not file.is_dir():  # it would be read for ever
        raise BadInput(f"{file}: is a pipe or a device, expected CSV or Parquet with {FORMS}; write it to a file first")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that a row has more fields than the header
            if file.suffix == ".parquet":  # without what pandas wrote beside it: an index is a column like others
                table = pq.read_table(file).replace_schema_metadata(None).to_pandas()
            else:
                header = list(pd.read_csv(file, header=None, nrows=1, dtype=str).iloc[0])
                if len(set(header)) < len(header):
                    raise ValueError(f"it has the column {Counter(header).most_common(1)[0][0]} twice")
                table = pd.read_csv(file, dtype=dict.fromkeys(TEXTS, str), index_col=False)
    except (OSError, ValueError, pa.ArrowException, Warning) as error:
        raise BadInput(f"{file}: not a table ({one_line(error)}), expected CSV or Parquet with {FORMS}") from error
    by_task = set(BY_TASK) <= set(table.columns)
    if not by_task and not set(MEANS) <= set(table.columns):
        raise BadInput(f"{file}: has the columns {', '.join(map(str, table.columns)):.200}, expected {FORMS}")
    if table.empty or (by_task and not set(COMPARED) & set(table.columns)):
        raise BadInput(f"{file}: has {len(table)} rows and no number, expected {FORMS}")
    known = {*USUAL, *TEXTS, *WHOLE, *PERCENT}
    table = table[[name for name in table.columns if name in known]].assign(
        **{name: value for name, value in USUAL.items() if name not in table}
    )
    for name in table.columns:
        table[name] = _texts(file, table[name]) if name in TEXTS else _numbers(file, table[name])
    table = table[~table["protocol"].str.fullmatch(SIMULATED)]
    _require_known(file, table, "protocol", PROTOCOLS)
    if not by_task:
        _require_known(file, table, "measure", COMPARED)
    _require_once(file, table, by_task)
    return table, by_task


def _texts(file: Path, column: "pd.Series[str]") -> "pd.Series[str]":
    for value in column:
        if not isinstance(value, str):
            raise BadInput(f"{file}: {column.name} is {value!r:.60}, expected text")
    return column


def _numbers(file: Path, column: "pd.Series[float]") -> "pd.Series[float]":
    """Whole numbers or percents; NaN stands for what was not measured, where that may be."""
    name = str(column.name)
    whole, may_lack = name in WHOLE, name == "interval" or name in COMPARED
    least, most = (WHOLE[name], LARGEST) if whole else (PERCENT[name], 100)
    is_number = column.dtype.kind in "iufO"  # no truth values, no times
    try:
        numbers = pd.to_numeric(column, errors="coerce") if is_number else column.astype(str).map(lambda _: inf)
    except OverflowError:  # one of hundreds of digits
        numbers = column.map(_number)
    wrong = ~numbers.between(least, most) & ~(may_lack & column.isna())
    wrong |= numbers.mod(1).ne(0) if whole else False
    if wrong.any():
        kind = "a whole number" if whole else "percent"
        raise BadInput(f"{file}: {name} is {column[wrong].iloc[0]!s:.60}, expected {kind} from {least} to {most}")
    return numbers.astype(int) if whole else numbers


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return inf


def _require_known(file: Path, table: pd.DataFrame, name: str, known: tuple[str, ...]) -> None:
    for value in table[name]:
        if value not in known:
            raise BadInput(f"{file}: {name} is {value!r:.60}, expected one of {', '.join(known)}")


def _require_once(file: Path, table: pd.DataFrame, by_task: bool) -> None:
    """Raise BadInput for numbers that are there twice, tasks of two lists, and a measure that some tasks lack."""
    group = ["cell", "protocol", "way", *(["seed"] if by_task else ["measure"])]
    twice = table.duplicated([*group, "task"] if by_task else group)
    if twice.any():
        row = table[twice].iloc[0]
        found = f"{file}: has {', '.join(f'{name} {row[name]}' for name in group)} twice, expected it once"
        raise BadInput(f"{found}; tasks of several seeds need the column seed" if by_task else found)
    for key, rows in table.groupby(group, sort=False) if by_task else ():
        if rows["tasks"].nunique() > 1:
            raise BadInput(f"{file}: {key[0]} has tasks of several lists, expected one digest in `tasks` per seed")
        for measure in set(COMPARED) & set(rows.columns):
            if rows[measure].isna().any() and rows[measure].notna().any():
                raise BadInput(f"{file}: {key[0]} lacks {measure} of some tasks, expected it of all or of none")
