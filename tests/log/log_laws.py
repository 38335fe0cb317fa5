"""Checks that every implementation of a log must pass, and the batches they use.

`check_log(make_log)` runs all checks; `make_log(config, now_ms=...)` returns an empty log.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from penstock.log.contract import FileRegion, LogConfig
from penstock.records.batch import ABORT_MARKER, encode_batch, encode_marker
from penstock.records.format.batch_header import split_batches

MakeLog = Callable[..., Any]

T0 = 1_700_000_000_000


def batch(
    first: int,
    timestamps: Sequence[int] = (T0,),
    *,
    value: bytes = b"v",
    epoch: int = 0,
    codec: int = 0,
    deltas: Sequence[int] | None = None,
) -> bytes:
    """Return a batch with base offset `first` and one record for each timestamp."""
    rows = [(b"k%d" % (first + n), value, (), timestamp) for n, timestamp in enumerate(timestamps)]
    return encode_batch(
        rows, base_offset=first, codec=codec, partition_leader_epoch=epoch, offset_deltas=deltas
    )


def message(offset: int, value: bytes, *, magic: int = 1, timestamp: int = T0) -> bytes:
    """Return one message of magic 0 or 1 with its offset and size."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", timestamp) if magic else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(body)) + body


def add(log: Any, data: bytes, *, first: int, last: int, timestamp: int = T0, now_ms: int = T0) -> None:
    log.append(memoryview(data), first_offset=first, last_offset=last, max_timestamp=timestamp, now_ms=now_ms)


def fill(
    log: Any, batches: int, *, records: int = 3, step_ms: int = 10, value: bytes = b"v" * 20
) -> list[bytes]:
    """Append `batches` batches of `records` records that are `step_ms` apart; return the batches."""
    made = []
    for _ in range(batches):
        first = log.end_offset
        times = [T0 + (first + n) * step_ms for n in range(records)]
        data = batch(first, times, value=value)
        add(log, data, first=first, last=first + records - 1, timestamp=times[-1], now_ms=times[-1])
        made.append(data)
    return made


def read_all(log: Any, offset: int | None = None, max_bytes: int = 1 << 30) -> bytes:
    return bytes(log.read(log.start_offset if offset is None else offset, max_bytes).to_bytes())


def cut(data: bytes) -> list[bytes]:
    return [data[start:end] for start, end, _ in split_batches(data)]


SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)
"""A configuration with small segments: a few batches fill several segments, each with index entries."""


def starts_empty(make_log: MakeLog) -> None:
    log = make_log(LogConfig(), now_ms=T0)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (0, 0, 0)
    assert len(log.read(0, 100)) == 0
    assert log.read(0, 100).to_bytes() == b""
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None
    assert log.segment_offsets(-1, T0) == [0]
    assert log.segment_offsets(-2, T0) == [0]
    assert list(log.iter_batch_headers()) == []
    assert log.retention_offset(T0 * 2) == 0


def gives_back_what_went_in(make_log: MakeLog) -> None:
    for config in (LogConfig(), SMALL):
        log = make_log(config, now_ms=T0)
        made = fill(log, 30)
        assert log.end_offset == 90
        assert log.size_bytes == sum(map(len, made))
        assert read_all(log) == b"".join(made)
        for offset in range(90):
            assert read_all(log, offset) == b"".join(made[offset // 3 :])
        assert read_all(log, 90) == b""


def takes_nothing_by_reference(make_log: MakeLog) -> None:
    log = make_log(LogConfig(), now_ms=T0)
    data = bytearray(batch(0))
    before = bytes(data)
    add(log, data, first=0, last=0)
    data[20:] = bytes(len(data) - 20)
    assert read_all(log) == before


def limits_reads_to_whole_batches(make_log: MakeLog) -> None:
    for config in (LogConfig(), SMALL, LogConfig(index_interval_bytes=1)):
        log = make_log(config, now_ms=T0)
        made = fill(log, 30)
        size = len(made[0])
        for offset in (0, 1, 5, 44, 87):
            rest = made[offset // 3 :]
            for max_bytes in (*range(0, 3 * size + 2, 7), size, 2 * size - 1, 2 * size, 1000, 10_000):
                whole = b""
                for one in rest:
                    if len(whole) + len(one) > max_bytes:
                        break
                    whole += one
                assert read_bytes(log, offset, max_bytes, at_least_one=False) == whole
                assert read_bytes(log, offset, max_bytes) == (whole or rest[0])


def read_bytes(log: Any, offset: int, max_bytes: int, **options: Any) -> bytes:
    found = log.read(offset, max_bytes, **options)
    assert len(found) == sum(map(len, found.pieces))
    data = found.to_bytes()
    assert len(data) == len(found)
    return bytes(data)


def stops_before_an_upper_offset(make_log: MakeLog) -> None:
    for config in (LogConfig(), SMALL, LogConfig(index_interval_bytes=1)):
        log = make_log(config, now_ms=T0)
        made = fill(log, 20)
        for offset in (0, 4, 30):
            for up_to in range(62):
                # A batch that reaches the limit is left out as a whole.
                want = b"".join(made[offset // 3 : up_to // 3])
                for at_least_one in (True, False):
                    assert (
                        read_bytes(log, offset, 1 << 20, up_to_offset=up_to, at_least_one=at_least_one)
                        == want
                    )


def refuses_offsets_out_of_range(make_log: MakeLog) -> None:
    log = make_log(LogConfig(), now_ms=T0)
    fill(log, 3)
    log.delete_before(3)
    for offset in (-1, 2, 10):
        with pytest.raises(ValueError, match=str(offset)):
            log.read(offset, 100)
    with pytest.raises(ValueError, match="cannot follow"):
        add(log, batch(8), first=8, last=8)
    with pytest.raises(ValueError, match="cannot follow"):
        add(log, batch(9), first=9, last=8)
    with pytest.raises(ValueError, match="past the end"):
        log.delete_before(10)
    assert (log.start_offset, log.end_offset) == (3, 9)


def takes_several_batches_at_once(make_log: MakeLog) -> None:
    log = make_log(LogConfig(index_interval_bytes=100), now_ms=T0)
    several = [batch(3 * n, [T0 + n, T0 + 50 - n, T0]) for n in range(10)]
    add(log, b"".join(several), first=0, last=29, timestamp=T0 + 50)
    more = batch(30, [T0 + 60])
    add(log, more, first=30, last=30, timestamp=T0 + 60)
    for offset in range(31):
        assert read_all(log, offset) == b"".join([*several, more][min(offset // 3, 10) :])
    assert read_bytes(log, 7, len(several[0])) == several[2]
    assert log.offset_for_timestamp(T0 + 50) == (1, T0 + 50)
    assert log.offset_for_timestamp(T0 + 51) == (30, T0 + 60)
    with pytest.raises(ValueError, match="whole batches"):
        add(log, batch(31) + batch(32)[:-1], first=31, last=32)
    assert log.end_offset == 31


def takes_messages_of_older_kafkas(make_log: MakeLog) -> None:
    log = make_log(LogConfig(index_interval_bytes=60), now_ms=T0)
    old = [message(n, b"x" * n, magic=0) for n in range(10)]
    add(log, b"".join(old), first=0, last=9, timestamp=-1)
    newer = [message(n, b"", magic=1, timestamp=T0 + n) for n in range(10, 20)]
    for n, one in enumerate(newer, 10):
        add(log, one, first=n, last=n, timestamp=T0 + n)
    newest = batch(20, [T0 + 30])
    add(log, newest, first=20, last=20, timestamp=T0 + 30)
    everything = [*old, *newer, newest]
    for offset in range(21):
        assert read_all(log, offset) == b"".join(everything[offset:])
    assert log.offset_for_timestamp(T0) == (10, T0 + 10)
    assert log.offset_for_timestamp(T0 + 15) == (15, T0 + 15)
    assert log.offset_for_timestamp(T0 + 20) == (20, T0 + 30)
    assert [header.base_offset for header in log.iter_batch_headers()] == [20]
    assert [entry.magic for entry in log.entries()] == [0] * 10 + [1] * 10 + [2]


def skips_gaps(make_log: MakeLog) -> None:
    for config in (LogConfig(index_interval_bytes=1), LogConfig(segment_bytes=100, compacted=True)):
        log = make_log(config, now_ms=T0)
        made = [batch(0), batch(10, [T0, T0], deltas=[0, 5]), batch(20), batch(5_000_000_000)]
        for one, first, last in zip(
            made, (0, 10, 20, 5_000_000_000), (0, 15, 20, 5_000_000_000), strict=True
        ):
            add(log, one, first=first, last=last)
        assert log.end_offset == 5_000_000_001
        for offset, place in ((0, 0), (1, 1), (9, 1), (15, 1), (16, 2), (21, 3), (4_999_999_999, 3)):
            assert read_all(log, offset) == b"".join(made[place:])
            assert read_bytes(log, offset, 1) == made[place]


def rolls_by_size(make_log: MakeLog) -> None:
    log = make_log(LogConfig(segment_bytes=1000), now_ms=T0)
    made = fill(log, 30)
    per_segment = 1000 // len(made[0])
    bases = list(range(0, 90, 3 * per_segment))
    assert log.segment_offsets(-1, T0) == [90, *reversed(bases)]


def keeps_what_is_larger_than_a_segment(make_log: MakeLog) -> None:
    log = make_log(LogConfig(segment_bytes=100), now_ms=T0)
    made = [batch(0, value=b"x" * 500), batch(1, value=b"y" * 500)]
    for n, one in enumerate(made):
        add(log, one, first=n, last=n)
    assert read_all(log) == b"".join(made)
    assert log.segment_offsets(-1, T0) == [2, 1, 0]


def rolls_by_time(make_log: MakeLog) -> None:
    log = make_log(LogConfig(segment_ms=1000), now_ms=T0)
    for n, time in enumerate((0, 500, 1000, 1001, 1500, 2001, 2002)):
        add(log, batch(n, [T0 + time]), first=n, last=n, timestamp=T0 + time, now_ms=T0)
    assert log.segment_offsets(-1, T0) == [7, 6, 3, 0]
    # Without timestamps the clock counts, from the moment the segment was made.
    log = make_log(LogConfig(segment_ms=1000), now_ms=T0)
    for n, time in enumerate((0, 1000, 1001, 2001, 2002)):
        add(log, message(n, b"", magic=0), first=n, last=n, timestamp=-1, now_ms=T0 + time)
    assert log.segment_offsets(-1, T0) == [5, 4, 2, 0]


def answers_old_offset_requests(make_log: MakeLog) -> None:
    log = make_log(LogConfig(segment_bytes=100), now_ms=T0)
    for n in range(4):
        add(log, batch(n, [T0]), first=n, last=n, now_ms=T0 + 100 * n)
    now = T0 + 1000
    assert log.segment_offsets(-1, now) == [4, 3, 2, 1, 0]
    assert log.segment_offsets(-2, now) == [0]
    assert log.segment_offsets(now, now) == [4, 3, 2, 1, 0]
    assert log.segment_offsets(now - 1, now) == [3, 2, 1, 0]
    assert log.segment_offsets(T0 + 299, now) == [2, 1, 0]
    assert log.segment_offsets(T0 + 100, now) == [1, 0]
    assert log.segment_offsets(T0 - 1, now) == []


def finds_timestamps_exactly(make_log: MakeLog) -> None:
    for config in (LogConfig(), SMALL, LogConfig(index_interval_bytes=1)):
        log = make_log(config, now_ms=T0)
        times = [T0 + (n * 7919) % 101 for n in range(90)]  # no order whatever
        for first in range(0, 90, 3):
            mine = times[first : first + 3]
            add(log, batch(first, mine), first=first, last=first + 2, timestamp=max(mine))
        for start in (0, 1, 31, 89):
            log.delete_before(start)
            rest = list(enumerate(times))[start:]
            for wanted in range(T0 - 1, T0 + 103):
                found = next(((offset, time) for offset, time in rest if time >= wanted), None)
                assert log.offset_for_timestamp(wanted) == found
            latest = max(time for _, time in rest)
            assert log.offset_of_max_timestamp() == next(pair for pair in rest if pair[1] == latest)


def deletes_from_the_front(make_log: MakeLog) -> None:
    log = make_log(SMALL, now_ms=T0)
    made = fill(log, 30)
    sizes = [log.size_bytes]
    for offset in (1, 3, 20, 21, 50, 50, 10):
        log.delete_before(offset)
        start = log.start_offset
        assert start == max(offset, start)
        assert read_all(log) == b"".join(made[start // 3 :])
        sizes.append(log.size_bytes)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]
    log.delete_before(90)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (90, 90, 0)
    assert read_all(log) == b""
    assert log.segment_offsets(-1, T0) == [90]
    assert fill(log, 2) == cut(read_all(log))
    assert log.end_offset == 96


def keeps_slices_readable(make_log: MakeLog) -> None:
    log = make_log(SMALL, now_ms=T0)
    made = fill(log, 30)
    everything = log.read(0, 1 << 20)
    log.delete_before(90)
    fill(log, 10)
    log.close()
    del log
    assert everything.to_bytes() == b"".join(made)


def truncates(make_log: MakeLog) -> None:
    for config in (LogConfig(), SMALL, LogConfig(index_interval_bytes=1)):
        log = make_log(config, now_ms=T0)
        made = fill(log, 30)
        for offset, left in ((91, 90), (90, 90), (89, 87), (87, 87), (61, 60), (30, 30), (4, 3)):
            log.truncate_to(offset)
            assert log.end_offset == left
            assert read_all(log) == b"".join(made[: left // 3])
            latest = T0 + (left - 1) * 10
            assert log.offset_of_max_timestamp() == (left - 1, latest)
            assert log.offset_for_timestamp(latest + 1) is None
        del made[1:]
        made += fill(log, 20)
        assert read_all(log) == b"".join(made)
        assert log.offset_for_timestamp(T0 + 300) == (30, T0 + 300)
        log.truncate_to(0)
        assert (log.start_offset, log.end_offset, log.size_bytes) == (0, 0, 0)


def answers_the_same_again(make_log: MakeLog) -> None:
    """Check that reads are correct although the log caches positions of offsets.

    Appends and truncations between the reads change those positions.
    """
    for config in (LogConfig(), SMALL, LogConfig(index_interval_bytes=1)):
        log = make_log(config, now_ms=T0)
        made = fill(log, 30)
        rng = random.Random(7)
        for number in range(40):
            for offset in rng.choices(range(log.end_offset + 1), k=20) + [log.end_offset] * 2:
                assert cut(read_all(log, offset, 1)) == made[offset // 3 : offset // 3 + 1]
                assert read_all(log, offset) == b"".join(made[offset // 3 :])
            if number % 3:
                made += fill(log, rng.randrange(3))
            else:
                left = log.end_offset // 3 - rng.randrange(4)
                log.truncate_to(left * 3)
                # Other bytes in the same place, shorter and longer than what was there.
                made = made[:left] + fill(log, 2, value=b"w" * rng.randrange(60))


def truncates_below_its_start(make_log: MakeLog) -> None:
    log = make_log(SMALL, now_ms=T0)
    fill(log, 30)
    log.delete_before(60)
    log.truncate_to(2)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (2, 2, 0)
    fill(log, 2)
    assert log.end_offset == 8


def begins_anew_at_a_later_offset(make_log: MakeLog) -> None:
    for records in (0, 30):
        for further in (0, 1, 700):
            log = make_log(SMALL, now_ms=T0)
            fill(log, records)
            end = log.end_offset
            with pytest.raises(ValueError, match="before the end"):
                log.begin_at(end - 1)
            log.begin_at(end + further)
            assert (log.start_offset, log.end_offset, log.size_bytes) == (end + further, end + further, 0)
            assert log.leader_epochs.entries == []
            assert read_all(log) == b""
            assert fill(log, 2) == cut(read_all(log))
            assert log.end_offset == end + further + 6


def offers_what_is_too_old_or_too_much(make_log: MakeLog) -> None:
    log = make_log(LogConfig(segment_bytes=100, retention_ms=1000), now_ms=T0)
    for n in range(5):
        add(log, batch(n, [T0 + 100 * n]), first=n, last=n, timestamp=T0 + 100 * n, now_ms=T0 + 100 * n)
    assert log.retention_offset(T0 + 1000) == 0
    assert log.retention_offset(T0 + 1001) == 1
    assert log.retention_offset(T0 + 1250) == 3
    assert log.retention_offset(T0 + 1250, up_to_offset=2) == 2
    assert log.retention_offset(T0 + 9999) == 5
    size = log.size_bytes // 5
    for keep, offset in ((5 * size, 0), (5 * size - 1, 0), (4 * size, 1), (size, 4), (0, 5)):
        log.configure(LogConfig(segment_bytes=100, retention_ms=-1, retention_bytes=keep))
        assert log.retention_offset(T0 + 9999) == offset
    log.configure(LogConfig(retention_ms=-1, retention_bytes=-1))
    assert log.retention_offset(T0 * 2) == 0
    log.configure(LogConfig(segment_bytes=100, retention_ms=0))
    log.delete_before(log.retention_offset(T0 * 2))
    assert (log.start_offset, log.size_bytes) == (5, 0)


def notes_leader_epochs(make_log: MakeLog) -> None:
    log = make_log(SMALL, now_ms=T0)
    for n, epoch in enumerate((0, 0, 2, 2, 2, 5)):
        add(log, batch(n, epoch=epoch), first=n, last=n)
    add(log, batch(6, epoch=5) + batch(7, epoch=6), first=6, last=7)
    assert log.leader_epochs.entries == [(0, 0), (2, 2), (5, 5), (6, 7)]
    assert log.leader_epochs.latest == 6
    assert [log.leader_epochs.end_of(epoch, log.end_offset) for epoch in (-1, 0, 1, 2, 4, 6, 9)] == [
        None,
        (0, 2),
        (0, 2),
        (2, 5),
        (2, 5),
        (6, 8),
        (6, 8),
    ]
    log.truncate_to(6)
    assert log.leader_epochs.entries == [(0, 0), (2, 2), (5, 5)]
    log.delete_before(3)
    assert log.leader_epochs.entries == [(2, 3), (5, 5)]
    add(log, batch(6, epoch=7), first=6, last=6)
    assert log.leader_epochs.latest == 7


def yields_headers(make_log: MakeLog) -> None:
    log = make_log(SMALL, now_ms=T0)
    fill(log, 10)
    marker = encode_marker(
        ABORT_MARKER, base_offset=30, producer_id=7, producer_epoch=1, coordinator_epoch=0, timestamp=T0
    )
    add(log, marker, first=30, last=30)
    headers = list(log.iter_batch_headers())
    assert [header.base_offset for header in headers] == list(range(0, 31, 3))
    assert [(header.producer_id, header.is_control) for header in headers] == [(-1, False)] * 10 + [(7, True)]
    assert [header.base_offset for header in log.iter_batch_headers(26)] == [24, 27, 30]
    assert sum(header.size for header in headers) == log.size_bytes


def flushes_when_told(make_log: MakeLog) -> None:
    log = make_log(LogConfig(), now_ms=T0)
    fill(log, 3)
    assert log.recovery_point == 0
    assert not log.flush_if_due(T0 * 2)
    log.flush()
    assert log.recovery_point == 9
    log.configure(LogConfig(flush_messages=6))
    fill(log, 1)
    assert log.recovery_point == 9
    fill(log, 1)
    assert log.recovery_point == 15
    log.configure(LogConfig(flush_ms=100))
    add(log, batch(15), first=15, last=15, now_ms=T0)
    add(log, batch(16), first=16, last=16, now_ms=T0 + 99)
    assert log.recovery_point == 15
    assert not log.flush_if_due(T0 + 99)
    assert log.flush_if_due(T0 + 100)
    assert log.recovery_point == 17
    log.truncate_to(4)
    assert log.recovery_point == 3


LAWS: list[Callable[[MakeLog], None]] = [
    starts_empty,
    gives_back_what_went_in,
    takes_nothing_by_reference,
    limits_reads_to_whole_batches,
    stops_before_an_upper_offset,
    refuses_offsets_out_of_range,
    takes_several_batches_at_once,
    takes_messages_of_older_kafkas,
    skips_gaps,
    rolls_by_size,
    keeps_what_is_larger_than_a_segment,
    rolls_by_time,
    answers_old_offset_requests,
    finds_timestamps_exactly,
    deletes_from_the_front,
    keeps_slices_readable,
    truncates,
    answers_the_same_again,
    truncates_below_its_start,
    begins_anew_at_a_later_offset,
    offers_what_is_too_old_or_too_much,
    notes_leader_epochs,
    yields_headers,
    flushes_when_told,
]


def check_log(make_log: MakeLog) -> None:
    """Run every check on logs that `make_log` creates."""
    for law in LAWS:
        law(make_log)


__all__ = ["FileRegion", "check_log"]
