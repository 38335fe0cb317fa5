"""What stands beside a position in the target: the ids of both topics, and what the map of offsets has."""

from __future__ import annotations

import json
import re
from typing import NamedTuple
from zlib import crc32

from penstock.client.cluster.metadata import NO_TOPIC_ID
from penstock.protocol.uuid import uuid_from_text

PREFIX = "penstock-mirror-"
"""How the names of copies begin that were given none."""

TOPIC_NAME_MAX = 249
MAP_SUFFIX = "-offsets"


def copy_name(cluster_id: str | None, topic: str) -> str:
    """Return the name of a copy that was given none: by the cluster that it copies from, and the topic."""
    return f"{PREFIX}{cluster_id or 'source'}-{topic}"


def map_topic_name(name: str) -> str:
    """Return the topic in the target that has the map of the copy `name`.

    Groups may have names that topics may not: what does not fit is replaced, and a checksum added.
    """
    fitting = re.sub(r"[^A-Za-z0-9._-]", "_", name)[: TOPIC_NAME_MAX - len(MAP_SUFFIX) - 9]
    checksum = "" if fitting == name else f"-{crc32(name.encode()):08x}"
    return f"{fitting}{checksum}{MAP_SUFFIX}"


def topic_id_bytes(topic_id: str | None) -> bytes:
    """Return the 16 bytes of an id; those of no id for None. Raises ValueError where it is no id."""
    return NO_TOPIC_ID if topic_id is None else uuid_from_text(topic_id)


class CopyNote(NamedTuple):
    """Which topics a copy is of and into, and where its map begins and ends.

    An id is None where the brokers have none (Kafka 2.8 brought them), the map where another program, or an
    older release, has written the note.
    """

    source: str | None = None
    target: str | None = None
    map: tuple[int, int] | None = None

    def to_json(self) -> str:
        """Return the note as metadata of a committed offset; empty where it says nothing."""
        ids = {"source": self.source, "target": self.target} if self.source or self.target else {}
        found = ids if self.map is None else {**ids, "map": self.map}
        return json.dumps(found) if found else ""

    @classmethod
    def from_json(cls, text: str) -> CopyNote:
        """Return the inverse of `to_json`; an empty note for text of others."""
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
