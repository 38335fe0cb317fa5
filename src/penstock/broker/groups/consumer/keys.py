"""How the store reads the records of consumer groups (KIP-848).

Kept apart from `records`, which imports fourteen messages: most brokers never have such a group.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from penstock.broker.groups.consumer.key_types import CONSUMER_KEYS

if TYPE_CHECKING:
    from penstock.broker.groups.consumer.state import Change


class ConsumerRecords:
    """The records of consumer groups, as the store reads them."""

    key_types = CONSUMER_KEYS

    def read(self, key_type: int, key: bytes, value: bytes | None) -> tuple[Any, Change | None]:
        """Return what the record is about (the key's type and fields), and the change that it is.

        The change of a tombstone is None. `key` comes without its type.

        Raises:
            DecodeError: the record is damaged, or its value of a newer version than is supported.
        """
        from penstock.broker.groups.consumer.records import read_change

        return read_change(key_type, key, value)


def live_groups(stored: Mapping[tuple[int, str, str], Change | None]) -> Collection[str]:
    """Return the ids of the groups that have a record which is no tombstone, in the order of records."""
    return dict.fromkeys(key[1] for key, change in stored.items() if change is not None)
