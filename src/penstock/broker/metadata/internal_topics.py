"""The names of the topics that a cluster keeps for itself."""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"
"""Committed offsets and groups."""

INTERNAL_TOPICS = frozenset((OFFSETS_TOPIC, "__transaction_state", "__share_group_state"))
"""Topics that Metadata marks as internal, and that clients cannot produce to."""
