"""What a large Produce request holds beside its records, found without making an object of any of it.

Records stay bytes, whatever their number; topics and partitions become objects fifty times their size.
A request of the greatest size that names nothing but empty topics would become gigabytes.
"""

from __future__ import annotations

from penstock.protocol.runtime import read_uvarint

FLEXIBLE_SINCE = 9
TRANSACTIONAL_SINCE = 3
TOPIC_IDS_SINCE = 13

_ACKS_AND_TIMEOUT_BYTES = 6
_UUID_BYTES = 16
_INDEX_BYTES = 4


def is_mostly_records(frame: memoryview, position: int, version: int, limit_bytes: int) -> bool:
    """Whether all but `limit_bytes` of a Produce request's body, from `position` on, are records.

    What cannot be read is left for the decoder to complain of.
    """
    try:
        return _beside_records(frame, position, version, limit_bytes) <= limit_bytes
    except IndexError:
        return True


def _beside_records(frame: memoryview, start: int, version: int, limit_bytes: int) -> int:
    """Bytes of the body that are no records; counting ends where there are more than `limit_bytes`."""
    flexible = version >= FLEXIBLE_SINCE

    def length_at(position: int, width: int) -> tuple[int, int]:
        """A length or count, and the position behind it; nothing has length 0."""
        if flexible:
            length, position = read_uvarint(frame, position)
            return max(length - 1, 0), position
        if position + width > len(frame):
            raise IndexError
        length = int.from_bytes(frame[position : position + width], "big", signed=True)
        return max(length, 0), position + width

    def behind_tags(position: int) -> int:
        if not flexible:
            return position
        count, position = read_uvarint(frame, position)
        for _ in range(count):
            _, position = read_uvarint(frame, position)
            size, position = read_uvarint(frame, position)
            position += size
        return position

    position, records = start, 0
    if version >= TRANSACTIONAL_SINCE:
        length, position = length_at(position, 2)
        position += length
    topics, position = length_at(position + _ACKS_AND_TIMEOUT_BYTES, 4)
    for _ in range(topics):
        if version >= TOPIC_IDS_SINCE:
            position += _UUID_BYTES
        else:
            length, position = length_at(position, 2)
            position += length
        partitions, position = length_at(position, 4)
        for _ in range(partitions):
            length, position = length_at(position + _INDEX_BYTES, 4)
            records += length
            position = behind_tags(position + length)
            if position - start - records > limit_bytes:
                return position - start - records
        position = behind_tags(position)
        if position - start - records > limit_bytes:
            return position - start - records
    return len(frame) - start - records
