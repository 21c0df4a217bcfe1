"""Which runs somebody has deleted on the server, so that no later copy brings them back.

The server keeps a list of all runs that it was ever given, with their numbers: a run of that list that is no longer
among its runs was deleted there, in Omniboard or by hand. Its folder under `runs/` stays as it is, and a new run of the
same cell is copied as ever. Numbers are given once: no run inherits that of a deleted one.
"""

from typing import Any

from pymongo.database import Database

GIVEN = "copied_runs"  # the list's collection: {_id: name of the run, number: its number on this server}


def note_given(database: Database[dict[str, Any]], run: str, number: int) -> None:
    """Put a run that the server has now on its list."""
    database[GIVEN].replace_one({"_id": run}, {"_id": run, "number": number}, upsert=True)


def note_all_given(database: Database[dict[str, Any]], numbers: dict[str, int]) -> None:
    """Put the runs that a server has and that its list lacks on it: a copy from before there was one made them."""
    for run in sorted(numbers.keys() - _given(database).keys()):
        note_given(database, run, numbers[run])


def is_deleted(database: Database[dict[str, Any]], run: str) -> bool:
    """Tell whether the server was given this run and has it no more."""
    given = database[GIVEN].find_one({"_id": run}) is not None
    return given and database.runs.find_one({"meta.run": run}, {"_id": 1}) is None


def deleted_runs(database: Database[dict[str, Any]]) -> set[str]:
    """The names of all runs that the server was given and has no more."""
    present = database.runs.find({}, {"meta.run": 1})
    return set(_given(database)) - {document.get("meta", {}).get("run") for document in present}


def forget_deleted(database: Database[dict[str, Any]]) -> None:
    """Take the deleted runs off the list: the next copy brings them back, under new numbers."""
    for run in sorted(deleted_runs(database)):
        database[GIVEN].delete_one({"_id": run})


def largest_number(database: Database[dict[str, Any]]) -> int:
    """The largest number that a run has or had here; 0 where there was none."""
    present = [int(document["_id"]) for document in database.runs.find({}, {"_id": 1})]
    return max([0, *present, *_given(database).values()])


def _given(database: Database[dict[str, Any]]) -> dict[str, int]:
    return {entry["_id"]: int(entry["number"]) for entry in database[GIVEN].find()}
