"""Which records of `__consumer_offsets` are those of consumer groups (KIP-848), by the type of their key."""

from __future__ import annotations

GROUP_KEY, METADATA_KEY, MEMBER_KEY, TARGET_KEY, TARGET_MEMBER_KEY, CURRENT_KEY, REGEX_KEY = (
    3,
    4,
    5,
    6,
    7,
    8,
    16,
)

CONSUMER_KEYS = frozenset(
    (GROUP_KEY, METADATA_KEY, MEMBER_KEY, TARGET_KEY, TARGET_MEMBER_KEY, CURRENT_KEY, REGEX_KEY)
)
