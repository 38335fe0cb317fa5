"""Finds the members of a JSON object and the position of each value; checks if bytes are one JSON value."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from penstock.cloudevents.outcome import InvalidEventError, shown

_SPACES = " \t\n\r"


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidEventError("J19", f"{name} is not JSON")


def _whole_number(text: str) -> int:
    # Python refuses to read very long integers; no attribute can hold one, and data are kept as text.
    return int(text) if len(text) < 20 else 10**20


decode_at = json.JSONDecoder(parse_int=_whole_number, parse_constant=_refuse_constant).raw_decode
# The same without the look at long numbers: it raises ValueError, or StopIteration where nothing is.
decoder: Any = json.JSONDecoder(parse_constant=_refuse_constant)
scan_value = decoder.scan_once
_white_space = re.compile(rf"[{_SPACES}]*").match

Members = dict[str, object]
Span = tuple[int, int]
"""(start, end) of a value in a JSON text: the position of its first character, and the position after its
last one."""


def read_utf8(data: bytes) -> str:
    try:
        return str(data, "utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise InvalidEventError("J19", "the value is not UTF-8 text") from None


def scan_object(text: str) -> tuple[Members, dict[str, Span]]:
    """Return the members of the single JSON object in `text`, and the spans of their values.

    Raises:
        InvalidEventError: the text is not a JSON object (J1), or a member is repeated (D18).
    """
    try:
        members, spans, end = scan_object_at(text, skip_white_space(text, 0))
        if skip_white_space(text, end) != len(text):
            raise InvalidEventError("J1", "there is more text after the JSON object")
    except InvalidEventError:
        raise
    except (ValueError, IndexError):
        raise InvalidEventError("J1", _why_no_object(text)) from None
    except RecursionError:
        raise InvalidEventError("J1", "the JSON is nested too deeply") from None
    return members, spans


def _why_no_object(text: str) -> str:
    """Return the reason, for an error message, why a text is not a JSON object."""
    if skip_white_space(text, 0) == len(text):
        return "the value is empty, not a JSON object"
    try:
        found = decoder.decode(text)
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:]
        return f"the value is not JSON: {problem} at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        return "the value is not JSON"
    return f"the value is JSON, but {'an array, ' if isinstance(found, list) else ''}not an object"


def skip_white_space(text: str, position: int) -> int:
    """Return the position of the next character that is not white space, or the end of the text."""
    match = _white_space(text, position)
    return match.end() if match else position


def scan_object_at(text: str, start: int) -> tuple[Members, dict[str, Span], int]:
    """Return the members of the object at `start`, the spans of their values, and the object's end.

    Raises:
        ValueError, IndexError: the text is not JSON, or not an object.
    """
    if text[start] != "{":
        raise ValueError("not an object")
    members: Members = {}
    spans: dict[str, Span] = {}
    position = skip_white_space(text, start + 1)
    if text[position] == "}":
        return members, spans, position + 1
    while True:
        if text[position] != '"':
            raise ValueError("a member has no name")
        name, position = decode_at(text, position)
        position = skip_white_space(text, position)
        if text[position] != ":":
            raise ValueError("no colon")
        begin = skip_white_space(text, position + 1)
        value, end = decode_at(text, begin)
        if name in members:
            raise InvalidEventError("D18", f"the member {shown(name)} is there twice")
        members[name] = value
        spans[name] = begin, end
        position = skip_white_space(text, end)
        if text[position] == "}":
            return members, spans, position + 1
        if text[position] != ",":
            raise ValueError("no comma")
        position = skip_white_space(text, position + 1)


def json_text(data: bytes) -> str | None:
    """Return `data` as text if it is exactly one JSON value, without white space around it, or else None."""
    try:
        text = data.decode()
        _, end = scan_value(text, 0)
    except StopIteration:
        return None
    except (ValueError, RecursionError):
        return _json_text_carefully(data)
    return text if end == len(text) else None


def _json_text_carefully(data: bytes) -> str | None:
    """Return what `json_text` returns, also for JSON with integers that are too long for `int`."""
    try:
        text = data.decode()
        _, end = decode_at(text, 0)
    except (ValueError, RecursionError):
        return None
    return text if end == len(text) else None
