"""Keys and values of coordinators' records: each begins with its version; a tombstone has no value."""

from __future__ import annotations

from typing import TypeAlias

from penstock.errors import DecodeError

KeyAndValue: TypeAlias = tuple[bytes, bytes | None]
"""The key and the value of a coordinator's record; a value of None makes a tombstone."""


def stored_version(value: bytes, newest: int, what: str) -> int:
    """Return the version (int16) at the beginning of a record's value.

    `newest` is the newest supported version; `what` describes the value in error messages.

    Raises:
        DecodeError: the version is negative or newer.
    """
    version = int.from_bytes(value[:2], "big", signed=True)
    if not 0 <= version <= newest or len(value) < 2:
        raise DecodeError(f"a stored {what} of version {version}; the newest known is {newest}")
    return version
