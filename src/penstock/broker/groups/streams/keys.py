"""How the store reads the records of streams groups (KIP-1071).

Kept apart from `records`, which imports twelve messages: most brokers never have such a group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.groups.streams.key_types import STREAMS_KEYS

if TYPE_CHECKING:
    from penstock.broker.groups.streams.state import Change


class StreamsRecords:
    """The records of streams groups, as the store reads them."""

    key_types = STREAMS_KEYS

    def read(self, key_type: int, key: bytes, value: bytes | None) -> tuple[Any, Change | None]:
        """Return what the record is about (the key's type and fields), and the change that it is.

        The change of a tombstone is None. `key` comes without its type.

        Raises:
            DecodeError: the record is damaged, or its value of a newer version than is supported.
        """
        from penstock.broker.groups.streams.records import read_change

        return read_change(key_type, key, value)
