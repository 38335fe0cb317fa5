"""The key types of the records of consumer groups (KIP-848) in `__consumer_offsets`."""

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
