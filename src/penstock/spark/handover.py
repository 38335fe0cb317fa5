"""Reads the checkpoint of a streaming query, to switch between this source and the JVM's Kafka connector.

A checkpoint does not name the format of a source. The file `offsets/N` has the end offsets of micro-batch N,
one line for each source; `commits/N` exists if micro-batch N is complete; `sources/S/0`, which only the JVM's
Kafka connector writes, has the offsets at which source S began. The formats are Spark's: versions 1 and 2 of
its log of offsets, version 1 of the connector's file.

If the first micro-batch of a checkpoint is not complete, the connector can continue only from a copy that has
`sources/S/0` (`copy_for_kafka`). Otherwise it continues from the checkpoint itself.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ConfigError
from penstock.model import TopicPartition
from penstock.spark.source.planning import BEGINS_HERE, Offsets, offsets_from_json, offsets_to_json

FILE_BYTES_MAX = 64 << 20
"""The largest checkpoint file, in bytes, that is read: the offsets of a million partitions take 20 MB."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """The position of one source of a query, as the query's checkpoint stores it.

    `end` has the end offsets of the newest micro-batch; None if the source is not a Kafka source, or has
    planned nothing. `begin` has the start offsets of the first micro-batch, or None. Start offsets are in the
    log of offsets (written by this source), or in the file of the JVM's Kafka connector.
    """

    name: str
    end: Offsets | None
    begin: Offsets | None = None
    is_begin_in_log: bool = False
    is_begin_in_file: bool = False


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The contents of a checkpoint: the newest planned and complete micro-batch, and the sources."""

    path: Path
    query_id: str | None
    planned: int | None
    committed: int | None
    sources: tuple[SourceState, ...]

    @property
    def is_first_unfinished(self) -> bool:
        """True if no micro-batch is complete: the query then needs the offsets at which its sources began."""
        return self.committed is None

    def advice(self) -> list[str]:
        """Return sentences with the steps that are needed before this query continues with another source."""
        if self.planned is None and all(source.begin is None for source in self.sources):
            return ["No micro-batch was planned: the query begins as its options say, with either source."]
        if not self.is_first_unfinished:
            again = f"; micro-batch {self.planned} is run again" if self.planned != self.committed else ""
            return [f"Change the format and keep this checkpoint: either source goes on from here{again}."]
        lines = ["No micro-batch is through."]
        for source in self.sources:
            if source.begin is not None:
                if not source.is_begin_in_log:
                    offsets = json.dumps(offsets_to_json(source.begin), separators=(",", ":"))
                    lines.append(
                        f"With format penstock, source {source.name} needs the option startingOffsets "
                        f"until one is: {offsets}"
                    )
                if not source.is_begin_in_file:
                    lines.append(
                        f"With format kafka, source {source.name} goes on from a copy: "
                        "penstock spark checkpoint DIRECTORY --for-kafka COPY"
                    )
            elif source.end is not None:
                lines.append(
                    f"The checkpoint does not say where source {source.name} began: keep the options that "
                    "do. Where they say latest, let the format that planned it finish the micro-batch."
                )
        return lines


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint on this machine. Writes nothing.

    Raises:
        ConfigError: there is no checkpoint, or a file in it has an unknown format.
    """
    path = Path(path)
    if not (path / "metadata").is_file() and not (path / "offsets").is_dir():
        raise ConfigError(f"{path} is no checkpoint: it has neither a file metadata nor a directory offsets")
    planned, committed = _newest(path / "offsets"), _newest(path / "commits")
    ends = _ends(path / "offsets" / str(planned)) if planned is not None else {}
    files = {file.parent.name: file for file in path.glob("sources/*/0")}
    sources = []
    for name in [*ends, *(name for name in sorted(files) if name not in ends)]:
        document = ends.get(name)
        end = _offsets(document)
        in_file = _begin_in_file(files[name]) if name in files and (end is not None or not ends) else None
        in_log = end if document is not None and BEGINS_HERE in document else None
        begin = in_file if in_log is None else in_log
        sources.append(
            SourceState(name, end, begin, in_log is not None, in_file is not None and in_file == begin)
        )
    return Checkpoint(path, _query_id(path), planned, committed, tuple(sources))


def _query_id(path: Path) -> str | None:
    file = path / "metadata"
    if not file.is_file():
        return None
    document = _json(_text(file), file)
    found = document.get("id") if isinstance(document, dict) else None
    if not isinstance(found, str):
        raise ConfigError(f"{file} names no query: expected JSON with an id")
    return found


def _newest(directory: Path) -> int | None:
    """Return the highest number that names a file in a log directory of Spark, or None if there is none."""
    if not directory.is_dir():
        return None
    return max((int(file.name) for file in directory.iterdir() if file.name.isdecimal()), default=None)


def _ends(file: Path) -> dict[str, Mapping[str, object] | None]:
    """Return a dict from source name to the source's JSON object in `file`; None if it has none."""
    version, *lines = _text(file).split("\n")
    if version not in ("v1", "v2"):
        raise ConfigError(f"{file} is of version {version!r}; known are v1 and v2 of Spark's log of offsets")
    if not lines:
        raise ConfigError(f"{file} ends after its version")
    named = enumerate(lines[1:]) if version == "v1" else _named(lines[1:], file)
    found: dict[str, Mapping[str, object] | None] = {}
    for name, line in named:
        document = None if line == "-" else _json(line, file)
        found[str(name)] = document if isinstance(document, dict) else None
    return found


def _named(lines: Sequence[str], file: Path) -> list[tuple[str, str]]:
    pairs = []
    for line in lines:
        name, colon, offset = line.partition(":")
        if not colon:
            raise ConfigError(f"{file} has a line without a source: {line[:100]!r}")
        pairs.append((name, offset))
    return pairs


def _offsets(document: Mapping[str, object] | None) -> Offsets | None:
    """Return a dict from partition to offset, or None if `document` is not from a Kafka source."""
    if document is None or not all(isinstance(value, dict) for value in document.values()):
        return None
    try:
        return offsets_from_json(document)  # type: ignore[arg-type]
    except ConfigError:
        return None


def _begin_in_file(file: Path) -> Offsets:
    """Return the offsets in the connector's file, which is a zero byte, ``v1`` and JSON, or only JSON."""
    text = _text(file).removeprefix("\0")
    if not text.startswith("{"):
        version, _, text = text.partition("\n")
        if version != "v1":
            raise ConfigError(
                f"{file} is of version {version[:20]!r}; known is v1 of the Kafka connector's file"
            )
    document = _json(text, file)
    if not isinstance(document, dict):
        raise ConfigError(f"{file} has no offsets per topic and partition")
    return offsets_from_json(document)


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            raise ConfigError(
                f"{file} is larger than {FILE_BYTES_MAX} bytes, which no file of a checkpoint is"
            )
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None


def _json(text: str, file: Path) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError(f"{file} has no JSON where offsets are expected: {text[:100]!r}") from None
    return found


def partitions_by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Return a dict from topic to its number of partitions."""
    counts: dict[str, int] = {}
    for tp in sorted(offsets):
        counts[tp.topic] = counts.get(tp.topic, 0) + 1
    return counts


def copy_for_kafka(path: str | Path, copy: str | Path) -> Checkpoint:
    """Copy a checkpoint whose first micro-batch is incomplete, and add the file that the connector needs.

    The query must not be running. The checkpoint stays as it is; the copy is made completely or not at all.
    Returns the checkpoint read from the copy.

    Raises:
        ConfigError: no copy is needed, the checkpoint lacks the start of a source or has another format, or
            `copy` exists already.
    """
    before = read_checkpoint(path)
    copy = Path(copy)
    if not before.is_first_unfinished:
        raise ConfigError(f"{path} needs no copy: change the format, and the connector goes on from it")
    begins = {source.name: source.begin for source in before.sources if source.begin is not None}
    unknown = [source.name for source in before.sources if source.end is not None and source.begin is None]
    if unknown or not begins:
        raise ConfigError(
            f"{path} does not say where source {', '.join(unknown) or 0} began: let the query finish its "
            "first micro-batch with the source that planned it"
        )
    if copy.exists():
        raise ConfigError(f"{copy} is there already: name a directory that is not")
    part = copy.with_name(copy.name + ".part")
    if part.exists():
        raise ConfigError(f"{part} is left from a copy that was interrupted: remove it")
    try:
        shutil.copytree(path, part)
        for name, begin in begins.items():
            _write_begin(part / "sources" / name, begin)
        read_checkpoint(part)
        os.rename(part, copy)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return read_checkpoint(copy)


def _write_begin(directory: Path, begin: Offsets) -> None:
    """Write a source's first offsets in the Kafka connector's format: zero byte, version, compact JSON."""
    directory.mkdir(parents=True, exist_ok=True)
    document = json.dumps(offsets_to_json(begin), separators=(",", ":"))
    # Hadoop's checksum of what was there would not fit.
    (directory / ".0.crc").unlink(missing_ok=True)
    with (directory / "0").open("wb") as file:
        file.write(b"\0v1\n" + document.encode())
        file.flush()
        os.fsync(file.fileno())
