"""The names of Kafka's internal topics, in which brokers keep their own state."""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"

METADATA_TOPIC = "__cluster_metadata"

METADATA_TOPIC_ID = bytes(15) + b"\x01"
"""The topic id of the metadata log, the only topic id that is fixed (KIP-516)."""

TRANSACTIONS_TOPIC = "__transaction_state"

SHARE_STATE_TOPIC = "__share_group_state"

WITHOUT_TRANSACTIONS = (TRANSACTIONS_TOPIC, METADATA_TOPIC)
"""Topics whose records never belong to a transaction."""

INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC))
"""The internal topics that clients may read but not delete. The metadata log is not among them, since
clients cannot access it.
"""
