"""Tests that the compiled writer of records and the plain one accept, refuse and write the same records."""

from __future__ import annotations

import gc
import random
from contextlib import nullcontext
from typing import Any

import pytest

from penstock.client.produce.delivery import Delivery, DeliveryOutcome
from penstock.headers import Header
from penstock.records import native, row_format
from penstock.records.batch import decode_batch, encode_batch, encode_written
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.row_format import INT64_MAX, INT64_MIN, PlainMeter, PlainRowWriter, RowLike

HAS_COMPILED = hasattr(native.LIBRARY, "RowWriter")
WAYS = [
    "plain",
    pytest.param(
        "compiled",
        marks=pytest.mark.skipif(not HAS_COMPILED, reason="this installation has no compiled kernels"),
    ),
]


def made(way: str, limit: int = 1_000_000, memory: int = 1 << 30) -> tuple[Any, Any]:
    """Return a writer of records and the meter that counts its memory."""
    writer_class: Any = PlainRowWriter if way == "plain" else row_format.RowWriter
    meter: Any = (PlainMeter if way == "plain" else row_format.Meter)(memory)
    return writer_class(limit, meter, DeliveryOutcome("t", 3), Delivery, nullcontext()), meter


def random_row(dice: random.Random) -> RowLike:
    headers: list[Header] = [
        (dice.choice(["", "é", "name"]), dice.choice([None, b"", b"x" * 70]))
        for _ in range(dice.randrange(3))
    ]
    key = dice.choice([None, b"", dice.randbytes(dice.randrange(200))])
    value = dice.choice([None, b"", dice.randbytes(dice.choice([1, 63, 64, 9_000]))])
    return key, value, headers, dice.choice([0, 5, -7, 1 << 40, dice.randrange(1 << 62)])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_one_by_one_is_what_rows_make_at_once(way: str, seed: int) -> None:
    dice = random.Random(seed)
    rows = [random_row(dice) for _ in range(dice.choice([1, 2, 150]))]
    writer, meter = made(way)
    indexes = [writer.add(*row, 100) for row in rows]
    assert indexes == list(range(len(rows)))
    assert (writer.count, writer.size, meter.used) == (len(rows), 100 * len(rows), 100 * len(rows))
    assert (writer.base_timestamp, writer.max_timestamp) == (rows[0][3], max(row[3] for row in rows))
    assert encode_written(writer) == encode_batch(rows)
    assert writer.body(3) == bytes(3) + writer.body(0)
    numbered = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 5, "is_transactional": True}
    packed = encode_written(writer, codec=CompressionCodec.GZIP, **numbered)  # type: ignore[arg-type]
    found = decode_batch(packed, 0, len(packed), "t", 0)
    expected = [(k or (b"" if k == b"" else None), v, tuple(h), t) for k, v, h, t in rows]
    assert [(r.key, r.value, tuple(r.headers), r.timestamp) for r in found] == expected


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_has_a_limit_unless_it_is_a_single_record(way: str) -> None:
    writer, meter = made(way, limit=100)
    assert writer.add(None, b"x", (), 0, 500) == 0
    assert writer.add(None, b"x", (), 0, 1) == -1
    assert (writer.count, meter.used) == (1, 500)
    writer, _ = made(way, limit=100)
    assert [writer.add(None, b"x", (), 0, 50) for _ in range(3)] == [0, 1, -1]
    writer.limit = 150
    assert writer.add(None, b"x", (), 0, 50) == 2
    writer.close()
    writer.limit = 1_000
    assert writer.add(None, b"x", (), 0, 50) == -1


@pytest.mark.parametrize("way", WAYS)
def test_times_that_are_too_far_apart_do_not_share_a_batch(way: str) -> None:
    writer, _ = made(way)
    assert writer.add(None, b"a", (), -5, 50) == 0
    assert writer.add(None, b"b", (), INT64_MAX, 50) == -1
    assert writer.add(None, b"c", (), INT64_MIN, 50) == 1
    assert (writer.base_timestamp, writer.max_timestamp) == (-5, -5)
    batch = encode_written(writer)
    assert [r.timestamp for r in decode_batch(batch, 0, len(batch), "t", 0)] == [-5, INT64_MIN]


@pytest.mark.parametrize("way", WAYS)
def test_a_lane_takes_records_until_it_is_to_be_asked(way: str) -> None:
    writer, meter = made(way, memory=1_000)
    info = object()
    topics = {"t": info}
    assert writer.note(b"x", 0) is None, "there is no lane yet"
    writer.add(b"k", b"first", (), 1_000, 50)
    writer.open_lane(topics, "t", info, 100)
    for value in ("text", bytearray(b"x"), memoryview(b"x"), 5):
        assert writer.note(value, 0) is None
    first = writer.note(b"value", 1_234)
    assert isinstance(first, Delivery)
    assert (first._index, first._timestamp, first.partition) == (1, 1_234, 3)
    second = writer.note(None, -1)
    assert (second._index, second._timestamp) == (2, -1)
    assert (writer.count, writer.size, meter.used) == (3, 50 + 41 + 36, 50 + 41 + 36)
    assert isinstance(writer.note(b"", 0), Delivery)
    assert writer.note(b"", 0) is None, "100 bytes have been taken"
    assert writer.close_lane() == 41 + 36 + 36
    assert writer.close_lane() == 0
    batch = encode_written(writer)
    rows = [(r.key, r.value, r.timestamp) for r in decode_batch(batch, 0, len(batch), "t", 0)]
    assert rows == [(b"k", b"first", 1_000), (None, b"value", 1_234), (None, None, -1), (None, b"", 0)]
    assert writer.max_timestamp == 1_234

    writer.open_lane(topics, "t", info, 10_000)
    topics["t"] = object()
    assert writer.note(b"x", 0) is None, "the metadata are others"
    topics["t"] = info
    meter.add(1_000 - meter.used)
    assert writer.note(b"x", 0) is None, "memory is full"
    meter.add(-1)
    assert isinstance(writer.note(b"x", 0), Delivery)
    meter.add(-500)
    writer.limit = writer.size + 36
    assert writer.note(b"x", 0) is None, "the batch is full"
    assert isinstance(writer.note(b"", 0), Delivery)
    writer.limit = 1_000_000
    writer.close()
    assert writer.note(b"x", 0) is None
    writer.open_lane(topics, "t", info, 10_000)
    assert writer.note(b"x", 0) is None, "a closed batch opens no lane"


@pytest.mark.parametrize("way", WAYS)
def test_a_record_is_put_with_its_delivery_and_noted_with_headers(way: str) -> None:
    writer, meter = made(way, limit=200)
    first = writer.put(b"k", b"v", [("a", None)], 7, 60)
    assert (first._index, first._timestamp, first.partition) == (0, 7, 3)
    info = object()
    writer.open_lane({"t": info}, "t", info, 100)
    second = writer.note(b"w", 9, [("b", b"c")], 50)
    assert (second._index, second._timestamp) == (1, 9)
    assert (writer.size, meter.used) == (110, 110)
    assert writer.put(None, b"x", (), 8, 91) is None, "the batch is full"
    assert writer.close_lane() == 50
    batch = encode_written(writer)
    rows = [
        (r.key, r.value, list(r.headers), r.timestamp) for r in decode_batch(batch, 0, len(batch), "t", 0)
    ]
    assert rows == [(b"k", b"v", [("a", None)], 7), (None, b"w", [("b", b"c")], 9)]


@pytest.mark.parametrize("way", WAYS)
def test_records_that_were_dropped_are_gone_and_still_counted(way: str) -> None:
    writer, meter = made(way)
    writer.add(b"k", b"v" * 1_000, (), 7, 1_100)
    writer.drop()
    writer.drop()
    assert (writer.count, writer.size, meter.used) == (1, 1_100, 1_100)
    assert writer.add(None, b"", (), 0, 36) == -1
    assert writer.put(None, b"", (), 0, 36) is None
    with pytest.raises(ValueError, match="dropped"):
        writer.body(0)


@pytest.mark.skipif(not HAS_COMPILED, reason="this installation has no compiled kernels")
def test_wrong_arguments_of_the_compiled_writer_are_errors_of_python() -> None:
    writer, meter = made("compiled")
    for wrong in (
        ("k", None, ()),
        (None, 5, ()),
        (None, None, None),
        (None, None, [("a",)]),
        (None, None, [(b"a", b"")]),
    ):
        with pytest.raises(TypeError):
            writer.add(*wrong, 0, 50)
    with pytest.raises(TypeError):
        writer.add(None, b"x")
    with pytest.raises(TypeError):
        writer.put("k", None, (), 0, 50)
    with pytest.raises(TypeError):
        writer.note(b"x")
    with pytest.raises(OverflowError):
        writer.add(None, b"x", (), 1 << 63, 50)
    with pytest.raises(ValueError, match="header"):
        writer.body(1 << 40)
    with pytest.raises(TypeError, match="places"):
        row_format.RowWriter(1, meter, DeliveryOutcome("t", 0), tuple, None)
    with pytest.raises(TypeError):
        row_format.RowWriter(1, object(), DeliveryOutcome("t", 0), Delivery, None)
    assert (writer.count, writer.size, meter.used) == (0, 0, 0)


@pytest.mark.parametrize("way", WAYS)
def test_garbage_in_circles_is_collected(way: str) -> None:
    class Known:
        deleted = 0

        def __del__(self) -> None:
            Known.deleted += 1

    writer, _ = made(way)
    known = Known()
    writer.open_lane({"t": known}, "t", known, 1_000)
    delivery = writer.note(b"x", 0)
    delivery.add_done_callback(lambda _, kept=(writer, known): None)
    del writer, known, delivery
    gc.collect()
    assert Known.deleted == 1
