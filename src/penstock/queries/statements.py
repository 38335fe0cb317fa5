"""Analyse the text of a statement before DuckDB runs it: the target of INSERT, the query of EXPLAIN."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_SPACE = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$]*)'
_INSERT = re.compile(
    rf"{_SPACE}insert{_SPACE}\binto\b{_SPACE}(?P<name>{_NAME})"
    rf"{_SPACE}(?:\((?P<columns>{_SPACE}{_NAME}{_SPACE}(?:,{_SPACE}{_NAME}{_SPACE})*)\))?"
    rf"(?P<rest>(?:\s|\(|--|/\*).*)",
    re.IGNORECASE | re.DOTALL,
)
_WORDS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$(\w*)\$.*?\$\1\$ | [()] | \w+""",
    re.DOTALL | re.VERBOSE,
)
"""A pattern for one token of a statement: a string, quoted name, comment, parenthesis or word."""
_EXPLAIN = re.compile(rf"{_SPACE}explain\b{_SPACE}(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SHOW = re.compile(rf"{_SPACE}show{_SPACE}tables{_SPACE};?{_SPACE}", re.IGNORECASE | re.DOTALL)
_ANALYZE = re.compile(r"(analyze|\()", re.IGNORECASE)
_MISSING = re.compile(r'Table with name "?(?P<name>.*?)"? does not exist', re.DOTALL)
_OFFSET = re.compile(r'syntax error at or near "(?P<word>[^"]*)"')


class Insert(NamedTuple):
    """The parts of an ``insert into``: table or topic, columns if named, and the query of the rows."""

    target: str
    columns: tuple[str, ...]
    rows: str


def insert_of(statement: str) -> Insert | None:
    """Return the parts of an INSERT statement, or None for another statement.

    A ``with`` before the INSERT becomes a part of the query for the rows.
    """
    begin = _behind_with(statement)
    found = _INSERT.match(statement, begin)
    if found is None:
        return None
    columns = found["columns"]
    names = () if columns is None else tuple(unquoted(name) for name in re.findall(_NAME, columns))
    rows = found["rest"].strip().rstrip(";")
    if begin:
        rows = f"{statement[:begin]} from ({rows}\n)"
    return Insert(unquoted(found["name"]), names, rows)


def _behind_with(statement: str) -> int:
    """Return the position of INSERT after a WITH clause at the beginning; 0 for other statements."""
    depth = 0
    is_first = True
    for found in _WORDS.finditer(statement):
        word = found[0].lower()
        if word.startswith(("--", "/*")):
            continue
        if is_first and word != "with":
            return 0
        is_first = False
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "insert" and not depth:
            return found.start()
    return 0


def explained(statement: str) -> str | None:
    """Return the query of a plain EXPLAIN; None for other statements and for EXPLAIN ANALYZE."""
    found = _EXPLAIN.match(statement)
    if found is None or _ANALYZE.match(found["rest"]):
        return None
    return found["rest"]


def is_show_tables(statement: str) -> bool:
    """Return True if a statement is SHOW TABLES."""
    return _SHOW.fullmatch(statement) is not None


def names_only(tree: object, columns: frozenset[str]) -> bool:
    """Return True if a query uses no columns other than `columns`, and neither a star nor a natural join.

    `tree` is the query in DuckDB's JSON form.

    Return False if the form is unknown.
    """
    if not isinstance(tree, dict) or tree.get("error") is not False:
        return False
    nodes = list(_nodes(tree.get("statements")))
    tables = {
        node.get("alias") or node.get("table_name") for node in nodes if node.get("type") == "BASE_TABLE"
    }
    for node in nodes:
        if node.get("class") == "STAR" or node.get("type") == "PIVOT" or node.get("ref_type") == "NATURAL":
            return False
        if not columns.issuperset(name.lower() for name in node.get("using_columns") or ()):
            return False
        if node.get("class") == "COLUMN_REF":
            *before, name = node["column_names"]
            if name.lower() not in columns or (before and (len(before) > 1 or before[0] not in tables)):
                return False
    return True


def table_names(tree: object) -> set[str]:
    """Return the names of the tables in a query (DuckDB's JSON form) without a schema, CTEs included."""
    if not isinstance(tree, dict) or tree.get("error") is not False:
        return set()
    return {
        node["table_name"]
        for node in _nodes(tree.get("statements"))
        if node.get("type") == "BASE_TABLE" and not node.get("schema_name")
    }


def newest_rows(tree: Any) -> int | None:
    """Return n for a query of the form ``select … from t order by "offset" desc limit n``, else None.

    The n newest rows of each partition are enough for that query. `tree` is the query in DuckDB's JSON form.
    DuckDB's plan cannot be used instead: a column's name in it may be the alias of another column.
    """
    try:
        (statement,) = tree["statements"]
        node = statement["node"]
        order, limit = node["modifiers"]
        (first, *_), skipped = order["orders"], limit["offset"]
        if (
            node["type"] != "SELECT_NODE"
            or node["from_table"]["type"] != "BASE_TABLE"
            or any(
                node[part] for part in ("where_clause", "group_expressions", "having", "sample", "qualify")
            )
            or node["from_table"]["column_name_alias"]
            or node["cte_map"]["map"]
            or not all(_is_as_it_is(each) for each in node["select_list"])
            or (order["type"], limit["type"]) != ("ORDER_MODIFIER", "LIMIT_MODIFIER")
            or limit["limit_type"] != "ROW_COUNT"
            or first["type"] != "DESCENDING"
            or first["expression"]["class"] != "COLUMN_REF"
            or [name.lower() for name in first["expression"]["column_names"]] != ["offset"]
        ):
            return None
        return int(limit["limit"]["literal"]["text"]) + int(skipped["literal"]["text"] if skipped else 0)
    except (KeyError, TypeError, ValueError):
        return None


def _is_as_it_is(column: dict[str, Any]) -> bool:
    """Return True if an item of a select list is a column under its own name, or a plain star."""
    if column["class"] == "STAR":
        return not any(column[part] for part in ("exclude_list", "replace_list", "rename_list", "expr"))
    return column["class"] == "COLUMN_REF" and not column["alias"] and len(column["column_names"]) == 1


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left += node.values()
        elif isinstance(node, list):
            left += node


def missing_table(message: str) -> str | None:
    """Return the table's name in DuckDB's error about a missing table, or None for another error."""
    found = _MISSING.search(message)
    return None if found is None else found["name"]


def advice_for(message: str) -> str:
    """Return a sentence of advice for a parser error with a likely cause, or "" if there is none."""
    found = _OFFSET.search(message)
    word = "" if found is None else found["word"].lower()
    statement = message.split("LINE", 1)[-1].lower()
    if message.startswith("Parser Error") and (word == "offset" or "offset" in statement):
        return 'offset is a keyword of SQL: write the column as "offset", in double quotes'
    if word == "-":
        return 'a topic whose name has a hyphen or a dot is written in double quotes: from "my-topic"'
    if "is not an table" in message:
        return "topics take insert into TOPIC (columns) select …, and no other way to write"
    return ""


def one_line(message: str) -> str:
    """Return the message of a DuckDB error without the excerpt of the statement."""
    lines = [line.strip() for line in message.partition("\nLINE ")[0].splitlines()]
    return " ".join(line for line in lines if line).rstrip(".!:")


def unquoted(name: str) -> str:
    """Return an SQL name without the double quotes around it."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def quoted(name: str) -> str:
    """Return a name in double quotes for SQL, so that it may contain any characters."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
