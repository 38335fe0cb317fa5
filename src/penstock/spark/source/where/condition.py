"""Conditions on records: the offset ranges that may contain matching records, and the rows that match.

A condition is true, false or null for a row, by the rules of SQL; rows for which it is true are returned.
`Not` occurs only directly before columns: the parser moves it there, which changes no result.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from penstock.errors import ConfigError
from penstock.queries.pushdown.wanted import EVERYTHING, NOTHING, Wanted, comparison, is_null, one_of

if TYPE_CHECKING:
    import pyarrow as pa

Value = int | str | bytes

COLUMNS: Mapping[str, type] = {
    "topic": str,
    "partition": int,
    "offset": int,
    "timestamp": datetime,
    "timestampType": int,
    "key": bytes,
    "value": bytes,
}
"""A dict from the columns that a condition may use to the type of the literals to compare with them. A
literal for `timestamp` becomes a number: microseconds since 1970.
"""

NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

_COMPARE = {"==": operators.eq, "!=": operators.ne, "<": operators.lt, "<=": operators.le, ">": operators.gt}
_COMPARE[">="] = operators.ge

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Constant:
    """A condition with the same result for all rows: true, false or null."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition that compares a column with a value; it is null if the column is null."""

    column: str
    operator: str
    value: Value


@dataclass(frozen=True, slots=True)
class OneOf:
    """A condition that a column equals one of some values (SQL ``IN``).

    It is null if the column is null, or if it equals none of the values and the list contains null
    (`has_null`).
    """

    column: str
    values: tuple[Value, ...]
    has_null: bool


@dataclass(frozen=True, slots=True)
class IsNull:
    """A condition that a column is null; its result is never null."""

    column: str


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition; null stays null."""

    inner: OneOf | IsNull


@dataclass(frozen=True, slots=True)
class Both:
    """The conjunction (``and``) of two conditions."""

    left: Condition
    right: Condition


@dataclass(frozen=True, slots=True)
class Either:
    """The disjunction (``or``) of two conditions."""

    left: Condition
    right: Condition


Condition = Constant | Comparison | OneOf | IsNull | Not | Both | Either


def negated(condition: Condition) -> Condition:
    """Return the condition that is true where `condition` is false, and null where it is null."""
    match condition:
        case Constant(value):
            return Constant(None if value is None else not value)
        case Comparison(column, operator, value):
            return Comparison(column, NEGATED[operator], value)
        case Not(inner):
            return inner
        case Both(left, right):
            return Either(negated(left), negated(right))
        case Either(left, right):
            return Both(negated(left), negated(right))
    return Not(condition)


def wanted(condition: Condition) -> Wanted:
    """Return offset ranges and partitions that hold all records for which a condition is true."""
    match condition:
        case Constant(value):
            return EVERYTHING if value else NOTHING
        case Comparison(column, operator, value):
            return EVERYTHING if operator == "!=" else comparison(column, operator, _placed(column, value))
        case OneOf(column, values, _):
            return one_of(column, (_placed(column, value) for value in values))
        case IsNull(column):
            return is_null(column)
        case Both(left, right):
            return wanted(left).both(wanted(right))
        case Either(left, right):
            return wanted(left).either(wanted(right))
    return EVERYTHING


def _placed(column: str, value: Value) -> object:
    if column == "timestamp" and isinstance(value, int):
        return _EPOCH + timedelta(microseconds=value)
    return value


def columns_of(condition: Condition) -> frozenset[str]:
    """Return the names of the columns that a condition uses."""
    match condition:
        case Constant():
            return frozenset()
        case Comparison() | OneOf() | IsNull():
            return frozenset([condition.column])
        case Not(inner):
            return columns_of(inner)
        case Both(left, right) | Either(left, right):
            return columns_of(left) | columns_of(right)


def mask(condition: Condition, batch: pa.RecordBatch) -> pa.Array:
    """Return a boolean column with the condition's result for each row: true, false or null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    match condition:
        case Constant(value):
            return pa.repeat(pa.scalar(value, pa.bool_()), batch.num_rows)
        case Comparison(column, operator, value):
            return _compared(batch.column(column), operator, value)
        case OneOf(column, values, has_null):
            found = _among(batch.column(column), values)
            absent = pc.is_null(batch.column(column))
            if has_null:
                absent = pc.or_(absent, pc.invert(found))
            return pc.if_else(absent, pa.scalar(None, pa.bool_()), found)
        case IsNull(column):
            return pc.is_null(batch.column(column))
        case Not(inner):
            return pc.invert(mask(inner, batch))
        case Both(left, right):
            return pc.and_kleene(mask(left, batch), mask(right, batch))
        case Either(left, right):
            return pc.or_kleene(mask(left, batch), mask(right, batch))


def _numbers(column: pa.Array) -> pa.Array:
    """Return a column of integers as 64 bits or of times as microseconds; other columns unchanged."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def _compared(column: pa.Array, operator: str, value: Value) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = _numbers(column)
    if isinstance(value, int) and not _INT64_MIN <= value <= _INT64_MAX:
        outcome = _COMPARE[operator](0, value)
        return pc.if_else(pc.is_valid(column), pa.scalar(outcome), pa.scalar(None, pa.bool_()))
    functions = {
        "==": pc.equal,
        "!=": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }
    return functions[operator](numbers, pa.scalar(value, numbers.type))


def _among(column: pa.Array, values: tuple[Value, ...]) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = _numbers(column)
    fitting = [one for one in values if not isinstance(one, int) or _INT64_MIN <= one <= _INT64_MAX]
    return pc.is_in(numbers, value_set=pa.array(fitting, numbers.type))


@dataclass(frozen=True, slots=True)
class Where:
    """The condition in the option `where`.

    `reads_utc` is True if a time in it has no zone, and is read as UTC."""

    text: str
    condition: Condition
    reads_utc: bool = False

    @property
    def wanted(self) -> Wanted:
        """The offset ranges and partitions that may have rows for which the condition is true."""
        return wanted(self.condition)

    @property
    def columns(self) -> frozenset[str]:
        """The columns of records that the condition uses."""
        return columns_of(self.condition)

    def filtered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch for which the condition is true."""
        return batch.filter(mask(self.condition, batch), null_selection_behavior="drop")

    def check_zone(self, session_zone: str | None) -> None:
        """Check that Spark's session reads times without a zone as UTC, as this condition does.

        Raises:
            ConfigError: the session's time zone is not UTC, or is unknown.
        """
        if not self.reads_utc or session_zone in _UTC_NAMES:
            return
        is_known = session_zone is not None
        raise ConfigError(
            f"where has a time without a zone, and spark.sql.session.timeZone is "
            f"{session_zone if is_known else 'not set'}: name the zone in the time, such as "
            f"'2026-11-01 00:00:00 {session_zone if is_known else 'Europe/Berlin'}', or set that to UTC"
        )


_UTC_NAMES = frozenset(("UTC", "Z", "GMT", "Etc/UTC", "Etc/GMT", "+00:00"))


def joined(parts: list[Condition], kind: type[Both] | type[Either]) -> Condition:
    """Return one or more conditions joined by `kind`: ``and`` (`Both`) or ``or`` (`Either`)."""
    return reduce(kind, parts)
