"""The records of `__transaction_state`, in exactly the format of Apache Kafka.

A key is a version (int16, 0) and the transactional id; a value is a version (int16, 0 or 1) and the state
of the id. A record without a value is a tombstone: the id has expired.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.broker.coordination.records import KeyAndValue, stored_version
from penstock.errors import DecodeError
from penstock.protocol.messages.transaction_log_key import TransactionLogKey
from penstock.protocol.messages.transaction_log_value import TransactionLogValue

KEY_VERSION = 0
TAGGED_VALUE_VERSION = 1
"""The flexible version of values, written since `transaction.version` 1.

This version adds the previous and the next producer id, and the client's transaction version.
"""


class StoredTransaction(NamedTuple):
    """One parsed record: a transactional id, and its value or None for a tombstone."""

    transactional_id: str
    value: TransactionLogValue | None


def value_version(feature_level: int) -> int:
    """Return the version in which record values are written at a level of `transaction.version`."""
    return TAGGED_VALUE_VERSION if feature_level >= 1 else 0


def transaction_record(transactional_id: str, value: TransactionLogValue | None, version: int) -> KeyAndValue:
    """Return the key and value of a transactional id's record, or of its tombstone if `value` is None."""
    key = KEY_VERSION.to_bytes(2, "big") + TransactionLogKey(transactional_id=transactional_id).encode(
        KEY_VERSION
    )
    if value is None:
        return key, None
    return key, version.to_bytes(2, "big") + value.encode(version)


def read_record(key: bytes | None, value: bytes | None) -> StoredTransaction | None:
    """Return the parsed record, or None if its key has an unknown version.

    Raises:
        DecodeError: the record is damaged, or its value has an unknown, newer version.
    """
    if key is None or len(key) < 2:
        raise DecodeError("a record of __transaction_state without a key")
    if int.from_bytes(key[:2], "big", signed=True) != KEY_VERSION:
        return None
    transactional_id = TransactionLogKey.decode(key[2:], KEY_VERSION).transactional_id
    if value is None:
        return StoredTransaction(transactional_id, None)
    version = stored_version(value, TransactionLogValue.VERSIONS[1], "transaction")
    return StoredTransaction(transactional_id, TransactionLogValue.decode(value[2:], version))
