"""Tests that the compiled conversions between message formats equal those in Python, errors included."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock.errors import PenstockError
from penstock.model import TimestampType
from penstock.records import message_loops
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec, UnpackBudget, compress
from penstock.records.convert import convert_down, convert_up
from penstock.records.format.batch_header import (
    HEADER_BYTES,
    pack_header,
    refresh_crc,
    set_max_timestamp_log_append,
)
from penstock.records.kernels import compiled
from penstock.records.kernels import message_kernels as kernels
from penstock.records.legacy import encode_message, encode_message_set
from penstock.records.row_format import encode_records

NOW_MS = 1_700_000_000_000
needs_compiled = pytest.mark.skipif(
    not compiled.COMPILED, reason="the package was installed without a C compiler"
)


def outcome(
    convert: Callable[..., bytes], data: bytes, sizes: tuple[int, int], **options: Any
) -> tuple[object, ...]:
    """Return the converted bytes and the budget that is left, or the error."""
    budget = UnpackBudget(*sizes)
    try:
        converted = convert(data, budget=budget, **options)
    except PenstockError as error:
        return type(error), str(error)
    # Record by record, messages outside of wrappers are counted by the thousand.
    records_left = 0 if convert is convert_up else budget.records_left
    return bytes(converted), budget.bytes_left, budget.written_left, records_left


def both(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> tuple[object, ...]:
    """Convert with and without the compiled loops, check that the outcomes agree, and return one."""
    fast = outcome(*arguments, **options)
    with monkeypatch.context() as patched:
        patched.setattr(message_loops, "_raise_messages", None)
        patched.setattr(message_loops, "_lower_records", None)
        slow = outcome(*arguments, **options)
    assert fast == slow
    return fast


def rows_of(dice: random.Random, count: int) -> list[tuple[bytes | None, bytes | None, int]]:
    return [
        (
            dice.choice((None, b"", dice.randbytes(dice.randrange(1, 40)))),
            dice.choice((None, b"", dice.randbytes(dice.randrange(1, 300)))),
            dice.choice((NOW_MS, -1, NOW_MS + dice.randrange(-(10**6), 10**6), 0, 1 << 61, 1 << 63 - 1)),
        )
        for _ in range(count)
    ]


def some_set(dice: random.Random) -> bytes:
    """Return a random message set of magic 0 and 1, with plain and compressed messages."""
    parts = []
    for _ in range(dice.randrange(1, 4)):
        codec = dice.choice(
            (
                CompressionCodec.NONE,
                CompressionCodec.NONE,
                CompressionCodec.GZIP,
                CompressionCodec.SNAPPY,
                CompressionCodec.LZ4,
            )
        )
        rows = [row for row in rows_of(dice, dice.randrange(1, 30)) if row[2] <= 1 << 61] or [(None, b"", 0)]
        kind = dice.choice((TimestampType.CREATE_TIME,) * 4 + (TimestampType.LOG_APPEND_TIME,))
        parts.append(encode_message_set(rows, dice.randrange(2), codec=codec, timestamp_type=kind))
    return b"".join(parts)


@needs_compiled
@pytest.mark.parametrize("seed", range(8))
def test_up_is_the_same_with_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    converted = 0
    for _ in range(60):
        data = bytearray(some_set(dice))
        if dice.random() < 0.3:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        if dice.random() < 0.3:
            del data[dice.randrange(len(data)) :]
        sizes = dice.choice(((1 << 27, 10**6), (1 << 27, 20), (3000, 10**6)))
        options = {
            "base_offset": dice.choice((0, 7)),
            "mixed": dice.random() < 0.5,
            "nested": dice.random() < 0.5,
            "may_be_cut": dice.random() < 0.5,
            "codec": dice.choice((None, None, CompressionCodec.NONE, CompressionCodec.SNAPPY)),
        }
        found = both(monkeypatch, convert_up, bytes(data), sizes, **options)
        converted += isinstance(found[0], bytes)
    assert converted > 10


@needs_compiled
def test_up_of_strange_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = encode_message(0, 0, b"k", b"v", -1)
    wrapped = encode_message(0, 0, None, compress(CompressionCodec.GZIP, plain), -1, CompressionCodec.GZIP)
    nested = encode_message(0, 0, None, compress(CompressionCodec.GZIP, wrapped), -1, CompressionCodec.GZIP)
    early = encode_message(
        1, 0, None, compress(CompressionCodec.GZIP, encode_message(1, 0, None, b"", 5)), -9, 9
    )
    for data in (b"", plain[:-1], wrapped, nested, early, plain + wrapped + nested, wrapped + plain[:20]):
        for options in ({}, {"mixed": True, "nested": True, "may_be_cut": True}):
            both(monkeypatch, convert_up, data, (1 << 20, 1000), base_offset=0, **options)


def some_batch(dice: random.Random, base_offset: int, codec: int) -> bytes:
    """Return a random batch of magic 2 with headers, and sometimes with gaps as after compaction."""
    count = dice.randrange(1, 40)
    rows = [
        (key, value, [("h", b"x"), ("", None)] if dice.random() < 0.2 else (), min(time, NOW_MS))
        for key, value, time in rows_of(dice, count)
    ]
    if dice.random() < 0.5:
        batch = bytearray(encode_batch(rows, base_offset=base_offset, codec=codec))
    else:
        deltas = sorted(dice.sample(range(100), count))
        body: bytes | bytearray = encode_records(rows, NOW_MS, deltas)
        body = compress(codec, body) if codec else body
        batch = bytearray(HEADER_BYTES + len(body))
        batch[HEADER_BYTES:] = body
        pack_header(
            batch,
            base_offset=base_offset,
            partition_leader_epoch=0,
            attributes=codec,
            record_count=count,
            base_timestamp=NOW_MS,
            max_timestamp=NOW_MS,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            last_offset_delta=99,
        )
        refresh_crc(batch, 0, len(batch))
    if dice.random() < 0.2:
        set_max_timestamp_log_append(batch, 0, len(batch), NOW_MS + 5)
    return bytes(batch)


@needs_compiled
@pytest.mark.parametrize("seed", range(8))
def test_down_is_the_same_with_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    converted = 0
    for _ in range(40):
        data = bytearray(
            b"".join(
                some_batch(dice, base, dice.choice(list(CompressionCodec))) for base in range(0, 400, 100)
            )
        )
        if dice.random() < 0.3:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        sizes = dice.choice(((1 << 27, 10**6), (1 << 27, 20), (3000, 10**6)))
        options = {
            "magic": dice.randrange(2),
            "first_offset": dice.choice((0, 37, 150)),
            "verify": dice.random() < 0.7,
            "enough_bytes": dice.choice((None, 1, 2000)),
            "unpacks_zstd": dice.random() < 0.7,
        }
        found = both(monkeypatch, convert_down, bytes(data), sizes, **options)
        converted += isinstance(found[0], bytes)
    assert converted > 10


def plain(name: str) -> Callable[..., Any]:
    """Return a kernel as a plain Python function."""
    return next(
        each for each in compiled.KERNELS if each.__module__ == kernels.__name__ and each.__name__ == name
    )


@needs_compiled
@pytest.mark.parametrize("seed", range(3))
def test_compiled_loops_are_the_plain_ones(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(15):
        data = bytearray(some_set(dice))
        if dice.random() < 0.5:
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        source = np.frombuffer(bytes(data), np.uint8)
        found = []
        for loop in (kernels.raise_messages, plain("raise_messages")):
            target = np.zeros(len(data) * 2 + 100, np.uint8)
            state = np.zeros(kernels.RAISE_STATE_SIZE, np.int64)
            count = loop(source, 0, len(source), dice.choice((-1,)), -2, 1000, target, state)
            found.append((count, target.tobytes(), state.tolist()))
        assert found[0] == found[1]
        batch = bytearray(some_batch(dice, 5, CompressionCodec.NONE))
        if dice.random() < 0.5:
            batch[dice.randrange(HEADER_BYTES, len(batch))] ^= 1 << dice.randrange(8)
        source = np.frombuffer(bytes(batch), np.uint8)
        count = int.from_bytes(batch[57:61], "big")
        for magic, relative in ((0, 0), (1, 0), (1, 1)):
            found = []
            for loop in (kernels.lower_records, plain("lower_records")):
                target = np.zeros(len(batch) + 34 * count, np.uint8)
                state = np.zeros(kernels.LOWER_STATE_SIZE, np.int64)
                failed = loop(
                    source, HEADER_BYTES, len(source), count, 5, NOW_MS, 0, 20, magic, relative, target, state
                )
                found.append((failed, target.tobytes() if not failed else b"", state.tolist()))
            assert found[0] == found[1]


def test_checksums_of_any_length() -> None:
    data = random.Random(1).randbytes(300)
    source = np.frombuffer(data, np.uint8)
    for loop in (kernels.crc32_of, plain("crc32_of")):
        for start in (0, 1, 7, 299, 300):
            for end in (start, min(start + 5, 300), 300):
                assert loop(source, start, end) == zlib.crc32(data[start:end])


def test_numbers_of_states_are_those_of_the_kernels() -> None:
    assert len(message_loops._STATE) == kernels.RAISE_STATE_SIZE == kernels.LOWER_STATE_SIZE
    for name in ("COUNT", "BASE_TIME", "MAX_TIME", "APPENDED", "READ_TO", "WRITTEN_TO"):
        assert getattr(message_loops, f"_{name}") == getattr(kernels, name)
    for name in ("FIRST_OFFSET", "LAST_OFFSET", "LATEST", "KEPT", "SIZE", "MESSAGES_TO"):
        assert getattr(message_loops, f"_{name}") == getattr(kernels, name)
    assert (message_loops._RECORD_GROWTH, message_loops._MESSAGE_GROWTH) == (
        kernels.RECORD_GROWTH,
        kernels.MESSAGE_GROWTH,
    )
