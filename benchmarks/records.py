"""Convert record batches to Arrow and back on one core, compared with memcpy, aiokafka and kafka-python.

All contestants of a table read or write the same bytes in one process. "To Arrow" ends with a
`pyarrow.RecordBatch`. The other libraries make one Python object per record, so they build the record batch
from those objects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))

from harness import Contestant, arguments, measure, report
from penstock.records.arrow import from_arrow, to_arrow
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.decode import decode_columns, iter_columns
from penstock.records.encode import encode_columns
from penstock.records.rows import decode_rows

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
T = 1_700_000_000_000
RUN_SECONDS = 0.02


def values(count: int, size: int) -> list[bytes]:
    """Return JSON-like values that compress by a factor of three to four, as real events do."""
    noise = np.random.default_rng(1).integers(0, 1 << 62, count).tolist()
    texts = (
        f'{{"id":{index},"station":"{noise[index] % 977:06d}","reading":{noise[index]}}}'
        for index in range(count)
    )
    return [(text.encode() * (size // len(text) + 1))[:size] for text in texts]


def log(count: int, size: int, batch_bytes: int, codec: int, headers: int = 0) -> bytes:
    """Return the bytes of a fetched log, in batches of the size that a producer makes."""
    per_batch = max(1, batch_bytes // (size + 10))
    pairs = [(f"ce_header{number}", b"some value") for number in range(headers)]
    contents = values(count, size)
    return b"".join(
        encode_batch(
            [(None, contents[n], pairs, T + n // 10) for n in range(first, min(first + per_batch, count))],
            base_offset=first,
            codec=codec,
        )
        for first in range(0, count, per_batch)
    )


def memcpy(data: bytes) -> Callable[[], object]:
    source = np.frombuffer(data, dtype=np.uint8)
    target = np.empty_like(source)
    return lambda: np.copyto(target, source)


def aiokafka_to_arrow(data: bytes) -> Callable[[], object]:
    from aiokafka.record.memory_records import MemoryRecords

    def run() -> object:
        found: list[tuple[int, bytes | None, bytes | None, int]] = []
        records = MemoryRecords(data)
        while (batch := records.next_batch()) is not None:
            batch.validate_crc()
            found.extend((r.offset, r.key, r.value, r.timestamp) for r in batch)
        return rows_to_arrow(found)

    return run


def kafka_python_to_arrow(data: bytes) -> Callable[[], object]:
    from kafka.record.memory_records import MemoryRecords

    def run() -> object:
        found: list[tuple[int, bytes | None, bytes | None, int]] = []
        records = MemoryRecords(data)
        while records.has_next():
            batch = records.next_batch()
            batch.validate_crc()
            found.extend((r.offset, r.key, r.value, r.timestamp) for r in batch)
        return rows_to_arrow(found)

    return run


def rows_to_arrow(rows: Sequence[tuple[int, bytes | None, bytes | None, int]]) -> pa.RecordBatch:
    offsets, keys, contents, timestamps = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(keys, pa.binary()),
            pa.array(contents, pa.binary()),
            pa.array(offsets, pa.int64()),
            pa.array(timestamps, pa.timestamp("ms", tz="UTC")),
        ],
        names=["key", "value", "offset", "timestamp"],
    )


def aiokafka_build(contents: Sequence[bytes], codec: int) -> Callable[[], object]:
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    def run() -> object:
        batches = []
        index = 0
        while index < len(contents):
            builder = DefaultRecordBatchBuilder(
                magic=2,
                compression_type=codec,
                is_transactional=0,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                batch_size=1_000_000,
            )
            offset = 0
            while index < len(contents) and builder.append(
                offset, timestamp=T, key=None, value=contents[index], headers=[]
            ):
                offset += 1
                index += 1
            batches.append(builder.build())
        return batches

    return run


def pieces(data: bytes, columns: Sequence[str], verify: bool) -> Callable[[], object]:
    def run() -> None:
        for piece in iter_columns([data], columns=columns, verify_crcs=verify):
            to_arrow(piece, "topic", 0, columns)

    return run


def whole(data: bytes, columns: Sequence[str], verify: bool) -> Callable[[], object]:
    return lambda: to_arrow(decode_columns([data], columns=columns, verify_crcs=verify), "topic", 0, columns)


def against_memcpy(title: str, data: bytes, count: int, rounds: int, headers: bool = False) -> None:
    every = (*COLUMNS, "headers") if headers else COLUMNS
    ways: list[tuple[str, Callable[[], object]]] = [
        ("memcpy of the same bytes", memcpy(data)),
        ("value, checksums not compared", whole(data, ("value",), False)),
        ("value", whole(data, ("value",), True)),
        ("value, in pieces of 1 MiB", pieces(data, ("value",), True)),
        (f"{len(every)} columns", whole(data, every, True)),
        (f"{len(every)} columns, in pieces of 1 MiB", pieces(data, every, True)),
    ]
    contestants = [Contestant(name, run, count, len(data)) for name, run in ways]
    measure(contestants, rounds, least_seconds=RUN_SECONDS)
    report(f"{title}: {len(data) / 1e6:.0f} MB", contestants)


def against_readers(title: str, data: bytes, count: int, rounds: int) -> None:
    contestants = [
        Contestant("aiokafka", aiokafka_to_arrow(data), count, len(data)),
        Contestant("kafka-python", kafka_python_to_arrow(data), count, len(data)),
        Contestant("penstock, 7 columns", whole(data, COLUMNS, True), count, len(data)),
        Contestant("penstock, rows (no Arrow)", lambda: decode_rows(data, "topic", 0), count, len(data)),
    ]
    measure(contestants, rounds, least_seconds=RUN_SECONDS)
    report(title, contestants)


def against_builder(title: str, contents: list[bytes], codec: int, rounds: int) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(contents, pa.binary())], names=["value"])
    rows = [(None, content, (), T) for content in contents[:9000]]
    size = sum(map(len, contents))

    def from_rows() -> None:
        for _ in range(len(contents) // len(rows)):
            encode_batch(rows, codec=codec)

    contestants = [
        Contestant(
            "aiokafka's builder, from bytes objects", aiokafka_build(contents, codec), len(contents), size
        ),
        Contestant("penstock, from bytes objects", from_rows, len(contents) // len(rows) * len(rows), size),
        Contestant(
            "penstock, from Arrow",
            lambda: encode_columns(from_arrow(batch, timestamp_ms=T), codec=codec),
            len(contents),
            size,
        ),
    ]
    measure(contestants, rounds, least_seconds=RUN_SECONDS)
    report(title, contestants)


def main() -> None:
    options = arguments("records: batches to Arrow and back, one core", rounds=11)
    scale = 0.1 if options.quick else 1.0
    few = max(3, options.rounds // 4)
    many, some = int(580_000 * scale), int(90_000 * scale)
    read = some // 3
    against_memcpy(
        "100 B values, uncompressed, batches of 1 MB",
        log(many, 100, 1_000_000, 0),
        many,
        options.rounds,
    )
    fetched = log(some * 4 // 5, 100, 1_000_000, 0)
    against_memcpy(
        "100 B values, uncompressed, batches of 1 MB, as in a fetch", fetched, some * 4 // 5, options.rounds
    )
    small = log(some * 4 // 5, 100, 16_384, 0)
    against_memcpy("the same in batches of 16 KiB", small, some * 4 // 5, options.rounds)
    large = log(some // 4, 1000, 1_000_000, 0)
    against_memcpy("1 KB values, uncompressed", large, some // 4, options.rounds)
    headed = log(some // 2, 100, 1_000_000, 0, headers=6)
    against_memcpy(
        "100 B values and 6 headers, uncompressed", headed, some // 2, options.rounds, headers=True
    )
    for codec in CompressionCodec:
        data = log(read, 100, 1_000_000, codec)
        against_readers(f"to Arrow, 100 B values, {codec.name.lower()}", data, read, few)
    for codec in (CompressionCodec.NONE, CompressionCodec.LZ4, CompressionCodec.ZSTD):
        against_builder(f"to batches, 100 B values, {codec.name.lower()}", values(some, 100), codec, few)


if __name__ == "__main__":
    main()
