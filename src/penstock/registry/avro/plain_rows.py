"""Converts plain JSON to rows of an Avro schema, the inverse of ``penstock consume --value avro``.

In the JSON, bytes are base64 text, decimals and UUIDs are text, and maps are objects or lists of pairs. Times
are ISO 8601 text, or numbers in the unit of their logical type. For a union, the JSON is a value that fits
one branch, or, as in Avro's own JSON encoding, an object from the branch's name to the value.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import json
import uuid
from typing import Any

from penstock.errors import EncodeError
from penstock.registry.avro.schema import (
    NO_DEFAULT,
    AvroArray,
    AvroFixed,
    AvroRecord,
    Enum,
    Map,
    NamedType,
    Type,
    Union,
    branch_name,
)

EPOCH = datetime.date(1970, 1, 1)
UNITS = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}
_SHOWN_CHARACTERS = 60


def avro_row(value: Any, kind: Type, place: str = "$") -> Any:
    """Convert a parsed JSON value to the Python value that fastavro encodes as type `kind`.

    Raises:
        EncodeError: the value does not fit the type; the message has the path in the value.
    """
    if isinstance(kind, Union):
        return _branch(value, kind, place)
    if isinstance(kind, AvroRecord):
        return _record(value, kind, place)
    if isinstance(kind, AvroArray):
        if not isinstance(value, list):
            raise _misfit(value, "a list", place)
        return [avro_row(each, kind.items, f"{place}[{at}]") for at, each in enumerate(value)]
    if isinstance(kind, Map):
        return {name: avro_row(each, kind.values, f"{place}.{name}") for name, each in _pairs(value, place)}
    if isinstance(kind, Enum):
        if value not in kind.symbols:
            raise _misfit(value, f"one of {', '.join(kind.symbols)}", place)
        return value
    if kind.logical is not None:
        return _logical(value, kind, place)
    return _plain(value, kind, place)


def _misfit(value: Any, wanted: str, place: str) -> EncodeError:
    return EncodeError(f"{place} is {json.dumps(value)[:_SHOWN_CHARACTERS]}: {wanted} is needed")


def _record(value: Any, kind: AvroRecord, place: str) -> dict[str, Any]:
    if isinstance(value, str):  # a type that holds itself is JSON text in columns
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise _misfit(value, f"an object for record {kind.name}", place) from None
    if not isinstance(value, dict):
        raise _misfit(value, f"an object for record {kind.name}", place)
    names = {each.name for each in kind.fields}
    if unknown := value.keys() - names:
        raise EncodeError(
            f"{place} has a field {min(unknown)!r}, which record {kind.name} lacks; it has "
            f"{', '.join(sorted(names))}"
        )
    found = {}
    for each in kind.fields:
        if each.name in value:
            found[each.name] = avro_row(value[each.name], each.type, f"{place}.{each.name}")
        elif each.default is NO_DEFAULT:
            raise EncodeError(f"{place} lacks the field {each.name!r} of record {kind.name}")
    return found


def _pairs(value: Any, place: str) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list) and all(
        isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in value
    ):
        return [(name, each) for name, each in value]
    raise _misfit(value, "an object", place)


def _branch(value: Any, kind: Union, place: str) -> Any:
    named = {branch_name(each): each for each in kind.branches}
    named |= {each.short_name: each for each in kind.branches if isinstance(each, NamedType)}
    if isinstance(value, dict) and value and value.keys() <= named.keys():
        chosen = [name for name, each in value.items() if each is not None]
        if len(chosen) == 1:
            name = chosen[0]
            try:
                return _tagged(avro_row(value[name], named[name], place), named[name])
            except EncodeError:
                if len(value) == 1 and not any(isinstance(each, (AvroRecord, Map)) for each in kind.branches):
                    raise
    misfits = []
    # A text that is base64 by chance is a text.
    for each in sorted(kind.branches, key=lambda branch: branch.kind in ("bytes", "fixed")):
        try:
            return _tagged(avro_row(value, each, place), each)
        except EncodeError as error:
            misfits.append(error)
    others = [error for error, each in zip(misfits, kind.branches, strict=True) if each.kind != "null"]
    if len(others) == 1 and len(kind.branches) == 2:
        raise others[0]
    raise _misfit(value, f"one of {', '.join(map(branch_name, kind.branches))}", place)


def _tagged(made: Any, branch: Type) -> Any:
    """Return (record name, row), the form from which fastavro selects the branch of a union for a record."""
    return (branch.name, made) if isinstance(branch, AvroRecord) else made


def _plain(value: Any, kind: Type, place: str) -> Any:
    name = kind.kind
    if name in ("int", "long"):
        bound = 1 << (31 if name == "int" else 63)
        if isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound:
            return value
    elif name in ("float", "double"):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
    elif (name == "boolean" and isinstance(value, bool)) or (name == "string" and isinstance(value, str)):
        return value
    elif name == "null" and value is None:
        return None
    elif name in ("bytes", "fixed"):
        return _bytes(value, kind, place)
    raise _misfit(value, name, place)


def _bytes(value: Any, kind: Type, place: str) -> bytes:
    try:
        found = base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        found = None
    if found is None:
        raise _misfit(value, "base64 text", place)
    if isinstance(kind, AvroFixed) and len(found) != kind.size:
        raise _misfit(value, f"base64 text of {kind.size} bytes", place)
    return found


def _logical(value: Any, kind: Type, place: str) -> Any:
    assert kind.logical is not None
    if kind.logical == "decimal":
        return _decimal(value, kind, place)
    if kind.logical == "uuid":
        try:
            found = uuid.UUID(value)
        except (ValueError, AttributeError, TypeError):
            raise _misfit(value, "a UUID", place) from None
        return found.bytes if kind.kind == "fixed" else str(found)
    if kind.logical == "duration":
        return _bytes(value, kind, place)
    if not isinstance(value, str):
        return _plain(value, Type(kind.kind), place)
    try:
        return _moment(value, kind.logical)
    except ValueError:
        raise _misfit(value, f"a {kind.logical} as ISO 8601 or a number", place) from None


def _decimal(value: Any, kind: Type, place: str) -> decimal.Decimal:
    try:
        if isinstance(value, bool):
            raise decimal.InvalidOperation
        found = decimal.Decimal(str(value) if isinstance(value, (int, float, str)) else "?")
        fits = found.is_finite() and found == round(found, kind.scale)
        fits = fits and len(found.scaleb(kind.scale).to_integral_value().as_tuple().digits) <= kind.precision
    except decimal.InvalidOperation:
        raise _misfit(value, "a decimal as text or number", place) from None
    if not fits:
        raise _misfit(value, f"a decimal({kind.precision}, {kind.scale})", place)
    return found


def _moment(text: str, logical: str) -> int:
    """Convert a date or time from ISO 8601 text to a number in the unit of the logical type.

    Raises:
        ValueError: the text is not a date or time.
    """
    if logical == "date":
        return (datetime.date.fromisoformat(text) - EPOCH).days
    per_second = UNITS[logical.rpartition("-")[2]]
    if logical.startswith("time-"):
        time = datetime.time.fromisoformat(text)
        seconds = (time.hour * 60 + time.minute) * 60 + time.second
        return seconds * per_second + time.microsecond * per_second // 10**6
    moment = datetime.datetime.fromisoformat(text)
    if logical.startswith("local-"):
        moment = moment.replace(tzinfo=datetime.UTC)
    elif moment.tzinfo is None:
        raise ValueError(text)
    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
    return micros * per_second // 10**6
