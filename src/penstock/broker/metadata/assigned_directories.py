"""Which directory each partition was put into, by the metadata records that this broker writes.

A look at a few bytes of each record, since every start takes it: codecs would take longer to compile than
all the rest. The layouts are those of TopicRecord 0, PartitionRecord 1 and RemoveTopicRecord 0 (KIP-631,
KIP-858).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.records.format.varint import read_unsigned

_TOPIC, _PARTITION, _REMOVE_TOPIC = bytes((1, 2, 0)), bytes((1, 3, 1)), bytes((1, 9, 0))
"""What frames of these records begin with: frame version, type, version."""

_ONE_DIRECTORY = 2
"""The length of a compact array of one element, which is one more than that."""

_NO_DIRECTORY = {bytes(15) + bytes((number,)) for number in range(100)}
"""Reserved ids, which are of no directory: 0 of one that is not assigned yet, as in all records of a cluster
of several brokers; 1 of one that is lost, 2 of one that is being migrated (KIP-858).
"""


def assigned_directories(values: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Return topic-partition and id of its directory, for each partition of `values` that is not deleted.

    `values` are metadata records in their frames. Records in other versions, which Apache Kafka has written,
    are passed over.
    """
    names: dict[bytes, str] = {}
    found: dict[bytes, dict[int, bytes]] = {}
    for value in values:
        head = value[:3]
        if head == _TOPIC:
            length, position = read_unsigned(value, 3)
            end = position + length - 1
            names[value[end : end + 16]] = value[position:end].decode()
        elif head == _PARTITION and value[-18:-17] == bytes((_ONE_DIRECTORY,)) and value[-1:] == b"\0":
            found.setdefault(value[7:23], {})[int.from_bytes(value[3:7], "big")] = value[-17:-1]
        elif head == _REMOVE_TOPIC:
            found.pop(value[3:19], None)
    for topic_id, partitions in found.items():
        for index, directory_id in partitions.items():
            if directory_id not in _NO_DIRECTORY:
                yield f"{names.get(topic_id, '?')}-{index}", directory_id
