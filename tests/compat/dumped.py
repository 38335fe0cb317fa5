"""Print the files of a data directory as lines: with kafka-dump-log, and with Penstock's own readers.

Tests compare the lines of the two.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compat.peers import java, maven_classpath
from penstock.broker.metadata.metadata_log import record_class, record_head
from penstock.broker.partitions.producers.aborted_index import AbortedIndex
from penstock.broker.partitions.producers.producer_snapshots import decode
from penstock.log.directory.metadata_snapshots import control_kind
from penstock.log.disk.data_directory import find_partitions
from penstock.log.segments.index import OffsetIndex, TimeIndex
from penstock.model import Record, TimestampType
from penstock.protocol import messages
from penstock.protocol.inspect.json_form import to_json
from penstock.protocol.message import Message
from penstock.records.batch import COMMIT_MARKER, decode_batch, read_marker
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import BatchHeader, read_header, split_batches, verify_crc

DUMP = "org.apache.kafka.tools.DumpLogSegments"

DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}
"""A dict from an internal topic to the kafka-dump-log option that decodes its records."""

CONTROLS = {
    2: ("LeaderChange: ", messages.LeaderChangeMessage),
    3: ("SnapshotHeader ", messages.SnapshotHeaderRecord),
    4: ("SnapshotFooter ", messages.SnapshotFooterRecord),
    5: ("KRaftVersion ", messages.KRaftVersionRecord),
    6: ("KRaftVoters ", messages.VotersRecord),
}
"""A dict from a control record's type in the metadata log to its name in kafka-dump-log and its class."""


MEMBERSHIP: dict[str, type[Message]] = {
    "subscription": messages.ConsumerProtocolSubscription,
    "assignment": messages.ConsumerProtocolAssignment,
}
"""Schemas of the byte fields in a classic group's members, where the members are consumers."""


def dump_log(files: Sequence[Path], *words: str, version: str = "4.3.0") -> dict[Path, list[str]]:
    """Return the lines that kafka-dump-log prints for each file. Fail if the tool fails."""
    named = ",".join(map(str, files))
    classpath = maven_classpath(f"kafka-{version}")
    asked = (*words, "--print-data-log", "--deep-iteration", "--files", named)
    done = java(classpath, DUMP, *asked, timeout_s=300, check=True)
    said: dict[Path, list[str]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("Dumping "):
            said[Path(line.removeprefix("Dumping "))] = lines = []
        else:
            lines.append(line)
    return said


def files_of(directory: Path) -> dict[str, list[Path]]:
    """Return the files of a data directory that kafka-dump-log can read, keyed by their decoder option.

    The key is an empty string for files that need no decoder.
    """
    found: dict[str, list[Path]] = {}
    for partition, path in find_partitions(str(directory)).items():
        for file in sorted(Path(path).iterdir()):
            if file.suffix in (".log", ".checkpoint"):
                found.setdefault(DECODERS.get(partition.topic, ""), []).append(file)
            elif file.suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
                found.setdefault("", []).append(file)
    return found


def our_lines(file: Path) -> list[str]:
    """Return the content of a file, read with Penstock's readers, as kafka-dump-log would print it."""
    topic = file.parent.name.rpartition("-")[0]
    if file.suffix in (".log", ".checkpoint"):
        return list(_log_lines(file, topic))
    base = int(file.stem)
    if file.suffix == ".index" and not file.stat().st_size:
        return [f"{file} is empty."]
    if file.suffix == ".index":
        offsets = OffsetIndex.load(str(file), base, file.with_suffix(".log").stat().st_size)
        pairs = zip(offsets.offsets, offsets.positions, strict=True)
        return [f"offset: {base + offset} position: {position}" for offset, position in pairs]
    if file.suffix == ".timeindex":
        times = TimeIndex.load(str(file), base)
        entries = zip(times.timestamps, times.offsets, strict=True)
        return [f"timestamp: {timestamp} offset: {base + offset}" for timestamp, offset in entries]
    if file.suffix == ".txnindex":
        return _aborted_lines(file, base)
    assert file.suffix == ".snapshot"
    return list(_producer_lines(file))


def _log_lines(file: Path, topic: str) -> Iterator[str]:
    if file.suffix == ".checkpoint":
        end_offset, epoch = file.stem.split("-")
        yield f"Snapshot end offset: {int(end_offset)}, epoch: {int(epoch)}"
    else:
        yield f"Log starting offset: {int(file.stem)}"
    data = file.read_bytes()
    for start, end, _ in split_batches(data):
        verify_crc(data, start, end)
        header = read_header(data, start)
        yield _batch_line(header, start)
        sequence = header.base_sequence
        for row in decode_batch(data, start, end, topic, 0):
            yield _record_line(row, header, sequence) + _contents(row, header, data[start:end], topic)
            sequence += sequence >= 0


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _time_name(kind: TimestampType) -> str:
    return "LogAppendTime" if kind is TimestampType.LOG_APPEND_TIME else "CreateTime"


def _batch_line(header: BatchHeader, position: int) -> str:
    horizon = f"[{header.base_timestamp}]" if header.has_delete_horizon else ".empty"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {_flag(header.is_transactional)} isControl: {_flag(header.is_control)} "
        f"deleteHorizonMs: OptionalLong{horizon} position: {position} "
        f"{_time_name(header.timestamp_type)}: {header.max_timestamp} size: {header.size} "
        f"magic: {header.magic} compresscodec: {CompressionCodec(header.codec).name.lower()} "
        f"crc: {header.crc} "
        "isvalid: true"
    )


def _record_line(row: Record, header: BatchHeader, sequence: int) -> str:
    key_size, value_size = (-1 if each is None else len(each) for each in (row.key, row.value))
    names = ",".join(name for name, _ in row.headers)
    return (
        f"| offset: {row.offset} {_time_name(header.timestamp_type)}: {row.timestamp} keySize: {key_size} "
        f"valueSize: {value_size} sequence: {sequence} headerKeys: [{names}]"
    )


def _contents(row: Record, header: BatchHeader, batch: bytes, topic: str) -> str:
    if header.is_control:
        kind = control_kind(row.key)
        if kind in CONTROLS:
            name, message_class = CONTROLS[kind]
            value = row.value or b""
            return f" {name}{_json(_decoded(message_class, value, value[:2]))}"
        marker, epoch = read_marker(batch, 0, len(batch))
        return f" endTxnMarker: {'COMMIT' if marker == COMMIT_MARKER else 'ABORT'} coordinatorEpoch: {epoch}"
    if topic == "__cluster_metadata":
        return f" payload: {_json(_metadata(row.value or b''))}"
    if topic in DECODERS:
        key, value = KEYED[topic](row.key or b"", row.value)
        return f" key: {_json(key)} payload: {'<DELETE>' if value is None else _json(value)}"
    said = (("key", row.key), ("payload", row.value))
    return "".join(f" {name}: {each.decode()}" for name, each in said if each is not None)


def _json(form: object) -> str:
    return json.dumps(form, separators=(",", ":"), ensure_ascii=False)


def _decoded(message_class: type[Message], value: bytes, version_in: bytes) -> dict[str, Any]:
    """Decode a message into its JSON form; `version_in` are the two bytes that hold its version."""
    version = int.from_bytes(version_in, "big")
    return to_json(message_class.decode(value, version), version)


def _metadata(value: bytes) -> dict[str, Any]:
    key, version, position = record_head(value)
    message_class = record_class(key)
    assert message_class is not None
    form = to_json(message_class.decode(value[position:], version), version)
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", message_class.NAME).upper()
    return {"type": name, "version": version, "data": form}


def _versioned(message_class: type[Message], data: bytes, word: str) -> dict[str, Any]:
    """Decode a message that follows two bytes; these are its version if `word` is ``version``."""
    number = int.from_bytes(data[:2], "big")
    version = number if word == "version" else 0
    return {word: str(number), "data": to_json(message_class.decode(data[2:], version), version)}


def _offsets(key: bytes, value: bytes | None) -> tuple[dict[str, Any], dict[str, Any] | None]:
    kinds = {
        1: (messages.OffsetCommitKey, messages.OffsetCommitValue),
        2: (messages.GroupMetadataKey, messages.GroupMetadataValue),
    }
    key_class, value_class = kinds[int.from_bytes(key[:2], "big")]
    form = None if value is None else _versioned(value_class, value, "version")
    if form is not None and form["data"].get("protocolType") == "consumer":
        for member in form["data"]["members"]:
            for name, message_class in MEMBERSHIP.items():
                data = base64.b64decode(member[name])
                member[name] = _decoded(message_class, data[2:], data[:2]) if data else ""
    return _versioned(key_class, key, "type"), form


def _transactions(key: bytes, value: bytes | None) -> tuple[dict[str, Any], dict[str, Any] | None]:
    form = None if value is None else _versioned(messages.TransactionLogValue, value, "version")
    return _versioned(messages.TransactionLogKey, key, "type"), form


KEYED = {"__consumer_offsets": _offsets, "__transaction_state": _transactions}


def _aborted_lines(file: Path, base: int) -> list[str]:
    """Return a line for each aborted transaction whose marker is in the segment that begins at `base`."""
    index = AbortedIndex(str(file.parent))
    index.load()
    next_bases = [int(path.stem) for path in file.parent.glob("*.log") if int(path.stem) > base]
    end = min(next_bases, default=2**63)
    return [
        f"version: 0 producerId: {each.producer_id} firstOffset: {each.first_offset} "
        f"lastOffset: {each.marker_offset} lastStableOffset: {each.last_stable_offset}"
        for each in index
        if base <= each.marker_offset < end
    ]


def _producer_lines(file: Path) -> Iterator[str]:
    for producer_id, state in decode(file.read_bytes(), 0).items():
        began = f"[{state.first_offset}]" if state.first_offset >= 0 else ".empty"
        line = (
            f"producerId: {producer_id} producerEpoch: {state.epoch} "
            f"coordinatorEpoch: {state.coordinator_epoch} currentTxnFirstOffset: OptionalLong{began} "
            f"lastTimestamp: {state.timestamp} "
        )
        for last in state.batches:
            line += (
                f"firstSequence: {last.first_sequence} lastSequence: {last.last_sequence} "
                f"lastOffset: {last.last_offset} offsetDelta: {last.last_offset - last.first_offset} "
                f"timestamp: {last.timestamp}"
            )
        yield line


def comparable(line: str) -> list[object]:
    """Split a line into JSON objects and the text between them.

    Lines compared in this form may differ in the order of JSON fields.
    """
    parts: list[object] = []
    decoder = json.JSONDecoder()
    position = 0
    while (at := line.find("{", position)) >= 0:
        form, after = decoder.raw_decode(line, at)
        parts += [line[position:at], form]
        position = after
    return [*parts, line[position:]]
