"""Parses the SQL text of the option `where` into a condition, with sqlglot in Spark's dialect.

Only expressions with exactly the meaning that they have in Spark are accepted; all others are refused. The
driver parses; tasks get the condition, and need no parser.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.common.extras import missing
from penstock.errors import ConfigError
from penstock.printable import printable
from penstock.spark.source.where.condition import (
    COLUMNS,
    Both,
    Comparison,
    Condition,
    Constant,
    Either,
    IsNull,
    Not,
    OneOf,
    Value,
    Where,
    negated,
)
from penstock.spark.source.where.times import moment

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

TEXT_MAX = 100_000
"""The greatest length of a condition in characters: enough for two thousand comparisons, or a list of ten
thousand offsets.
"""

DEPTH_MAX = 200
"""The deepest nesting of conditions, which also limits the number of conditions that ``and`` and ``or`` join.
"""

TAKEN = (
    "comparisons of topic, partition, offset, timestamp, timestampType, key and value with literals, in, "
    "between, is null, and, or, not"
)


def parsed_where(text: str) -> Where:
    """Return the condition that the text of the option `where` states.

    Raises:
        ConfigError: the text is not a condition, or has a part that the source does not support.
        MissingDependencyError: sqlglot is not installed.
    """
    if not text:
        raise ConfigError("where is empty: leave it out, or give it a condition")
    if len(text) > TEXT_MAX:
        raise ConfigError(f"where has {len(text)} characters; there may be {TEXT_MAX}")
    if "\\" in text:
        raise ConfigError("where has a backslash, which Spark's settings decide about: write bytes as X'5c'")
    try:
        import sqlglot
        from sqlglot.errors import SqlglotError
    except ImportError as error:
        raise missing(error, "the option where") from None
    try:
        trees = sqlglot.parse(text, read="spark")
        if len(trees) != 1 or trees[0] is None:
            raise ConfigError("where takes one condition, without a semicolon")
        reading = _Reading()
        condition = reading.condition(trees[0], 0)
    except SqlglotError as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"where is no condition in SQL: {printable(reason)}") from None
    except RecursionError:
        raise ConfigError(f"where is nested too deep: {DEPTH_MAX} levels are possible") from None
    return Where(text, condition, reading.reads_utc)


class _Reading:
    """The conversion of one syntax tree of sqlglot into a condition."""

    def __init__(self) -> None:
        self.reads_utc = False

    def condition(self, node: Expr, depth: int) -> Condition:
        """Convert a node of the tree, with all nodes below it, to a condition. Raises ConfigError."""
        from sqlglot import exp

        if depth > DEPTH_MAX:
            raise ConfigError(f"where is nested too deep: {DEPTH_MAX} levels are possible")
        match node:
            case exp.Paren():
                return self.condition(node.this, depth + 1)
            case exp.And():
                return Both(self.condition(node.left, depth + 1), self.condition(node.right, depth + 1))
            case exp.Or():
                return Either(self.condition(node.left, depth + 1), self.condition(node.right, depth + 1))
            case exp.Not():
                return negated(self.condition(node.this, depth + 1))
            case exp.Boolean():
                return Constant(bool(node.this))
            case exp.Null():
                return Constant(None)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self._column(node.this))
            case exp.Between() if not node.args.get("symmetric"):
                column = self._column(node.this)
                low, high = node.args["low"], node.args["high"]
                return Both(self._compared(column, ">=", low), self._compared(column, "<=", high))
            case exp.In() if node.expressions and not _extras(node, "this", "expressions"):
                return self._one_of(self._column(node.this), node.expressions)
            case exp.NullSafeEQ():
                column, _, other = self._sides(node, "==")
                return self._null_safe(column, other)
            case exp.NullSafeNEQ():
                column, _, other = self._sides(node, "==")
                return negated(self._null_safe(column, other))
        operator = _operators().get(type(node))
        if operator is None:
            raise _refusal(node)
        return self._compared(*self._sides(node, operator))

    def _sides(self, node: Expr, operator: str) -> tuple[str, str, Expr]:
        """Return (column, operator, literal) of a comparison; a literal on the left mirrors the operator."""
        left, right = _bare(node.this), _bare(node.expression)
        if _is_column(left):
            return self._column(left), operator, right
        if _is_column(right):
            return self._column(right), _MIRRORED.get(operator, operator), left
        raise _refusal(next((side for side in (left, right) if not _is_literal(side)), node))

    def _null_safe(self, column: str, other: Expr) -> Condition:
        value = self._value(column, other)
        if value is None:
            return IsNull(column)
        return Both(Comparison(column, "==", value), Not(IsNull(column)))

    def _compared(self, column: str, operator: str, other: Expr) -> Condition:
        value = self._value(column, other)
        return Constant(None) if value is None else Comparison(column, operator, value)

    def _one_of(self, column: str, nodes: list[Expr]) -> Condition:
        values = [self._value(column, node) for node in nodes]
        known = tuple(dict.fromkeys(value for value in values if value is not None))
        return OneOf(column, known, None in values)

    def _column(self, node: Expr) -> str:
        node = _bare(node)
        if not _is_column(node) or _extras(node, "this"):
            raise _refusal(node)
        name = {each.lower(): each for each in COLUMNS}.get(node.name.lower())
        if name is None:
            raise ConfigError(
                f"where: no column {printable(node.name)!r} here; there are {', '.join(COLUMNS)}"
            )
        return name

    def _value(self, column: str, node: Expr) -> Value | None:
        """Return the value of a literal in the column's type, None for null. Raises ConfigError."""
        from sqlglot import exp

        node = _bare(node)
        kind = COLUMNS[column]
        if isinstance(node, exp.Null):
            return None
        if kind is datetime:
            return self._time(column, node)
        if kind is int:
            number = _whole(node)
            if number is not None:
                return number
        elif isinstance(node, exp.Literal) and node.is_string:
            text = str(node.this)
            return text if kind is str else text.encode()
        elif kind is bytes and isinstance(node, exp.HexString):
            try:
                return bytes.fromhex(str(node.this))
            except ValueError:
                pass
        elif not isinstance(node, exp.Literal):
            raise _refusal(node)
        raise _wrong_value(column, node)

    def _time(self, column: str, node: Expr) -> int:
        from sqlglot import exp

        if type(node) is exp.Cast and node.to.this in (
            exp.DataType.Type.TIMESTAMPTZ,
            exp.DataType.Type.TIMESTAMPLTZ,
            exp.DataType.Type.DATE,
        ):
            is_date = node.to.this is exp.DataType.Type.DATE
            node = node.this
            if is_date and len(node.name.strip()) > len("2026-11-01"):
                raise _wrong_value(column, node)
        if not isinstance(node, exp.Literal):
            raise _refusal(node)
        if not node.is_string:
            raise _wrong_value(column, node)
        found = moment(str(node.this))
        self.reads_utc |= not found.has_zone
        return found.us


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _operators() -> dict[type, str]:
    from sqlglot import exp

    return {exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def _bare(node: Any) -> Expr:
    """Return a node without the parentheses around it."""
    from sqlglot import exp

    depth = 0
    while isinstance(node, exp.Paren) and depth < DEPTH_MAX:
        node, depth = node.this, depth + 1
    found: Expr = node
    return found


def _is_column(node: Expr) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)


def _is_literal(node: Expr) -> bool:
    from sqlglot import exp

    return isinstance(node, (exp.Literal, exp.Null, exp.HexString, exp.Boolean))


def _extras(node: Expr, *known: str) -> list[str]:
    """Return the names of a node's arguments that are set and not in `known`, hence not supported."""
    return [name for name, value in node.args.items() if value and name not in known]


def _whole(node: Expr) -> int | None:
    """Return the whole number in a node, or None if the node is another expression."""
    from sqlglot import exp

    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, _bare(node.this)
    if (
        isinstance(node, exp.Literal)
        and not node.is_string
        and str(node.this).isdecimal()
        and node.name.isascii()
    ):
        return sign * int(node.name) if len(node.name) <= _DIGITS_MAX else None
    return None


_DIGITS_MAX = 38
"""The most digits of a decimal number in Spark."""


def _wrong_value(column: str, node: Expr) -> ConfigError:
    shown = printable(node.sql("spark"))
    wanted = {
        int: "whole numbers",
        str: "texts in quotes",
        bytes: "texts in quotes and bytes such as X'00ff'",
        datetime: "times in quotes",
    }[COLUMNS[column]]
    return ConfigError(f"where: {column} is compared with {wanted}, not with {shown}")


def _refusal(node: Expr) -> ConfigError:
    from sqlglot import exp

    try:
        shown = printable(node.sql("spark"))
    except Exception:  # a tree that cannot be written: what it is called says it as well
        shown = type(node).__name__
    kind = ""
    if isinstance(node, (exp.Subquery, exp.Select)) or node.args.get("query"):
        kind = "a subquery: "
    elif isinstance(node, exp.Func) and not isinstance(node, (exp.Connector, exp.Cast)):
        kind = "a function: "
    shown = shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}..."
    return ConfigError(
        f"where cannot decide {kind}{shown}; it takes {TAKEN}. Give the rest to .where(...) of the DataFrame"
    )


_SHOWN_MAX = 80
