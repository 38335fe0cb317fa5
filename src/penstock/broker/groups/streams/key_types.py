"""Which records of `__consumer_offsets` are those of streams groups (KIP-1071), by the type of their key."""

from __future__ import annotations

GROUP_KEY, MEMBER_KEY, TARGET_KEY, TARGET_MEMBER_KEY, CURRENT_KEY, TOPOLOGY_KEY = 17, 19, 20, 21, 22, 23

STREAMS_KEYS = frozenset((GROUP_KEY, MEMBER_KEY, TARGET_KEY, TARGET_MEMBER_KEY, CURRENT_KEY, TOPOLOGY_KEY))
