"""The commands of the embedded server that NX-27017 has not, or answers otherwise than Mongo does.

The packages stay as they are: a subclass renames collections with dots, and answers find, aggregate and findAndModify
itself from the documents that the packages store (`aggregation.py`).
"""

from collections.abc import Callable
from typing import Any

from nx_27017.handler import NeoSQLiteHandler
from nx_27017.utils import convert_neo_to_bson_objectids

from tools.tracking.aggregation import MISSING, Document, Unsupported, aggregate, project, set_at, sort

NAMED_BY = ("find", "aggregate", "count", "distinct", "insert", "update", "delete", "findAndModify", "collStats")
DOT = "__dot__"


class Handler(NeoSQLiteHandler):
    """Accepts drivers of any age and collection names with dots; finds, aggregates and modifies as Mongo does."""

    def handle_insert(self, msg: Document) -> tuple[int, Document]:
        return super().handle_insert(_renamed(msg))

    def handle_command(self, msg: Document) -> tuple[int, Document]:
        body = next(section for kind, section in _renamed(msg)["sections"] if kind == "body")
        with self._lock_for(body.get("$db", "test")):
            try:
                if (answer := self._answerer(body)) is not None:
                    return msg["request_id"], answer(body, msg.get("_conn_id"))
                self._prepare(body, msg)
            except Unsupported as error:
                return msg["request_id"], {"ok": 0, "code": 115, "errmsg": f"not supported here: {error}"}
            request, reply = super().handle_command(msg)
        if "minWireVersion" in reply:
            reply["minWireVersion"] = 0  # Omniboard's driver refuses servers that are too new for it
        return request, reply

    def _answerer(self, body: Document) -> Callable[[Document, Any], Document] | None:
        """What answers this command here; None where the package does."""
        if "findAndModify" in body:  # first: it has an `update` too
            return self._modify_one
        if "aggregate" in body:
            return self._aggregate
        return self._find if "find" in body and not _is_file_store(body["find"]) else None

    def _prepare(self, body: Document, msg: Document) -> None:
        """Put updates and deletes into the form that the package understands."""
        if isinstance(body.get("update"), str) and not _is_file_store(body["update"]):
            self._spell_out(body, msg)
        if isinstance(body.get("delete"), str) and _is_file_store(body["delete"]):
            for holder in _holders(body, msg, "deletes"):
                holder["deletes"] = [part for delete in holder["deletes"] for part in _one_file_each(delete)]

    def _spell_out(self, body: Document, msg: Document) -> None:
        """Turn updates that only set fields into replacements: NeoSQLite would store dates inside $set as text."""
        for update in [update for holder in _holders(body, msg, "updates") for update in holder["updates"]]:
            if update["u"].keys() != {"$set"} or update.get("multi"):
                continue
            for row in self._read(body.get("$db", "test"), body["update"], update["q"])[:1]:
                update["q"], update["u"] = {"_id": row["_id"]}, _modified(row, update["u"])

    # Commands

    def _find(self, body: Document, owner: Any) -> Document:
        rows = sort(self._read(body.get("$db", "test"), body["find"], body.get("filter", {})), body.get("sort") or {})
        skipped = rows[body.get("skip", 0) :]
        limited = skipped[: abs(body["limit"])] if body.get("limit") else skipped
        shown = project(limited, body["projection"]) if body.get("projection") else limited
        return self._cursor(body, body["find"], shown, owner)

    def _aggregate(self, body: Document, owner: Any) -> Document:
        database, pipeline = body.get("$db", "test"), body["pipeline"]
        by_id = pipeline[0].get("$match", {}) if pipeline else {}
        query = by_id if by_id.keys() == {"_id"} else {}
        rows = self._read(database, body["aggregate"], query)
        found = aggregate(rows, pipeline, lambda name, query: self._read(database, _undotted(name), query))
        return self._cursor(body, body["aggregate"], found, owner)

    def _cursor(self, body: Document, name: str, rows: list[Document], owner: Any) -> Document:
        database = body.get("$db", "test")
        place = f"{database}.{name}"
        first, cursor = self._split_first_batch(rows, self._first_batch_size(body), place, database, owner=owner)
        return {"ok": 1, "cursor": {"id": cursor, "ns": place, "firstBatch": first}}

    def _modify_one(self, body: Document, _owner: Any) -> Document:
        """Change or remove the first document that is found, and give it as it was, or with `new` as it is."""
        database, name = body.get("$db", "test"), body["findAndModify"]
        rows = sort(self._read(database, name, body.get("query") or {}), body.get("sort") or {})
        if not rows and body.get("upsert"):
            raise Unsupported("findAndModify that inserts")
        if not rows:
            return {"ok": 1, "value": None, "lastErrorObject": {"n": 0, "updatedExisting": False}}
        before = after = rows[0]
        place = {"_id": before["_id"]}
        if body.get("remove"):
            self._ask_package({"delete": name, "deletes": [{"q": place, "limit": 1}], "$db": database})
            outcome = {"n": 1}
        else:
            after = _modified(before, body["update"])
            self._ask_package({"update": name, "updates": [{"q": place, "u": after}], "$db": database})
            outcome = {"n": 1, "updatedExisting": True}
        shown, fields = after if body.get("new") else before, body.get("fields")
        return {"ok": 1, "value": project([shown], fields)[0] if fields else shown, "lastErrorObject": outcome}

    def _ask_package(self, command: Document) -> Document:
        """The package's own answer to a command; raises Unsupported with its words where it refuses."""
        _, reply = super().handle_command({"request_id": 0, "sections": [("body", command)]})
        if not reply.get("ok") or reply.get("writeErrors"):
            raise Unsupported(str(reply.get("writeErrors") or reply.get("errmsg")))
        return reply

    def _read(self, database: str, collection: str, query: Document) -> list[Document]:
        """Documents of a collection, also of GridFS's list of files, with the ids that drivers know."""
        if _is_file_store(collection):
            found = self._ask_package({"find": collection, "filter": query, "$db": database, "batchSize": 2**30})
            return [convert_neo_to_bson_objectids(row) for row in found["cursor"]["firstBatch"]]
        connection = self.get_database(database)
        if collection not in connection.list_collection_names():
            return []
        rows = connection[collection].find(self._convert_objectids(query))
        return [convert_neo_to_bson_objectids(row) for row in rows]


def _modified(row: Document, update: Document) -> Document:
    """The document after an update that sets or unsets fields, or replaces it."""
    if not any(key.startswith("$") for key in update):
        return {"_id": row["_id"], **update}
    if unknown := update.keys() - {"$set", "$unset", "$setOnInsert"}:
        raise Unsupported(f"update operator {min(unknown)}")
    changed = dict(row)
    for path, value in update.get("$set", {}).items():
        set_at(changed, path, value)
    for path in update.get("$unset", {}):
        set_at(changed, path, MISSING)
    return changed


def _holders(body: Document, msg: Document, key: str) -> list[Document]:
    """The sections of the message that hold its list of updates or deletes."""
    payloads = [section for kind, section in msg["sections"] if kind == "payload" and key in section]
    return [holder for holder in (body, *payloads) if key in holder]


def _one_file_each(delete: Document) -> list[Document]:
    """A delete of several files of GridFS as one for each: the package knows no $or and no $in there."""
    query = delete["q"]
    if query.keys() == {"$or"}:
        return [part for choice in query["$or"] for part in _one_file_each({**delete, "q": choice})]
    ((key, wanted),) = query.items() if len(query) == 1 else (("", None),)
    if key not in ("_id", "files_id", "filename"):
        return [delete]  # as pymongo's GridFS asks: for the package
    choices = wanted.get("$in", [wanted]) if isinstance(wanted, dict) else [wanted]
    return [{**delete, "q": {key: choice}} for choice in choices]


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
