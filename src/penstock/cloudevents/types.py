"""The types of attribute values, and their canonical text (rules T1 to T7 in docs/reference/cloudevents.md).

In memory a Boolean is a `bool`, an Integer an `int`, a Binary `bytes` and everything else text. The
classes `Timestamp`, `URI` and `URIReference` are strings that carry their type, so that formats with
typed attributes can write it, and the text stays as it arrived.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from types import MappingProxyType

from penstock.cloudevents.grammar import (
    FORBIDDEN_CODE_POINTS,
    INTEGER,
    INTEGER_CHARACTERS_MAX,
    INTEGER_MAX,
    INTEGER_MIN,
    NAME,
    RESERVED_NAME,
)
from penstock.cloudevents.outcome import InvalidEventError, shown
from penstock.cloudevents.timestamps import format_timestamp, parse_timestamp
from penstock.cloudevents.uris import check_uri, check_uri_reference


class Timestamp(str):
    """The text of an RFC 3339 timestamp."""

    __slots__ = ()

    @property
    def moment(self) -> datetime | None:
        """Return the timestamp as a `datetime`, cut to microseconds, or None if it is not representable."""
        return parse_timestamp("timestamp", self)


class URI(str):
    """The text of an absolute URI."""

    __slots__ = ()


class URIReference(str):
    """The text of an absolute or relative URI."""

    __slots__ = ()


AttributeValue = str | int | bool | bytes
"""The Python types of attribute values; `Timestamp`, `URI` and `URIReference` are subclasses of `str`."""


class AttributeType(Enum):
    """The types of attributes in the CloudEvents type system."""

    BOOLEAN = "Boolean"
    INTEGER = "Integer"
    STRING = "String"
    BINARY = "Binary"
    URI = "URI"
    URI_REFERENCE = "URI-reference"
    TIMESTAMP = "Timestamp"


WELL_KNOWN_EXTENSIONS: Mapping[str, AttributeType] = MappingProxyType(
    {
        "authclaims": AttributeType.STRING,
        "authid": AttributeType.STRING,
        "authtype": AttributeType.STRING,
        "causationid": AttributeType.STRING,
        "correlationid": AttributeType.STRING,
        "datacategory": AttributeType.STRING,
        "dataclassification": AttributeType.STRING,
        "dataref": AttributeType.URI_REFERENCE,
        "dataregulation": AttributeType.STRING,
        "deprecated": AttributeType.BOOLEAN,
        "deprecationfrom": AttributeType.TIMESTAMP,
        "deprecationmigration": AttributeType.URI,
        "deprecationsunset": AttributeType.TIMESTAMP,
        "dssematerial": AttributeType.BINARY,
        "expirytime": AttributeType.TIMESTAMP,
        "partitionkey": AttributeType.STRING,
        "recordedtime": AttributeType.TIMESTAMP,
        "sampledrate": AttributeType.INTEGER,
        "sequence": AttributeType.STRING,
        "severitynumber": AttributeType.INTEGER,
        "severitytext": AttributeType.STRING,
        "traceparent": AttributeType.STRING,
        "tracestate": AttributeType.STRING,
    }
)
"""The extensions that CloudEvents documents, with their types. Other extensions in headers are Strings unless
declared."""

_INTEGER = re.compile(INTEGER)
_NAME = re.compile(NAME)
_FORBIDDEN = re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in FORBIDDEN_CODE_POINTS)}]")


def is_attribute_name(name: str) -> bool:
    """Return True if a name has only lower-case letters and digits, and is not ``data`` (rule C3)."""
    return _NAME.fullmatch(name) is not None and name != RESERVED_NAME


def check_string(name: str, text: str) -> None:
    """Check that a text has only characters that are allowed in attributes.

    Raises:
        InvalidEventError: T3, `text` has a forbidden character.
    """
    if text.isascii() and text.isprintable():
        return
    forbidden = _FORBIDDEN.search(text)
    if forbidden is not None:
        raise InvalidEventError("T3", f"{name} contains the forbidden character U+{ord(forbidden[0]):04X}")


def check_integer(name: str, value: int) -> None:
    """Check that an Integer fits 32 bits.

    Raises:
        InvalidEventError: T2, `value` does not fit 32 bits.
    """
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise InvalidEventError("T2", f"{name} does not fit a signed 32-bit Integer")


def read_integer(name: str, text: str) -> int:
    """Return the Integer that `text` represents.

    Raises:
        InvalidEventError: T2, `text` is not a canonical Integer.
    """
    if _INTEGER.fullmatch(text) is None or len(text) > INTEGER_CHARACTERS_MAX:
        raise InvalidEventError("T2", f"{name} is not an Integer: {shown(text)}")
    value = int(text)
    check_integer(name, value)
    return value


def read_boolean(name: str, text: str) -> bool:
    """Return the Boolean that `text` represents.

    Raises:
        InvalidEventError: T1, `text` is neither ``true`` nor ``false``.
    """
    if text == "true":
        return True
    if text == "false":
        return False
    raise InvalidEventError("T1", f"{name} is not a Boolean: {shown(text)}")


def read_base64(name: str, text: str, rule: str = "T4") -> bytes:
    """Return the bytes that `text` encodes in base64: standard alphabet, padding, no other characters.

    Raises:
        InvalidEventError: `rule`, `text` is not base64 in this form.
    """
    try:
        return a2b_base64(text, strict_mode=True)
    except (Base64Error, ValueError):
        raise InvalidEventError(rule, f"{name} is not base64 text") from None


def read_text(name: str, kind: AttributeType, text: str) -> AttributeValue:
    """Return the value of type `kind` whose canonical text is `text`.

    Raises:
        InvalidEventError: T1 to T7, `text` is not the text of a value of this type.
    """
    if kind is AttributeType.BOOLEAN:
        return read_boolean(name, text)
    if kind is AttributeType.INTEGER:
        return read_integer(name, text)
    if kind is AttributeType.BINARY:
        value = read_base64(name, text)
        if canonical_text(value) != text:
            raise InvalidEventError("T4", f"{name} is not canonical base64 text: stray bits at its end")
        return value
    if kind is AttributeType.STRING:
        check_string(name, text)
        return text
    if kind is AttributeType.TIMESTAMP:
        parse_timestamp(name, text)
        return Timestamp(text)
    if kind is AttributeType.URI:
        check_uri(name, text)
        return URI(text)
    check_uri_reference(name, text)
    return URIReference(text)


def canonical_text(value: AttributeValue) -> str:
    """Return the canonical text of an attribute's value, as a header contains it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return b2a_base64(value, newline=False).decode("ascii")


def typed_value(name: str, value: object, declared: AttributeType | None) -> AttributeValue:
    """Check a value that a program provides, and return it; text is converted to the declared type.

    Raises:
        InvalidEventError: the value breaks a rule of its type, or its type is not the declared one.
    """
    if isinstance(value, datetime):
        value = Timestamp(format_timestamp(name, value))
    elif isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    actual = _TYPE_OF.get(type(value))
    if actual is None:
        raise InvalidEventError("C5", f"{name} has no CloudEvents type: {type(value).__name__}")
    if declared is not None and actual is not declared:
        if actual is AttributeType.STRING and isinstance(value, str):
            return read_text(name, declared, value)
        if not isinstance(value, str) or declared is not AttributeType.STRING:
            raise InvalidEventError("C16", f"{name} must be a {declared.value}, not a {actual.value}")
    if isinstance(value, str):
        return read_text(name, actual, value)
    if actual is AttributeType.INTEGER and isinstance(value, int):
        check_integer(name, value)
    return value  # type: ignore[return-value]  # the table above let nothing else through


_TYPE_OF: dict[type, AttributeType] = {
    bool: AttributeType.BOOLEAN,
    int: AttributeType.INTEGER,
    str: AttributeType.STRING,
    bytes: AttributeType.BINARY,
    URI: AttributeType.URI,
    URIReference: AttributeType.URI_REFERENCE,
    Timestamp: AttributeType.TIMESTAMP,
}
