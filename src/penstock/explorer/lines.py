"""Completes JSON lines: a line has a message as bytes or as JSON, and the missing form is added.

A line is an object with `name` (of the definition), `version`, and `hex` or `json`. With
`"framed": true` the bytes begin with the version, as in messages that no header announces
(`penstock.protocol.inspect.version_prefix`). Other members of a line are kept. A line that is
wrong in any way is returned with `error`, and the next one is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError, DecodeError, PenstockError
from penstock.protocol import messages
from penstock.protocol.codec import codec_for
from penstock.protocol.inspect.json_form import json_form
from penstock.protocol.inspect.version_prefix import leading_bytes, read_leading
from penstock.protocol.message import Message
from penstock.protocol.message_index import HOMES
from penstock.protocol.schema.loader import load_definition

Line = dict[str, Any]
Change = Callable[[Line], tuple[str, Any]]


def message_class(name: object) -> type[Message]:
    """Return the class of a message of Kafka's by the name of its definition.

    Raises:
        ConfigError: there is no message with the name.
    """
    if not isinstance(name, str) or name not in HOMES:
        raise ConfigError(f"there is no message called {name!r}{did_you_mean(str(name), HOMES)}")
    found: type[Message] = getattr(messages, name)
    if found.DEFINITION is None:  # kept, because lines ask for many versions of a message
        found.DEFINITION = load_definition(name)
    return found


def decode_line(text: bytes | str) -> str:
    """Return the line with `json` made from its `hex`, or with `error`. Never raises."""
    return _completed(text, _decoded)


def encode_line(text: bytes | str) -> str:
    """Return the line with `hex` made from its `json`, or with `error`. Never raises."""
    return _completed(text, _encoded)


def _completed(text: bytes | str, change: Change) -> str:
    line: Line = {}
    try:
        text = text if isinstance(text, str) else text.decode()
        source = json.loads(text, parse_constant=_refuse_constant)
        if type(source) is not dict:
            raise DecodeError("a line is an object with name, version, and hex or json")
        line = source
        line.pop("error", None)
        key, value = change(line)
        line[key] = value
        return json.dumps(line, separators=(",", ":"), allow_nan=False)
    except Exception as error:
        return _with_error(line, _reason(error))


def _with_error(line: Line, reason: str) -> str:
    line["error"] = reason
    try:
        return json.dumps(line, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):  # a number beyond float64 among what is kept
        return json.dumps({"error": reason})


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _reason(error: Exception) -> str:
    if isinstance(error, PenstockError):
        return str(error)
    if isinstance(error, RecursionError):
        return "nested too deep"
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON: {error}"
    if isinstance(error, UnicodeDecodeError):
        return f"no UTF-8: {error.reason} at byte {error.start}"
    if isinstance(error, ValueError):
        return f"no JSON: {error}"
    return f"unexpected {type(error).__name__}: {error}"


def _decoded(line: Line) -> tuple[str, Any]:
    found = message_class(_member(line, "name"))
    data = _bytes(_member(line, "hex"))
    position = 0
    if _framed(line):
        said, position = read_leading(found, data)
        version = _version(line, said)
    else:
        version = _version(line, None)
    message, end = codec_for(found, version).decode(data, position)
    if end != len(data):
        raise DecodeError(f"{found.NAME} v{version}: {len(data) - end} bytes are left over after byte {end}")
    return "json", json_form(found, version).to_json(message)


def _encoded(line: Line) -> tuple[str, Any]:
    found = message_class(_member(line, "name"))
    version = _version(line, None)
    front = leading_bytes(found, version) if _framed(line) else b""
    message = json_form(found, version).from_json(_member(line, "json"))
    return "hex", (front + codec_for(found, version).encode(message)).hex()


def _member(line: Line, key: str) -> Any:
    try:
        return line[key]
    except KeyError:
        raise DecodeError(f"the line has no {key!r}") from None


def _version(line: Line, said: int | None) -> int:
    """Return the version of a line's message: its member `version`, or else `said`, from its first bytes."""
    version = line.get("version", said)
    if version is None:
        raise DecodeError("the line has no 'version'")
    if type(version) is not int:
        raise DecodeError(f"version must be a whole number, not {json.dumps(version)[:40]}")
    if said is not None and said != version:
        raise DecodeError(f"the line says version {version}, the bytes begin with version {said}")
    return version


def _framed(line: Line) -> bool:
    framed = line.get("framed", False)
    if type(framed) is not bool:
        raise DecodeError("framed must be true or false")
    return framed


def _bytes(text: object) -> bytes:
    if not isinstance(text, str):
        raise DecodeError("hex must be a string of hexadecimal digits")
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise DecodeError(f"no hexadecimal digits: {error}") from None
