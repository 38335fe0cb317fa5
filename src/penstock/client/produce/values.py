"""Checks of a record's values when the application passes them.

A wrong value would otherwise make the whole batch fail, later and in another thread.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Mapping, Sequence

from penstock.common.suggestions import short_repr
from penstock.errors import EncodeError
from penstock.headers import Header


def as_bytes(what: str, value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    hint = ": encode it, for instance with .encode()" if isinstance(value, str) else ""
    raise EncodeError(f"a record's {what} is bytes or None, not {type(value).__name__}{hint}")


def whole_ms(timestamp: object) -> int:
    """Return a timestamp, given as an integer of any type or as a datetime, in milliseconds since 1970.

    Raises EncodeError.
    """
    if hasattr(timestamp, "tzinfo"):
        from datetime import datetime

        from penstock.moments import moment_ms

        if isinstance(timestamp, datetime):
            return moment_ms(timestamp, 0)
    if not isinstance(timestamp, bool):
        with contextlib.suppress(TypeError):
            whole = operator.index(timestamp)  # type: ignore[arg-type]  # raises unless this is an integer
            if -(1 << 63) <= whole < 1 << 63:
                return whole
    raise EncodeError(
        "a record's timestamp is milliseconds since 1970, a whole number of 64 bits, or a datetime, "
        f"not {short_repr(timestamp)}"
    )


def _pairs(headers: object) -> list[tuple[object, object]]:
    """Return headers, given as pairs or as a mapping, as a list of pairs.

    Names and values are not checked.
    """
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    if isinstance(pairs, Iterable) and not isinstance(pairs, (str, bytes)):
        found = list(pairs)
        if all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in found):
            return found
    raise EncodeError(
        "headers are a list of names and values, such as [('trace', b'1')], or a mapping, not "
        f"{short_repr(headers)}"
    )


def checked_headers(headers: Sequence[Header]) -> tuple[list[Header], int]:
    """Check a record's headers; return them and their maximum size in bytes.

    Raises EncodeError for invalid headers.
    """
    if type(headers) in (list, tuple):
        size = 0
        for pair in headers:
            if type(pair) is not tuple or len(pair) != 2:
                break
            name, value = pair
            if type(name) is not str or not name.isascii():
                break
            if type(value) is bytes:
                size += len(value)
            elif value is not None:
                break
            size += 10 + len(name)
        else:
            return list(headers), size
    return _looked_at(headers)


def _looked_at(headers: object) -> tuple[list[Header], int]:
    """Check headers of any form; return them and their maximum size in bytes.

    `checked_headers` itself checks the common form: tuples of ASCII text and bytes.

    Raises EncodeError.
    """
    checked: list[Header] = []
    size = 0
    for name, value in _pairs(headers):
        if not isinstance(name, str):
            raise EncodeError(f"a header's name is text, not {type(name).__name__}")
        content = as_bytes(f"header {name!r}", value)
        try:
            name_size = len(name.encode())
        except UnicodeEncodeError:
            raise EncodeError(f"a header's name is text that UTF-8 can say, not {name!r}") from None
        size += 10 + name_size + (len(content) if content else 0)
        checked.append((name, content))
    return checked, size
