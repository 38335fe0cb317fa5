"""Where a query stands, by the checkpoint that Spark keeps: what is planned, what is done, and since when.

A checkpoint has a file for each micro-batch in ``offsets`` (where it ends, written before it runs) and one of
the same name in ``commits`` (written when it is through). Only Spark writes them; here they are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import ConfigError, StorageError
from penstock.model import TopicPartition
from penstock.spark.source.planning import Offsets, offsets_from_json

FILE_BYTES_MAX = 16 * 1024 * 1024
"""The largest file of a checkpoint that is read: offsets of some 500,000 topic partitions."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a query is.

    `batch_id` is the last micro-batch that is through, and `offsets` where it ended; None and empty before
    the first. `done_at` is when it was through, in seconds since 1970. `planned_id` is the last one that was
    planned: one more than `batch_id` while a micro-batch runs.
    """

    query_id: str
    batch_id: int | None
    planned_id: int | None
    offsets: Mapping[TopicPartition, int]
    done_at: float | None

    @property
    def position(self) -> int:
        """The sum of the offsets, which grows by the records that are read."""
        return sum(self.offsets.values())


def is_checkpoint(directory: Path) -> bool:
    """Whether a query of Spark has its checkpoint there."""
    return (directory / "metadata").is_file() and (directory / "offsets").is_dir()


def standing_of(directory: Path) -> Standing:
    """What the checkpoint in `directory` says now.

    Raises:
        ConfigError: there is no checkpoint of a streaming query, or one of a form that is not known.
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
    offsets: Offsets = {}
    done_at = None
    if done is not None:
        offsets = _offsets(directory / "offsets" / str(done))
        try:
            done_at = (directory / "commits" / str(done)).stat().st_mtime
        except FileNotFoundError:
            done_at = None
    return Standing(query_id, done, planned, offsets, done_at)


def _last(directory: Path) -> int | None:
    """The highest number that is the name of a file there."""
    if not directory.is_dir():
        return None
    return max((int(path.name) for path in directory.iterdir() if path.name.isdecimal()), default=None)


def _offsets(path: Path) -> Offsets:
    """The offsets of every source that reads topics. Spark removes old files: a missing one has none."""
    try:
        lines = _text(path).splitlines()
    except FileNotFoundError:
        return {}
    if not lines or lines[0] != "v1":
        known = lines[0] if lines else ""
        raise ConfigError(f"{path} has version {known[:20]!r}, and only 'v1' is known: a newer Spark?")
    offsets: Offsets = {}
    for line in lines[2:]:
        offsets |= topic_offsets(line)
    return offsets


def topic_offsets(document: Any) -> Offsets:
    """Offsets of a source, as JSON text or as its object; empty where it does not read topics."""
    try:
        value = json.loads(document) if isinstance(document, str) else document
        return offsets_from_json(value) if isinstance(value, dict) else {}
    except (ValueError, ConfigError):
        return {}


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
