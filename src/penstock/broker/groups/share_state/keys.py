"""The key of a share partition, for which the share coordinator keeps a state."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

TOPIC_ID_BYTES = 16


class ShareKey(NamedTuple):
    """The key of a share partition: a share group, a topic and a partition."""

    group_id: str
    topic_id: bytes
    partition: int

    @property
    def text(self) -> str:
        """Return the key for FindCoordinator: ``group:topicId:partition``, with the id in URL-safe base64.

        Its hash determines the partition of `__share_group_state` that has the state.
        """
        topic_id = base64.urlsafe_b64encode(self.topic_id).decode("ascii").rstrip("=")
        return f"{self.group_id}:{topic_id}:{self.partition}"


def parse_key(text: str) -> ShareKey:
    """Return the share partition that a key in FindCoordinator identifies. The group's id may contain colons.

    Raises:
        ValueError: the text is not such a key.
    """
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0]:
        raise ValueError("a key of a share partition is group:topicId:partition")
    group_id, coded, partition = parts
    try:
        topic_id = base64.b64decode(f"{coded.rstrip('=')}==", b"-_", validate=True)
    except (binascii.Error, ValueError):
        topic_id = b""
    if len(topic_id) != TOPIC_ID_BYTES:
        raise ValueError(f"{coded!r} is no topic id: 22 characters of base64")
    return ShareKey(group_id, topic_id, int(partition))
