"""Read and write Kafka's checkpoint files: a version, a count, and for every entry one line of words.

Four files have this form: in a data directory `recovery-point-offset-checkpoint`,
`log-start-offset-checkpoint` and `cleaner-offset-checkpoint`, the end of compaction (topic, partition, offset
in each); in every partition's directory `leader-epoch-checkpoint` (epoch, start offset).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.errors import StorageError
from penstock.log.directory.files import read_text, write_text
from penstock.model import TopicPartition

VERSION = 0

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"


def read_checkpoint(path: str, words: int) -> list[list[str]]:
    """Return the entries of a checkpoint file, each a list of `words` words; [] if it is missing or empty.

    Raises:
        StorageError: unknown version, a wrong number of entries, or a line with too few or too many words.
    """
    text = read_text(path)
    if not text:
        return []
    lines = text.splitlines()
    if lines[0].strip() != str(VERSION):
        raise StorageError(f"{path} has version {lines[0]!r}, only {VERSION} is known")
    entries = [line.split() for line in lines[2:]]
    if len(lines) < 2 or lines[1].strip() != str(len(entries)):
        raise StorageError(f"{path} holds {len(entries)} entries, its second line says otherwise")
    for entry in entries:
        if len(entry) != words:
            raise StorageError(f"{path} has a malformed line: {' '.join(entry)!r}")
    return entries


def write_checkpoint(path: str, entries: Iterable[Iterable[object]], *, sync: bool) -> None:
    """Replace a checkpoint file with one that contains these entries; with `sync`, flush it to disk."""
    lines = [" ".join(map(str, entry)) for entry in entries]
    write_text(path, "\n".join((str(VERSION), str(len(lines)), *lines, "")), sync=sync)


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """Return a dict from partition to its offset in a checkpoint file.

    Raises:
        StorageError: the file cannot be read, or is malformed.
    """
    offsets = {}
    for topic, partition, offset in read_checkpoint(path, 3):
        try:
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise StorageError(f"{path} has a malformed line: '{topic} {partition} {offset}'") from None
    return offsets


def write_offsets(path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a checkpoint file with one that contains these offsets of partitions, and flush it to disk."""
    write_checkpoint(path, ((*partition, offset) for partition, offset in sorted(offsets.items())), sync=True)
