"""The key types of the records of streams groups (KIP-1071) in `__consumer_offsets`."""

from __future__ import annotations

GROUP_KEY, MEMBER_KEY, TARGET_KEY, TARGET_MEMBER_KEY, CURRENT_KEY, TOPOLOGY_KEY = 17, 19, 20, 21, 22, 23

STREAMS_KEYS = frozenset((GROUP_KEY, MEMBER_KEY, TARGET_KEY, TARGET_MEMBER_KEY, CURRENT_KEY, TOPOLOGY_KEY))
