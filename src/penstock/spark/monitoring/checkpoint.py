"""Reads the position of a query from its Spark checkpoint: planned and complete micro-batches.

A checkpoint has a file for each micro-batch in ``offsets`` (where it ends, written before it runs) and one of
the same name in ``commits`` (written when it is complete). Only Spark writes them; this module reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import ConfigError, StorageError
from penstock.model import TopicPartition
from penstock.spark.source.planning import StreamOffsets

FILE_BYTES_MAX = 16 * 1024 * 1024
"""The largest checkpoint file, in bytes, that is read: the offsets of some 500,000 topic partitions."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The position of a query, as its checkpoint stores it.

    `batch_id` is the last complete micro-batch, and `offsets` are its end offsets; None and empty before the
    first. `done_at` is the time of its completion in seconds since 1970. `planned_id` is the last planned
    micro-batch: one more than `batch_id` while a micro-batch runs.
    """

    query_id: str
    batch_id: int | None
    planned_id: int | None
    offsets: Mapping[TopicPartition, int]
    done_at: float | None
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    """A dict from topic to topic id, if the checkpoint has topic ids."""

    @property
    def position(self) -> int:
        """The sum of the end offsets of all partitions; its growth is the number of records read."""
        return sum(self.offsets.values())


def is_checkpoint(directory: Path) -> bool:
    """Return True if `directory` is the checkpoint of a Spark query."""
    return (directory / "metadata").is_file() and (directory / "offsets").is_dir()


def standing_of(directory: Path) -> Standing:
    """Return the current position of the query whose checkpoint is `directory`.

    Raises:
        ConfigError: there is no checkpoint of a streaming query, or its form is unknown.
        StorageError: a file cannot be read.
    """
    if not is_checkpoint(directory):
        raise ConfigError(
            f"{directory} is no checkpoint of a streaming query: it has no 'metadata' and no 'offsets'. "
            "Give the directory that the query has as checkpointLocation"
        )
    try:
        query_id = str(json.loads(_text(directory / "metadata"))["id"])
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{directory / 'metadata'} holds no id of a query: another program's file?"
        ) from None
    done, planned = _last(directory / "commits"), _last(directory / "offsets")
    at = StreamOffsets({})
    done_at = None
    if done is not None:
        at = _offsets(directory / "offsets" / str(done))
        try:
            done_at = (directory / "commits" / str(done)).stat().st_mtime
        except FileNotFoundError:
            done_at = None
    return Standing(query_id, done, planned, at.offsets, done_at, at.topic_ids)


def _last(directory: Path) -> int | None:
    """Return the highest number that names a file in `directory`, or None if no number does."""
    if not directory.is_dir():
        return None
    return max((int(path.name) for path in directory.iterdir() if path.name.isdecimal()), default=None)


def _offsets(path: Path) -> StreamOffsets:
    """Return the offsets of every source that reads topics; empty if Spark has removed the file."""
    try:
        lines = _text(path).splitlines()
    except FileNotFoundError:
        return StreamOffsets({})
    if not lines or lines[0] != "v1":
        known = lines[0] if lines else ""
        raise ConfigError(f"{path} has version {known[:20]!r}, and only 'v1' is known: a newer Spark?")
    return topic_offsets(lines[2:])


def topic_offsets(documents: Iterable[Any]) -> StreamOffsets:
    """Return the offsets in `documents`, one per source: JSON text or an object. Skip other sources."""
    found = StreamOffsets({})
    for document in documents:
        with suppress(ValueError, ConfigError):
            value = json.loads(document) if isinstance(document, str) else document
            if isinstance(value, dict):
                at = StreamOffsets.from_json(value)
                found = StreamOffsets({**found.offsets, **at.offsets}, {**found.topic_ids, **at.topic_ids})
    return found


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > FILE_BYTES_MAX:
        raise StorageError(f"{path} is larger than {FILE_BYTES_MAX} bytes: no file of a checkpoint")
    return data.decode("utf-8", errors="replace")
