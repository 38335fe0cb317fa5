"""The record that share consumers return: a record, and how often it was delivered."""

from __future__ import annotations

from penstock.client.record import Record
from penstock.common.hints import with_hints
from penstock.model import K, V


@with_hints("ShareRecord", leave=("__new__",))
class ShareRecord(Record[K, V]):
    """One record of a topic, locked for this consumer until it is acknowledged, or its lock runs out.

    The tuple of `penstock.Record`. `delivery_count` is how often somebody was given it, this time included.
    """

    # Instances have a dictionary: a tuple of nine would not be the tuple that programs unpack.
    delivery_count: int = 1
