"""The embedded Mongo-wire server: NX-27017 on SQLite, with the answers that Omniboard needs where it has none.

    python tools/tracking/server.py FOLDER PORT

The packages stay as they are: a subclass renames collections with dots, and answers find and aggregate itself from the
documents that the packages store (`aggregation.py`). It listens on 127.0.0.1 only.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aggregation import Document, Unsupported, aggregate, project, set_at, sort
from nx_27017.handler import NeoSQLiteHandler
from nx_27017.server import run_server
from nx_27017.utils import convert_neo_to_bson_objectids

PINNED = {"nx-27017": "0.8.1", "neosqlite": "1.17.2"}
NAMED_BY = ("find", "aggregate", "count", "distinct", "insert", "update", "delete", "findAndModify", "collStats")
DOT = "__dot__"


def check_versions() -> None:
    """End with one sentence where the packages are not those that this adapter was written for."""
    for package, expected in PINNED.items():
        if (found := version(package)) != expected:
            sys.exit(f"error: {package} {found} is installed, {expected} expected; run tools/setup")


class Handler(NeoSQLiteHandler):
    """Accepts drivers of any age and collection names with dots; finds and aggregates as Mongo does."""

    def handle_insert(self, msg: Document) -> tuple[int, Document]:
        return super().handle_insert(_renamed(msg))

    def handle_command(self, msg: Document) -> tuple[int, Document]:
        body = next(section for kind, section in _renamed(msg)["sections"] if kind == "body")
        with self._lock_for(body.get("$db", "test")):
            if "update" in body and not _is_file_store(body["update"]):
                self._spell_out(body, msg)
            if "aggregate" in body or ("find" in body and not _is_file_store(body["find"])):
                try:
                    return msg["request_id"], self._answer(body, msg.get("_conn_id"))
                except Unsupported as error:
                    return msg["request_id"], {"ok": 0, "code": 115, "errmsg": f"not supported here: {error}"}
            request, reply = super().handle_command(msg)
        if "minWireVersion" in reply:
            reply["minWireVersion"] = 0  # Omniboard's driver refuses servers that are too new for it
        return request, reply

    def _spell_out(self, body: Document, msg: Document) -> None:
        """Turn updates that only set fields into replacements: NeoSQLite would store dates inside $set as text."""
        listed = [section["updates"] for kind, section in msg["sections"] if kind == "payload" and "updates" in section]
        for update in [*body.get("updates", []), *(update for updates in listed for update in updates)]:
            if update["u"].keys() != {"$set"} or update.get("multi"):
                continue
            for row in self._read(body.get("$db", "test"), body["update"], update["q"])[:1]:
                for path, value in update["u"]["$set"].items():
                    set_at(row, path, value)
                update["q"], update["u"] = {"_id": row["_id"]}, row

    def _answer(self, body: Document, owner: Any) -> Document:
        database = body.get("$db", "test")
        name = body["aggregate"] if "aggregate" in body else body["find"]
        rows = self._aggregated(database, body) if "aggregate" in body else self._found(database, body)
        place = f"{database}.{name}"
        first, cursor = self._split_first_batch(rows, self._first_batch_size(body), place, database, owner=owner)
        return {"ok": 1, "cursor": {"id": cursor, "ns": place, "firstBatch": first}}

    def _found(self, database: str, body: Document) -> list[Document]:
        rows = sort(self._read(database, body["find"], body.get("filter", {})), body.get("sort") or {})
        skipped = rows[body.get("skip", 0) :]
        limited = skipped[: abs(body["limit"])] if body.get("limit") else skipped
        return project(limited, body["projection"]) if body.get("projection") else limited

    def _aggregated(self, database: str, body: Document) -> list[Document]:
        pipeline = body["pipeline"]
        by_id = pipeline[0].get("$match", {}) if pipeline else {}
        query = by_id if by_id.keys() == {"_id"} else {}
        rows = self._read(database, body["aggregate"], query)
        return aggregate(rows, pipeline, lambda name, query: self._read(database, _undotted(name), query))

    def _read(self, database: str, collection: str, query: Document) -> list[Document]:
        """Documents of a collection, also of GridFS's list of files, with the ids that drivers know."""
        if _is_file_store(collection):
            message = {"find": collection, "filter": query, "$db": database, "batchSize": 2**30}
            _, reply = super().handle_command({"request_id": 0, "sections": [("body", message)]})
            return [convert_neo_to_bson_objectids(row) for row in reply["cursor"]["firstBatch"]]
        connection = self.get_database(database)
        if collection not in connection.list_collection_names():
            return []
        rows = connection[collection].find(self._convert_objectids(query))
        return [convert_neo_to_bson_objectids(row) for row in rows]


def _renamed(msg: Document) -> Document:
    """The message with the dots of its collection's name replaced."""
    for kind, body in msg["sections"]:
        if kind == "body":
            for key in NAMED_BY:
                if isinstance(body.get(key), str):
                    body[key] = _undotted(body[key])
    return msg


def _undotted(name: str) -> str:
    """NeoSQLite refuses dots in names of tables; it has tables of its own for GridFS."""
    return name if _is_file_store(name) else name.replace(".", DOT)


def _is_file_store(name: str) -> bool:
    return name.endswith((".files", ".chunks"))


def serve(folder: Path, port: int) -> None:
    """Serve the databases under `folder` until SIGTERM, an interrupt or the end of standard input."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # held while this runs; the other tools look here and at the port
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"error: another server uses {folder}; stop the other tools/omniboard first")
        (folder / "port").write_text(str(port))
        threading.Thread(target=_leave_with_parent, daemon=True).start()
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        try:
            asyncio.run(run_server("127.0.0.1", port, Handler(data_dir=str(folder))))
        except OSError as error:
            sys.exit(f"error: cannot listen on port {port} ({error.strerror}); choose another one")


def _leave_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)  # SQLite's journal keeps what was answered; nothing else is pending


if __name__ == "__main__":
    check_versions()
    with contextlib.suppress(KeyboardInterrupt):
        serve(Path(sys.argv[1]), int(sys.argv[2]))
