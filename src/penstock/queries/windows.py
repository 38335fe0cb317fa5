"""Decides if a live query is possible: row by row, or in time windows that close.

The decision uses DuckDB's syntax tree and plan of the query. A query of an unknown form is refused, since a
query that is followed wrongly gives wrong answers without end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROW_BY_ROW = {"PROJECTION", "FILTER", "UNNEST", "PYTHON_ARROW_SCAN", "DUMMY_SCAN", "EMPTY_RESULT"}
"""Operators in DuckDB's plan that process each row independently of other rows."""

GROUPING = {"HASH_GROUP_BY", "PERFECT_HASH_GROUP_BY", "SIMPLE_AGGREGATE"}

TO_SPARK = (
    "state without a bound would be needed: Spark's Structured Streaming has it, see docs/how-to/spark.md; "
    "here a query that is followed may filter, compute columns, and group by a window of time, as "
    "time_bucket(interval '1 minute', timestamp)"
)

MONOTONE = {"time_bucket": 1, "date_trunc": 1}
"""A dict from SQL functions that map times monotonically to windows, to the index of their time argument."""


def window_of(connection: DuckDBPyConnection, query: str) -> str | None:
    """Return the window expression that a query groups by, or None for a query without grouping.

    Raises:
        ConfigError: the query cannot be followed; the message has the reason, and queries that can.
    """
    operators = list(_operators(_plan(connection, query)))
    names = {name for name, _ in operators}
    grouped = [name for name in names if name in GROUPING]
    extra = names - ROW_BY_ROW - GROUPING - {"HASH_JOIN"}
    if extra:
        raise ConfigError(f"this query cannot be followed ({', '.join(sorted(extra)).lower()}): {TO_SPARK}")
    joins = [info for name, info in operators if name == "HASH_JOIN"]
    if any(info.get("Join Type") != "INNER" for info in joins):
        raise ConfigError(f"of joins, inner ones with tables of the caller can be followed: {TO_SPARK}")
    if not grouped:
        return None
    window = _window(connection, query)
    if window is None:
        raise ConfigError(f"this query groups rows, and by no window of time: {TO_SPARK}")
    if joins:
        raise ConfigError(f"a join cannot be grouped while it is followed: {TO_SPARK}")
    if sum(name == "PYTHON_ARROW_SCAN" for name, _ in operators) > 1:
        raise ConfigError(f"this query reads the topic more than once: {TO_SPARK}")
    return window


def _plan(connection: DuckDBPyConnection, query: str) -> dict[str, Any]:
    found = connection.execute(f"explain (format json) {query}").fetchall()
    (node,) = json.loads(found[0][1])
    return dict(node)


def _operators(node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield node["name"], node.get("extra_info", {})
    for child in node["children"]:
        yield from _operators(child)


def _window(connection: DuckDBPyConnection, query: str) -> str | None:
    """Return the window expression in the GROUP BY of a query's outermost SELECT, or None."""
    tree = _tree(connection, query)
    select = tree["statements"][0]["node"]
    if select.get("type") != "SELECT_NODE" or len(select["group_sets"]) > 1:
        return None
    if select["from_table"].get("type") != "BASE_TABLE" or select["cte_map"]["map"]:
        return None  # times of another query may be others than those of records
    for expression in _groups(select):
        if _is_window(expression):
            return _text(connection, expression)
    return None


def _groups(select: dict[str, Any]) -> list[dict[str, Any]]:
    items: Sequence[dict[str, Any]] = select["select_list"]
    if select["aggregate_handling"] == "FORCE_AGGREGATES":  # group by all
        return list(items)
    found = []
    for expression in select["group_expressions"]:
        names = expression.get("column_names", [])
        if expression["class"] == "CONSTANT":
            expression = _numbered(items, expression)
        elif len(names) == 1 and names[0].lower() != "timestamp":
            alias = names[0].lower()
            expression = next((one for one in items if one["alias"].lower() == alias), expression)
        found.append(expression)
    return found


def _numbered(items: Sequence[dict[str, Any]], constant: dict[str, Any]) -> dict[str, Any]:
    text = constant.get("literal", {}).get("text") or constant.get("value", {}).get("value")
    try:
        return items[int(text) - 1]
    except (TypeError, ValueError, IndexError):
        return constant


def _is_window(expression: dict[str, Any]) -> bool:
    if expression["class"] != "FUNCTION" or expression["function_name"].lower() not in MONOTONE:
        return False
    arguments = [one.get("expression", one) for one in _arguments(expression)]
    if len(arguments) != 2:
        return False
    width, moment = arguments
    is_time = moment["class"] == "COLUMN_REF" and moment["column_names"][-1].lower() == "timestamp"
    return bool(is_time and _is_constant(width))


def _arguments(expression: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = expression.get("arguments") or expression.get("children") or []
    return found


def _is_constant(node: Any) -> bool:
    if isinstance(node, dict):
        return node.get("class") not in ("COLUMN_REF", "SUBQUERY") and all(map(_is_constant, node.values()))
    return all(map(_is_constant, node)) if isinstance(node, list) else True


def _text(connection: DuckDBPyConnection, expression: dict[str, Any]) -> str:
    """Return an expression as SQL text, without its alias and table name."""
    for argument in _arguments(expression):
        inner = argument.get("expression", argument)
        if inner["class"] == "COLUMN_REF":
            inner["column_names"] = inner["column_names"][-1:]
    tree = _tree(connection, "select 1")
    tree["statements"][0]["node"]["select_list"] = [{**expression, "alias": ""}]
    found = connection.execute("select json_deserialize_sql(?::json)", [json.dumps(tree)]).fetchall()
    return str(found[0][0])[len("SELECT ") :]


def _tree(connection: DuckDBPyConnection, query: str) -> dict[str, Any]:
    found = connection.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
    tree: dict[str, Any] = json.loads(found[0][0])
    if tree.get("error") or len(tree["statements"]) != 1:
        raise ConfigError("only one select can be followed")
    return tree
