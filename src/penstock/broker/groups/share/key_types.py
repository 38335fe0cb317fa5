"""The key types of the records of share groups (KIP-932) in `__consumer_offsets`."""

from __future__ import annotations

MEMBER_KEY, GROUP_KEY, TARGET_KEY, TARGET_MEMBER_KEY, CURRENT_KEY, PARTITIONS_KEY = 10, 11, 12, 13, 14, 15

SHARE_KEYS = frozenset((MEMBER_KEY, GROUP_KEY, TARGET_KEY, TARGET_MEMBER_KEY, CURRENT_KEY, PARTITIONS_KEY))
