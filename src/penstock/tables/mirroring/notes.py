"""The metadata that a copy commits with its position: both topic ids, and the bounds of the offset map."""

from __future__ import annotations

import json
import re
from typing import NamedTuple
from zlib import crc32

from penstock.client.cluster.metadata import NO_TOPIC_ID
from penstock.protocol.uuid import uuid_from_text

PREFIX = "penstock-mirror-"
"""The prefix of the default names of copies."""

TOPIC_NAME_MAX = 249
MAP_SUFFIX = "-offsets"


def copy_name(cluster_id: str | None, topic: str) -> str:
    """Return the default name of a copy: the prefix, the id of the source cluster, and the topic."""
    return f"{PREFIX}{cluster_id or 'source'}-{topic}"


def map_topic_name(name: str) -> str:
    """Return the topic in the target that stores the offset map of the copy `name`.

    Characters of the copy's name that a topic name cannot have are replaced; then a checksum is added.
    """
    fitting = re.sub(r"[^A-Za-z0-9._-]", "_", name)[: TOPIC_NAME_MAX - len(MAP_SUFFIX) - 9]
    checksum = "" if fitting == name else f"-{crc32(name.encode()):08x}"
    return f"{fitting}{checksum}{MAP_SUFFIX}"


def topic_id_bytes(topic_id: str | None) -> bytes:
    """Return the 16 bytes of a topic id, or the zero id for None. Raises ValueError if it is no id."""
    return NO_TOPIC_ID if topic_id is None else uuid_from_text(topic_id)


class CopyNote(NamedTuple):
    """The metadata that a copy commits with a position: both topic ids, and the bounds of its offset map.

    An id is None if the broker has none (Kafka before 2.8); the map is None if another program or an older
    release has written the metadata.
    """

    source: str | None = None
    target: str | None = None
    map: tuple[int, int] | None = None

    def to_json(self) -> str:
        """Return this object as the metadata of a committed offset: JSON, or "" if all fields are None."""
        ids = {"source": self.source, "target": self.target} if self.source or self.target else {}
        found = ids if self.map is None else {**ids, "map": self.map}
        return json.dumps(found) if found else ""

    @classmethod
    def from_json(cls, text: str) -> CopyNote:
        """Return the `CopyNote` in the metadata of a committed offset; an empty one for any other text."""
        try:
            found = json.loads(text)
            ids = found.get("source"), found.get("target")
            for each in ids:
                topic_id_bytes(each)
            known = found.get("map")
            if known is not None:
                floor, end = known
                if not (isinstance(floor, int) and isinstance(end, int) and 0 <= floor <= end):
                    known = None
        except (ValueError, AttributeError, TypeError):
            return cls()
        return cls(*ids, None if known is None else (floor, end))
