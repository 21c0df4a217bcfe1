"""Copies run folders to a Mongo server, laid out as Sacred's MongoObserver does, for Omniboard.

Copying twice changes nothing: every document has an id made from its run, and a run that has not changed since is left
out. Documents stay far below Mongo's limit of 16 MB: long series are thinned, long output is cut in the middle, files
go to GridFS. The folder keeps everything.
"""

import hashlib
import math
import mimetypes
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import bson
import gridfs
import pymongo
from bson import ObjectId
from bson.errors import BSONError
from pymongo.database import Database
from pymongo.errors import DuplicateKeyError

from repro.errors import BadInput
from repro.files import folder_in_turn
from stages.tracking.deleted import is_deleted, largest_number, note_all_given, note_given
from stages.tracking.files import read_facts, read_scalars
from stages.tracking.names import cell_of, file_within

DATABASE = "sacred"
# pymongo would take what stands before the / for the host, and messages name the host.
SLASH = "REPRO_MONGO_URL has an @ after a /, expected user:password@host/name in it; write a / of a password as %2F"
SCHEMES = ("mongodb://", "mongodb+srv://")
SELECT_SECONDS, SOCKET_SECONDS = 2, 15
MOST_POINTS = 20_000
LONGEST_OUTPUT = 500_000
LARGEST_FILE = 64 * 2**20
LARGEST_DOCUMENT = 12 * 2**20
TIMES = ("start_time", "stop_time", "heartbeat")


@contextmanager
def mongo_database(url: str) -> Iterator[Database[dict[str, Any]]]:
    """Open the database that the URL names (`sacred` where it names none); raises BadInput where it is no Mongo URL.

    The URL may hold a password anywhere, and pymongo quotes it: no message has a part of it or of pymongo's words.
    """
    try:
        if not url.startswith(SCHEMES):
            raise ValueError
        if "@" in url.partition("://")[2].partition("?")[0].partition("/")[2]:
            raise BadInput(SLASH)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(
                url,
                serverSelectionTimeoutMS=SELECT_SECONDS * 1000,
                connectTimeoutMS=SELECT_SECONDS * 1000,
                socketTimeoutMS=SOCKET_SECONDS * 1000,
            )
        database = client.get_default_database(DATABASE)
    except BadInput:
        raise
    except Exception as error:
        kind = "" if type(error) is ValueError else f" ({type(error).__name__})"
        raise BadInput(f"REPRO_MONGO_URL is no usable Mongo URL{kind}; expected mongodb://host/name") from None
    with client:
        yield database


def hosts(url: str) -> str:
    """The server's name for people: the hosts of a URL that `mongo_database` takes, and nothing else of it."""
    return re.split("[/?]", url.partition("://")[2])[0].rpartition("@")[2]


def state(folder: Path) -> str:
    """A digest of the sizes and times of the run's files: another one means that there is something to copy."""
    found = []
    for place in (folder, folder / "artifacts"):
        for entry in os.scandir(place) if place.is_dir() else ():
            with suppress(FileNotFoundError):  # the temporary name of a file that is being written
                if entry.is_file() and not entry.name.startswith("."):
                    status = entry.stat()
                    found.append(f"{place.name}/{entry.name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(found)).encode(errors="surrogateescape")).hexdigest()[:16]


def copied_states(database: Database[dict[str, Any]]) -> dict[str, str]:
    """The state in which each run was last copied whole, by the run's name."""
    found = {document["_id"]: document.get("meta", {}) for document in database.runs.find({}, {"meta": 1})}
    note_all_given(database, {meta["run"]: number for number, meta in found.items() if "run" in meta})
    metas = found.values()
    return {meta["run"]: meta["state"] for meta in metas if "run" in meta and "state" in meta}


def copy_run(folder: Path, database: Database[dict[str, Any]]) -> None:
    """Bring the server's copy of one run up to date, unless it was deleted there.

    Raises BadInput for a folder that is no run, PyMongoError.
    """
    with damage_as_bad_input(folder), folder_in_turn(folder):  # a stage and a tool may both be at it
        now = state(folder)  # before reading: what is written meanwhile is copied the next time
        document = _read_document(folder)
        if is_deleted(database, folder.name):
            return
        number = _number(folder.name, document, database)
        note_given(database, folder.name, number)
        files = gridfs.GridFS(database)
        document["artifacts"] = _copy_artifacts(folder, document["artifacts"], files)
        document["experiment"]["sources"] = _copy_sources(folder.parent, document["experiment"]["sources"], files)
        document["info"]["metrics"] = _copy_scalars(folder, number, database)
        document["meta"]["state"] = now
        database.runs.update_one({"_id": number}, {"$set": _fitting(document, folder)})


@contextmanager
def damage_as_bad_input(folder: Path, *more: type[Exception]) -> Iterator[None]:
    """Turn what a record of the wrong shape makes raise, and `more`, into a sentence that names the folder."""
    damage: tuple[type[Exception], ...] = (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        BSONError,
        *more,
    )
    try:
        yield
    except BadInput:
        raise
    except damage as error:
        raise BadInput(f"{folder} is no whole record of a run ({error!r}); restore or remove that folder") from error


def _read_document(folder: Path) -> dict[str, Any]:
    with damage_as_bad_input(folder, OSError):
        document = read_facts(folder / "run.json")
        document.update({key: datetime.fromisoformat(document[key]) for key in TIMES if document.get(key)})
        document["config"] = read_facts(folder / "config.json")
        document["info"] = read_facts(folder / "info.json") if (folder / "info.json").exists() else {}
        document["meta"] |= {"run": folder.name, "cell": cell_of(folder.name)}
        document["captured_out"] = _cut((folder / "cout.txt").read_text(encoding="utf-8"))
        document["format"] = "MongoObserver-0.7.0"
        document["experiment"]["sources"], document["artifacts"]  # noqa: B018 - both must be there
    return _storable(document)


def _storable(value: Any) -> Any:
    """Keys as Mongo wants them (Sacred's replacements for dots and leading dollars); null for what is no number."""
    if isinstance(value, dict):
        return {
            ("@" + key[1:] if key.startswith("$") else key).replace(".", ","): _storable(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(run: str, document: dict[str, Any], database: Database[dict[str, Any]]) -> int:
    """The run's number on this server: Omniboard knows runs by number. A new run gets the next one."""
    known = database.runs.find_one({"meta.run": run}, {"_id": 1})
    if known:
        return int(known["_id"])
    while True:
        number = largest_number(database) + 1
        first = {key: document[key] for key in ("meta", "status", "start_time", "config")}
        try:
            database.runs.insert_one({"_id": number, **first, "experiment": {"name": document["experiment"]["name"]}})
            return number
        except DuplicateKeyError:  # another process took it just now
            continue


def _copy_scalars(folder: Path, number: int, database: Database[dict[str, Any]]) -> list[dict[str, str]]:
    links = []
    for name, series in read_scalars(folder).items():
        step = -(-len(series["steps"]) // MOST_POINTS) or 1
        # Counted from the end, so that the last point stays.
        thinned: dict[str, Any] = {column: points[::-step][::-1] for column, points in series.items()}
        thinned["values"] = _storable(thinned["values"])
        thinned["timestamps"] = [datetime.fromisoformat(time) for time in thinned["timestamps"]]
        key = _object_id("metric", folder.name, name)
        database.metrics.replace_one({"_id": key}, {"_id": key, "run_id": number, "name": name, **thinned}, upsert=True)
        links.append({"id": str(key), "name": name})
    return links


def _copy_artifacts(folder: Path, names: list[str], files: gridfs.GridFS) -> list[dict[str, Any]]:
    links = []
    for name in names:
        content = _content(file_within(folder / "artifacts", name))
        key = _object_id("artifact", folder.name, name, content)
        _put(files, key, f"artifact://runs/{folder.name}/{name}", content)
        links.append({"name": name, "file_id": key})
    return links


def _copy_sources(runs: Path, sources: list[list[str]], files: gridfs.GridFS) -> list[list[Any]]:
    contents = {name: _content(file_within(runs, stored)) for name, stored in sources}
    keys = {name: _object_id("source", name, content) for name, content in contents.items()}
    # Most are there from other runs: one question for all of them.
    lengths = {stored._id: stored.length for stored in files.find({"_id": {"$in": list(keys.values())}})}
    for name, content in contents.items():
        if lengths.get(keys[name]) != len(content):
            _put(files, keys[name], name, content)
    return [[name, keys[name]] for name, _ in sources]


def _content(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        return path.read_bytes() if size <= LARGEST_FILE else f"{size} bytes: see {path}\n".encode()
    except OSError as error:
        raise BadInput(f"{path} is missing ({error.strerror}); restore it or remove that run's folder") from error


def _put(files: gridfs.GridFS, key: ObjectId, name: str, content: bytes) -> None:
    """Store a file under its id unless it is there whole; pieces of an upload that was cut off make way."""
    stored = files.find_one({"_id": key})
    if stored and stored.length == len(content):
        return
    if stored:
        files.delete(key)
    kind = mimetypes.guess_type(name)[0]
    try:
        files.put(content, _id=key, filename=name, content_type=kind)
    except gridfs.errors.FileExists:
        files.delete(key)
        files.put(content, _id=key, filename=name, content_type=kind)


def _object_id(*parts: str | bytes) -> ObjectId:
    """An id that depends on nothing but what is stored."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part if isinstance(part, bytes) else part.encode()).digest())
    return ObjectId(digest.digest()[:12])


def _cut(text: str) -> str:
    """The beginning and the end of very long output."""
    if len(text) <= LONGEST_OUTPUT:
        return text
    half = LONGEST_OUTPUT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out, see cout.txt of the run …\n{text[-half:]}"


def _fitting(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The document with its largest entries replaced by a note, until Mongo can hold it."""
    document = dict(document)
    while len(bson.encode(document)) > LARGEST_DOCUMENT:
        largest = max(document, key=lambda key: len(bson.encode({key: document[key]})))
        document[largest] = f"too large for a document: see {folder}"
    return document
