"""The embedded server's evaluation of queries and pipelines, against answers worked out by hand from Mongo's rules."""

from datetime import datetime

import pytest
from bson import ObjectId

from tools.tracking.aggregation import MISSING, Unsupported, aggregate, compare, evaluate, matches

NOON, ONE = datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 13)
IDS = [ObjectId(f"{number:024d}") for number in range(4)]


def run(documents, *pipeline, others=None):
    def fetch(collection, query):
        return [document for document in (others or {}).get(collection, []) if matches(document, query)]

    return aggregate(documents, list(pipeline), fetch)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, True),
        ({"a": 1}, True),
        ({"a": 2}, False),
        ({"b.c": "x"}, True),
        ({"list": 2}, True),  # any element
        ({"list": [1, 2, 3]}, True),  # or the whole
        ({"items.k": {"$in": [8, 9]}}, True),
        ({"items.0.k": 9}, False),
        ({"missing": None}, True),
        ({"missing": {"$ne": 3}}, True),
        ({"a": {"$gt": 0, "$lte": 1}}, True),
        ({"b.c": {"$gt": 0}}, False),  # order holds within one type only
        ({"date": {"$lt": ONE}}, True),
        ({"a": {"$exists": False}}, False),
        ({"b.c": {"$regex": "^X", "$options": "i"}}, True),
        ({"b.c": {"$regex": "^X"}}, False),
        ({"$or": [{"a": 5}, {"b.c": {"$nin": ["y"]}}]}, True),
        ({"$and": [{"a": 1}, {"$nor": [{"a": 1}]}]}, False),
        ({"a": {"$not": {"$gt": 5}}}, True),
        ({"$expr": {"$eq": ["$a", 1]}}, True),
        ({"a": True}, False),  # 1 is not true
    ],
)
def test_queries(query, found):
    document = {"a": 1, "b": {"c": "x"}, "list": [1, 2, 3], "items": [{"k": 8}, {"k": 9}], "date": NOON}
    assert matches(document, query) is found


def test_types_are_ordered_as_in_mongo():
    ascending = [MISSING, None, 3, "a", {"x": 1}, [1], b"0", IDS[0], False, NOON]
    for smaller, larger in zip(ascending, ascending[1:], strict=False):
        assert compare(smaller, larger) == -1 and compare(larger, smaller) == 1
    assert compare(2, 2.0) == 0 and compare([1, 2], [1, 3]) == -1 and compare({"a": 1}, {"a": 1}) == 0


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ({"$subtract": ["$one", "$noon"]}, 3_600_000),
        ({"$subtract": ["$one", 3_600_000]}, NOON),
        ({"$add": ["$noon", 3_600_000]}, ONE),
        ({"$subtract": ["$missing", 1]}, None),
        ({"$ifNull": ["$missing", "$null", "$n"]}, 4),
        ({"$cond": [{"$gt": ["$n", 3]}, "big", "small"]}, "big"),
        ({"$cond": {"if": "$missing", "then": 1, "else": "$b.c"}}, "x"),
        ({"$let": {"vars": {"m": {"$add": ["$n", 1]}}, "in": {"$add": ["$$m", "$n"]}}}, 9),
        ({"$reduce": {"input": "$list", "initialValue": 1, "in": {"$add": ["$$value", "$$this"]}}}, 7),
        ({"$concat": [{"$arrayElemAt": [{"$split": ["a.b", "."]}, 1]}, "_", "$b.c"]}, "b_x"),
        ({"$arrayElemAt": ["$list", -1]}, 3),
        ({"$arrayElemAt": ["$list", 7]}, MISSING),
        ({"$slice": ["$list", -2]}, [2, 3]),
        ({"$slice": ["$list", 1, 1]}, [2]),
        ({"$avg": {"$slice": ["$list", -2]}}, 2.5),
        ({"$max": "$list"}, 3),
        ({"$min": "$missing"}, None),
        ({"$and": [{"$isArray": "$n"}, {"$size": "$n"}]}, False),  # the size of a number is not asked for
        ({"$size": "$list"}, 3),
        ({"$in": ["$n", [1, 4]]}, True),
        ({"$toObjectId": {"$toString": "$id"}}, IDS[1]),
        ({"$arrayToObject": [[{"k": "a", "v": 1}, {"k": "b", "v": 2}]]}, {"a": 1, "b": 2}),
        ("$$ROOT.n", 4),
        ("$items.k", [8, 9]),
        ({"x": "$n", "y": "$missing"}, {"x": 4}),
        ({"$literal": "$n"}, "$n"),
    ],
)
def test_expressions(expression, value):
    document = {"noon": NOON, "one": ONE, "null": None, "n": 4, "b": {"c": "x"}, "list": [1, 2, 3], "id": IDS[1]}
    assert evaluate(expression, {**document, "items": [{"k": 8}, {"k": 9}]}, {}) == value


def test_projections_keep_leave_out_and_compute():
    document = {"_id": 1, "a": {"b": 1, "c": 2}, "list": [{"x": 1, "y": 2}], "z": 0}
    assert run([document], {"$project": {"a.b": 1, "list.x": 1}}) == [{"_id": 1, "a": {"b": 1}, "list": [{"x": 1}]}]
    assert run([document], {"$project": {"a.b": 0, "list": 0}}) == [{"_id": 1, "a": {"c": 2}, "z": 0}]
    assert run([document], {"$project": {"_id": 0, "n": "$a.c"}}) == [{"n": 2}]


def test_sorting_is_stable_and_takes_missing_for_null():
    rows = [{"_id": 1, "a": 2}, {"_id": 2}, {"_id": 3, "a": 2}, {"_id": 4, "a": 1}]
    assert [row["_id"] for row in run(rows, {"$sort": {"a": -1, "_id": 1}})] == [1, 3, 4, 2]
    assert [row["_id"] for row in run(rows, {"$sort": {"a": 1}}, {"$skip": 1}, {"$limit": 2})] == [4, 1]


def test_unwinding_and_grouping():
    rows = [{"_id": 1, "l": [1, 2]}, {"_id": 2, "l": []}, {"_id": 3}]
    assert run(rows, {"$unwind": "$l"}) == [{"_id": 1, "l": 1}, {"_id": 1, "l": 2}]
    kept = run(rows, {"$unwind": {"path": "$l", "preserveNullAndEmptyArrays": True}})
    assert kept[2:] == [{"_id": 2}, {"_id": 3}]
    groups = run(kept, {"$group": {"_id": "$_id", "n": {"$sum": 1}, "all": {"$push": "$l"}, "first": {"$first": "$l"}}})
    assert groups[0] == {"_id": 1, "n": 2, "all": [1, 2], "first": 1}
    assert groups[1] == {"_id": 2, "n": 1, "all": [], "first": None}
    assert run(rows, {"$count": "n"}) == [{"n": 3}] and run([], {"$count": "n"}) == []


def test_lookups_by_field_and_by_pipeline():
    metrics = [{"_id": IDS[0], "name": "loss", "values": [3, 2]}, {"_id": IDS[1], "name": "hm", "values": [5]}]
    rows = [{"_id": 1, "m": IDS[0], "text": str(IDS[1])}, {"_id": 2}]
    by_field = {"$lookup": {"from": "metrics", "localField": "m", "foreignField": "_id", "as": "found"}}
    assert [row["found"] for row in run(rows, by_field, others={"metrics": metrics})] == [metrics[:1], []]
    match = {"$expr": {"$and": [{"$eq": ["$_id", "$$wanted"]}, {"$in": ["$name", ["hm"]]}]}}
    by_pipeline = {
        "$lookup": {
            "from": "metrics",
            "let": {"wanted": {"$toObjectId": "$text"}},
            "pipeline": [{"$match": match}],
            "as": "found",
        }
    }
    assert [row["found"] for row in run(rows, by_pipeline, others={"metrics": metrics})] == [metrics[1:], []]


def test_rows_are_not_changed_by_stages():
    row = {"_id": 1, "a": {"b": 1}}
    assert run([row], {"$addFields": {"a.c": 2, "a.b": "$missing"}}) == [{"_id": 1, "a": {"c": 2}}]
    assert row == {"_id": 1, "a": {"b": 1}}


@pytest.mark.parametrize(
    "pipeline",
    [{"$facet": {}}, {"$match": {"a": {"$near": 1}}}, {"$addFields": {"a": {"$sin": 1}}}, {"$match": {"$where": ""}}],
)
def test_what_is_not_known_is_refused(pipeline):
    with pytest.raises(Unsupported, match=r"\$"):
        run([{"a": 1}], pipeline)
