"""Which records of `__consumer_offsets` are those of share groups (KIP-932), by the type of their key."""

from __future__ import annotations

MEMBER_KEY, GROUP_KEY, TARGET_KEY, TARGET_MEMBER_KEY, CURRENT_KEY, PARTITIONS_KEY = 10, 11, 12, 13, 14, 15

SHARE_KEYS = frozenset((MEMBER_KEY, GROUP_KEY, TARGET_KEY, TARGET_MEMBER_KEY, CURRENT_KEY, PARTITIONS_KEY))
