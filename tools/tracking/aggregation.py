"""Mongo's aggregation over lists of documents: the stages and operators that Omniboard uses, with Mongo's semantics.

`aggregate` runs a pipeline, `matches` tests a query, `evaluate` computes an expression. An operator that is not here
raises Unsupported rather than giving a wrong answer.
"""

import functools
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from bson.binary import Binary

Document = dict[str, Any]
Fetch = Callable[[str, Document], list[Document]]  # collection, query -> documents


class Unsupported(ValueError):
    """A stage or operator that this evaluator does not know."""


class _Missing:
    """The value of a field that is not there."""

    def __bool__(self) -> bool:
        return False


MISSING = _Missing()

# Order of types in Mongo's comparisons: missing, null, number, string, object, array, binary, id, boolean, date.
_RANKS: tuple[tuple[int, tuple[type, ...]], ...] = (
    (0, (_Missing,)),
    (1, (type(None),)),
    (8, (bool,)),  # before numbers: a Python bool is an int
    (2, (int, float)),
    (3, (str,)),
    (4, (dict,)),
    (5, (list, tuple)),
    (6, (bytes, Binary)),
    (7, (ObjectId,)),
    (9, (datetime,)),
)


def compare(left: Any, right: Any) -> int:
    """Give -1, 0 or 1 by Mongo's order over all types."""
    ranks = _rank(left), _rank(right)
    if ranks[0] != ranks[1]:
        return -1 if ranks[0] < ranks[1] else 1
    if isinstance(left, dict):
        left, right = list(left.items()), list(right.items())
    if isinstance(left, list | tuple):
        for one, other in zip(left, right, strict=False):
            if order := compare(one, other):
                return order
        left, right = len(left), len(right)
    if ranks[0] <= 1 or left == right:
        return 0
    return -1 if left < right else 1


def _rank(value: Any) -> int:
    for rank, types in _RANKS:
        if isinstance(value, types):
            return rank
    raise Unsupported(f"values of type {type(value).__name__}")


# Paths


def values_at(document: Any, path: str) -> list[Any]:
    """All values at a dotted path, looking into arrays as queries do; an array gives itself and its elements."""
    found = [document]
    for key in path.split("."):
        found = [value for holder in found for value in _step(holder, key)]
    return [item for value in found for item in ([value, *value] if isinstance(value, list) else [value])]


def _step(holder: Any, key: str) -> list[Any]:
    if isinstance(holder, list):
        indexed = [holder[int(key)]] if key.isdigit() and int(key) < len(holder) else []
        return indexed + [value for item in holder if isinstance(item, dict) for value in _step(item, key)]
    return [holder[key]] if isinstance(holder, dict) and key in holder else []


def value_at(document: Any, path: str) -> Any:
    """The value of a field path in an expression; over an array the list of its elements' values."""
    value = document
    for number, key in enumerate(keys := path.split(".")):
        if isinstance(value, list):
            rest = ".".join(keys[number:])
            return [found for item in value if (found := value_at(item, rest)) is not MISSING]
        if not isinstance(value, dict) or key not in value:
            return MISSING
        value = value[key]
    return value


def set_at(document: Document, path: str, value: Any) -> None:
    """Set the field at a dotted path; a missing value removes it."""
    *parents, last = path.split(".")
    for key in parents:
        if not isinstance(document.get(key), dict):
            document[key] = {}
        document[key] = dict(document[key])  # the original stays as it is
        document = document[key]
    if value is MISSING:
        document.pop(last, None)
    else:
        document[last] = value


# Queries


def matches(document: Document, query: Document) -> bool:
    """Tell whether the document satisfies the query."""
    return all(_condition(document, key, wanted) for key, wanted in query.items())


def _condition(document: Document, key: str, wanted: Any) -> bool:
    if key == "$and":
        return all(matches(document, part) for part in wanted)
    if key == "$or":
        return any(matches(document, part) for part in wanted)
    if key == "$nor":
        return not any(matches(document, part) for part in wanted)
    if key == "$expr":
        return _truth(evaluate(wanted, document, {}))
    if key.startswith("$"):
        raise Unsupported(f"query operator {key}")
    values = values_at(document, key)
    if not isinstance(wanted, dict) or not any(name.startswith("$") for name in wanted):
        return _equals_any(values, wanted)
    operators = {name: operand for name, operand in wanted.items() if name != "$options"}
    if isinstance(operators.get("$regex"), str):
        operators["$regex"] = re.compile(operators["$regex"], re.IGNORECASE if "i" in wanted.get("$options", "") else 0)
    return all(_test(values, name, operand) for name, operand in operators.items())


def _test(values: list[Any], operator: str, operand: Any) -> bool:
    if operator not in _TESTS:
        raise Unsupported(f"query operator {operator}")
    return _TESTS[operator](values, operand)


def _ordered(holds: Callable[[int], bool]) -> Callable[[list[Any], Any], bool]:
    """A test by order, which in queries holds only between values of one type."""
    return lambda values, operand: any(
        holds(compare(value, operand)) for value in values if _rank(value) == _rank(operand)
    )


def _equals_any(values: list[Any], wanted: Any) -> bool:
    if wanted is None and not values:
        return True  # a query for null also finds documents without the field
    return any(compare(value, wanted) == 0 for value in values)


def _equals_one_of(values: list[Any], operand: list[Any]) -> bool:
    return any(_equals_any(values, item) for item in operand)


_TESTS: dict[str, Callable[[list[Any], Any], bool]] = {
    "$eq": _equals_any,
    "$ne": lambda values, operand: not _equals_any(values, operand),
    "$lt": _ordered(lambda order: order < 0),
    "$lte": _ordered(lambda order: order <= 0),
    "$gt": _ordered(lambda order: order > 0),
    "$gte": _ordered(lambda order: order >= 0),
    "$in": _equals_one_of,
    "$nin": lambda values, operand: not _equals_one_of(values, operand),
    "$exists": lambda values, operand: bool(values) == bool(operand),
    "$regex": lambda values, pattern: any(isinstance(value, str) and pattern.search(value) for value in values),
    "$not": lambda values, operand: not all(_test(values, name, wanted) for name, wanted in operand.items()),
}


# Expressions


def evaluate(expression: Any, document: Any, variables: Document) -> Any:
    """Compute an expression for one document."""
    if isinstance(expression, str) and expression.startswith("$$"):
        name, _, path = expression[2:].partition(".")
        value = document if name in ("ROOT", "CURRENT") else variables[name]
        return value_at(value, path) if path else value
    if isinstance(expression, str) and expression.startswith("$"):
        return value_at(document, expression[1:])
    if isinstance(expression, list):
        return [_null(evaluate(item, document, variables)) for item in expression]
    if not isinstance(expression, dict):
        return expression
    if len(expression) == 1 and (operator := next(iter(expression))).startswith("$"):
        return _operate(operator, expression[operator], document, variables)
    fields = {key: evaluate(item, document, variables) for key, item in expression.items()}
    return {key: value for key, value in fields.items() if value is not MISSING}


def _operate(operator: str, operand: Any, document: Any, variables: Document) -> Any:
    if operator in _LAZY:
        return _LAZY[operator](operand, document, variables)
    if operator not in _OPERATORS:
        raise Unsupported(f"expression operator {operator}")
    parts = operand if isinstance(operand, list) else [operand]
    return _OPERATORS[operator](*(evaluate(part, document, variables) for part in parts))


def _cond(operand: Any, document: Any, variables: Document) -> Any:
    test, then, otherwise = operand if isinstance(operand, list) else map(operand.get, ("if", "then", "else"))
    holds = _truth(evaluate(test, document, variables))
    return evaluate(then if holds else otherwise, document, variables)


def _if_null(operand: list[Any], document: Any, variables: Document) -> Any:
    *parts, fallback = operand
    found = (evaluate(part, document, variables) for part in parts)
    return next((value for value in found if _null(value) is not None), evaluate(fallback, document, variables))


def _let(operand: Document, document: Any, variables: Document) -> Any:
    inner = {name: evaluate(part, document, variables) for name, part in operand["vars"].items()}
    return evaluate(operand["in"], document, {**variables, **inner})


def _reduce(operand: Document, document: Any, variables: Document) -> Any:
    items = evaluate(operand["input"], document, variables)
    if not isinstance(items, list):
        return None
    result = evaluate(operand["initialValue"], document, variables)
    for item in items:
        result = evaluate(operand["in"], document, {**variables, "value": result, "this": item})
    return result


# These bind variables, or must not evaluate all of their operand.
_LAZY: dict[str, Callable[[Any, Any, Document], Any]] = {
    "$literal": lambda operand, *_: operand,
    "$cond": _cond,
    "$ifNull": _if_null,
    "$let": _let,
    "$reduce": _reduce,
    "$and": lambda parts, *context: all(_truth(evaluate(part, *context)) for part in parts),
    "$or": lambda parts, *context: any(_truth(evaluate(part, *context)) for part in parts),
}


def _truth(value: Any) -> bool:
    return value is not MISSING and value is not None and value is not False and value != 0


def _null(value: Any) -> Any:
    return None if value is MISSING else value


def _without_null(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Make an operator give null when any operand is null or missing."""
    return lambda *parts: None if any(_null(part) is None for part in parts) else operation(*parts)


def _subtract(left: Any, right: Any) -> Any:
    if isinstance(left, datetime) and isinstance(right, datetime):
        return round((left - right) / timedelta(milliseconds=1))
    return left - timedelta(milliseconds=right) if isinstance(left, datetime) else left - right


def _add(*parts: Any) -> Any:
    dates = [part for part in parts if isinstance(part, datetime)]
    total = sum(part for part in parts if not isinstance(part, datetime))
    return dates[0] + timedelta(milliseconds=total) if dates else total


def _element(items: list[Any], index: int) -> Any:
    return items[index] if -len(items) <= index < len(items) else MISSING


def _slice(items: list[Any], start: int, count: int | None = None) -> list[Any]:
    if count is None:
        return items[start:] if start < 0 else items[:start]
    begin = start if start >= 0 else max(len(items) + start, 0)
    return items[begin : begin + count]


def _array_to_object(pairs: list[Any]) -> Document:
    return {pair["k"]: pair["v"] for pair in pairs if "v" in pair}


def _numbers(*parts: Any) -> list[Any]:
    """The items of one array, or all operands, that are numbers."""
    items = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else parts
    return [item for item in items if isinstance(item, int | float) and not isinstance(item, bool)]


def _extreme(pick: Callable[..., Any], *parts: Any) -> Any:
    items = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else parts
    present = [item for item in items if _null(item) is not None]
    return pick(present, key=functools.cmp_to_key(compare)) if present else None


def _average(*parts: Any) -> float | None:
    numbers = _numbers(*parts)
    return sum(numbers) / len(numbers) if numbers else None


_OPERATORS: dict[str, Callable[..., Any]] = {
    "$not": lambda part: not _truth(part),
    "$eq": lambda left, right: compare(left, right) == 0,
    "$ne": lambda left, right: compare(left, right) != 0,
    "$gt": lambda left, right: compare(left, right) > 0,
    "$gte": lambda left, right: compare(left, right) >= 0,
    "$lt": lambda left, right: compare(left, right) < 0,
    "$lte": lambda left, right: compare(left, right) <= 0,
    "$in": lambda value, items: any(compare(value, item) == 0 for item in items),
    "$isArray": lambda value: isinstance(value, list),
    "$size": len,
    "$add": _without_null(_add),
    "$subtract": _without_null(_subtract),
    "$concat": _without_null(lambda *parts: "".join(parts)),
    "$split": _without_null(lambda text, mark: text.split(mark)),
    "$toObjectId": _without_null(ObjectId),
    "$toString": _without_null(str),
    "$arrayElemAt": _without_null(_element),
    "$slice": _without_null(_slice),
    "$arrayToObject": _without_null(_array_to_object),
    "$min": functools.partial(_extreme, min),
    "$max": functools.partial(_extreme, max),
    "$sum": lambda *parts: sum(_numbers(*parts)),
    "$avg": _average,
}


# Stages


def aggregate(documents: Iterable[Document], pipeline: list[Document], fetch: Fetch) -> list[Document]:
    """Run the documents through the pipeline; `fetch` reads other collections for $lookup."""
    return _run(list(documents), pipeline, fetch, {})


def _run(rows: list[Document], pipeline: list[Document], fetch: Fetch, variables: Document) -> list[Document]:
    for stage in pipeline:
        ((name, operand),) = stage.items()
        if name == "$lookup":
            rows = [{**row, operand["as"]: _lookup(row, operand, fetch, variables)} for row in rows]
        elif name == "$match" and "$expr" in operand:
            others = {key: wanted for key, wanted in operand.items() if key != "$expr"}
            kept = (row for row in rows if _truth(evaluate(operand["$expr"], row, variables)))
            rows = [row for row in kept if matches(row, others)]
        elif name in _STAGES:
            rows = _STAGES[name](rows, operand)
        else:
            raise Unsupported(f"stage {name}")
    return rows


def _lookup(row: Document, operand: Document, fetch: Fetch, variables: Document) -> list[Document]:
    if "localField" in operand:
        wanted = value_at(row, operand["localField"])
        items = wanted if isinstance(wanted, list) else [_null(wanted)]
        return fetch(operand["from"], {operand["foreignField"]: {"$in": items}})
    inner = {name: evaluate(part, row, variables) for name, part in operand.get("let", {}).items()}
    sought = [value for stage in operand["pipeline"][:1] for value in _sought_ids(stage.get("$match", {}), inner)]
    query = {"_id": _null(sought[0])} if sought else {}  # one document by its id, instead of the whole collection
    return _run(fetch(operand["from"], query), operand["pipeline"], fetch, {**variables, **inner})


def _sought_ids(match: Document, variables: Document) -> list[Any]:
    """The value that the first stage's condition demands of _id, if it does."""
    condition = match.get("$expr", {})
    parts = condition.get("$and", [condition]) if isinstance(condition, dict) else []
    pairs = [part["$eq"] for part in parts if isinstance(part, dict) and isinstance(part.get("$eq"), list)]
    return [evaluate(right, {}, variables) for left, right in pairs if left == "$_id" and str(right).startswith("$$")]


def _match(rows: list[Document], query: Document) -> list[Document]:
    return [row for row in rows if matches(row, query)]


def project(rows: list[Document], fields: Document) -> list[Document]:
    """Keep, leave out or compute fields."""
    if fields and not any(wanted for key, wanted in fields.items() if key != "_id"):
        left_out = [key.split(".") for key, wanted in fields.items() if not wanted]
        return [_without(row, left_out) for row in rows]
    return [_projected(row, {"_id": 1, **fields}) for row in rows]


def _projected(row: Document, fields: Document) -> Document:
    kept: Document = _only(row, [key.split(".") for key, wanted in fields.items() if wanted is True or wanted == 1])
    for key, wanted in fields.items():
        if isinstance(wanted, str | dict | list):
            set_at(kept, key, evaluate(wanted, row, {}))
    return kept


def _only(value: Any, paths: list[list[str]]) -> Any:
    """The parts of a document at the paths, also inside arrays."""
    if isinstance(value, list):
        return [_only(item, paths) for item in value if isinstance(item, dict | list)]
    kept = {}
    for key, item in value.items():
        deeper = [path[1:] for path in paths if path[0] == key]
        if [] in deeper:
            kept[key] = item
        elif deeper and isinstance(item, dict | list):
            kept[key] = _only(item, deeper)
    return kept


def _without(value: Any, paths: list[list[str]]) -> Any:
    """A document without the parts at the paths, also inside arrays."""
    if isinstance(value, list):
        return [_without(item, paths) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, item in value.items():
        deeper = [path[1:] for path in paths if path[0] == key]
        if [] not in deeper:
            kept[key] = _without(item, deeper) if deeper else item
    return kept


def _add_fields(rows: list[Document], fields: Document) -> list[Document]:
    wider = []
    for row in rows:
        copy = dict(row)
        for key, expression in fields.items():
            set_at(copy, key, evaluate(expression, row, {}))
        wider.append(copy)
    return wider


def sort(rows: list[Document], keys: Document) -> list[Document]:
    """Order by the keys, the first one counting most; missing sorts as null."""
    for key, direction in reversed(keys.items()):
        order = functools.cmp_to_key(compare)
        rows = sorted(rows, key=lambda row, key=key: order(_null(value_at(row, key))), reverse=direction < 0)  # type: ignore[misc]
    return rows


def _unwind(rows: list[Document], operand: str | Document) -> list[Document]:
    options = {"path": operand} if isinstance(operand, str) else operand
    path, keep_empty = options["path"][1:], options.get("preserveNullAndEmptyArrays", False)
    unwound = []
    for row in rows:
        value = value_at(row, path)
        items = value if isinstance(value, list) else [value] if _null(value) is not None else []
        for item in items:
            copy = dict(row)
            set_at(copy, path, item)
            unwound.append(copy)
        if not items and keep_empty:
            unwound.append(_without(row, [path.split(".")]) if value == [] else row)
    return unwound


def _group(rows: list[Document], operand: Document) -> list[Document]:
    groups: list[tuple[Any, list[Document]]] = []
    places: dict[str, int] = {}
    for row in rows:
        key = _null(evaluate(operand["_id"], row, {}))
        place = places.setdefault(repr(key), len(groups))
        if place == len(groups):
            groups.append((key, []))
        groups[place][1].append(row)
    fields = {name: next(iter(rule.items())) for name, rule in operand.items() if name != "_id"}
    return [
        {"_id": key, **{name: _accumulate(rule, part, members) for name, (rule, part) in fields.items()}}
        for key, members in groups
    ]


def _accumulate(rule: str, expression: Any, rows: list[Document]) -> Any:
    values = [evaluate(expression, row, {}) for row in rows]
    match rule:
        case "$push":
            return [value for value in values if value is not MISSING]
        case "$first":
            return _null(values[0])
        case "$last":
            return _null(values[-1])
        case "$sum" | "$avg" | "$min" | "$max":
            return _OPERATORS[rule](values)
    raise Unsupported(f"accumulator {rule}")


def _replace_root(rows: list[Document], operand: Document) -> list[Document]:
    return [evaluate(operand["newRoot"], row, {}) for row in rows]


_STAGES: dict[str, Callable[[list[Document], Any], list[Document]]] = {
    "$match": _match,
    "$project": project,
    "$addFields": _add_fields,
    "$set": _add_fields,
    "$sort": sort,
    "$skip": lambda rows, count: rows[count:],
    "$limit": lambda rows, count: rows[:count],
    "$unwind": _unwind,
    "$group": _group,
    "$replaceRoot": _replace_root,
    "$collStats": lambda rows, _: [{"count": len(rows)}],  # how drivers estimate the number of documents
    "$count": lambda rows, name: [{name: len(rows)}] if rows else [],
}
