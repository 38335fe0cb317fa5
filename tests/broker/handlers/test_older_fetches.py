"""Tests of Fetch before version 4 over logs with transaction markers and emptied batches.

A client must always get to the end of the log.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from broker.bench_node import NOW_MS, ask, batch_of, context_of, make_node, make_topic
from broker.handlers.test_fetch import data_of, fetch, fetch_request
from for_each import for_each
from penstock.broker.handlers import fetch as fetch_module
from penstock.broker.handlers.fetch import fetch as handle
from penstock.broker.node import Node
from penstock.broker.requests.purgatory import Wait
from penstock.records.batch import COMMIT_MARKER, decode_batch, encode_marker
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import HEADER_BYTES, pack_header, refresh_crc, split_batches


def marker(offset: int) -> bytes:
    return encode_marker(
        COMMIT_MARKER,
        base_offset=offset,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=NOW_MS,
    )


def emptied(offset: int, count: int) -> bytes:
    """Return a batch that covers `count` offsets and whose records compaction has removed."""
    batch = bytearray(HEADER_BYTES)
    pack_header(
        batch,
        base_offset=offset,
        partition_leader_epoch=0,
        attributes=0,
        record_count=0,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        last_offset_delta=count - 1,
    )
    refresh_crc(batch, 0, len(batch))
    return bytes(batch)


def with_gap(offset: int, values: list[bytes], gap: int) -> bytes:
    """Return a batch whose last `gap` records compaction has removed."""
    batch = batch_of(*values, base_offset=offset)
    batch[23:27] = (len(values) + gap - 1).to_bytes(4, "big")
    refresh_crc(batch, 0, len(batch))
    return bytes(batch)


class Filling:
    """A log that a test fills batch by batch, with the markers and gaps of transactions and compaction."""

    def __init__(self) -> None:
        self.node: Node = make_node()
        make_topic(self.node)
        self.partition = self.node.cluster.topics["t"].partitions[0]
        self.values: dict[int, bytes] = {}

    @property
    def end(self) -> int:
        return self.partition.log.end_offset

    def append(self, batch: bytes, count: int = 1) -> None:
        log = self.partition.log
        last = self.end + count - 1
        log.append(batch, first_offset=self.end, last_offset=last, max_timestamp=NOW_MS, now_ms=NOW_MS)
        self.partition._advance(log)

    def records(
        self, values: list[bytes], gap: int = 0, codec: CompressionCodec = CompressionCodec.NONE
    ) -> None:
        self.values.update(enumerate(values, self.end))
        if gap:
            self.append(with_gap(self.end, values, gap), len(values) + gap)
        else:
            self.append(bytes(batch_of(*values, base_offset=self.end, codec=codec)), len(values))

    def anything(self, dice: random.Random) -> None:
        values = [bytes(dice.randrange(200)) for _ in range(dice.randrange(1, 4))]
        kind = dice.randrange(4)
        if kind == 0:
            self.append(marker(self.end))
        elif kind == 1:
            count = dice.randrange(1, 20)
            self.append(emptied(self.end, count), count)
        elif kind == 2:
            self.records(values, gap=dice.randrange(1, 9))
        else:
            self.records(values, codec=dice.choice([CompressionCodec.NONE, CompressionCodec.GZIP]))


def read_all(node: Node, version: int, limit: int, at_most: int = 500) -> dict[int, Any]:
    """Read the partition as an old client does, and return a dict from offset to value.

    The client doubles its fetch limit when a response has only a part of a message.
    """
    found: dict[int, Any] = {}
    position = 0
    for _ in range(at_most):
        partition = fetch(node, (0, position), version=version, limit=limit)[0]
        assert partition.error_code == 0
        data = data_of(partition)
        if not data:
            return found
        rows = [
            row for start, end, _ in split_batches(data) for row in decode_batch(data, start, end, "t", 0)
        ]
        fresh = {row.offset: row.value for row in rows if row.offset >= position}
        if fresh:
            found.update(fresh)
            position = max(fresh) + 1
        else:
            assert not rows, "messages that the client has"
            limit *= 2
    raise AssertionError(f"it stands at {position}")


@for_each(
    [
        (version, limit, seed)
        for seed in range(4)
        for limit in [1, 13, 78, 100, 1000]
        for version in [0, 1, 2, 3]
    ]
)
def test_a_client_gets_to_the_end_whatever_lies_between(version: int, limit: int, seed: int) -> None:
    dice = random.Random(seed)
    log = Filling()
    for _ in range(40):
        log.anything(dice)
    assert read_all(log.node, version, limit) == log.values


@pytest.mark.parametrize("version", [0, 3])
def test_the_largest_request_behind_more_markers_than_are_read_in_a_turn(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "LEFT_OUT_BYTES_MAX", 300)
    log = Filling()
    for _ in range(50):
        log.append(marker(log.end))
    log.records([b"behind"])
    request = fetch_request((0, 0), limit=100)
    context = context_of(log.node, version)
    outcome = handle(request, context)
    turns = 0
    while isinstance(outcome, Wait):
        assert outcome.deadline <= context.now
        assert outcome.answer is not None
        outcome = outcome.answer()
        turns += 1
    assert turns > 5
    assert data_of(outcome.responses[0].partitions[0])


def test_markers_at_the_end_are_waited_behind() -> None:
    log = Filling()
    log.append(marker(0))
    request = fetch_request((0, 0), min_bytes=1, max_wait_ms=100)
    waiting = ask(log.node, request, 1)
    assert isinstance(waiting, Wait)
    log.records([b"new"])
    assert data_of(ask(log.node, request, 1).responses[0].partitions[0])


@pytest.mark.parametrize("version", [0, 3])
def test_what_a_thread_finds_to_be_nothing_is_passed_as_well(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "INLINE_BYTES", 10)
    log = Filling()
    for _ in range(5):
        log.append(marker(log.end))
    log.records([b"behind"])
    assert read_all(log.node, version, 100) == log.values
