"""Tests of topics with ``penstock.keep.offsets``, whose batches keep the offsets that a copy gives them.

A batch may lie at the end of the log or after a gap.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Broker, Consumer, Producer
from penstock.client.produce.encoded import EncodedBatch, TableDelivery
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import set_leader_epoch
from penstock.testing import KafkaCluster

KEEP = "penstock.keep.offsets"


def put(
    address: str,
    first: int,
    deltas: list[int],
    *,
    key: bytes | None = b"k",
    codec: int = CompressionCodec.NONE,
    idempotent: bool = True,
    gap: int = -1,
) -> int:
    """Append one batch with given offsets to partition 0; return the base offset in the broker's answer."""
    rows: list[Any] = [(key, b"%d" % (first + delta), (), 1_000) for delta in deltas]
    data = memoryview(bytearray(encode_batch(rows, base_offset=first, offset_deltas=deltas, codec=codec)))
    set_leader_epoch(data, 0, gap)
    delivery = TableDelivery("t")
    with Producer(address, enable_idempotence=idempotent) as producer:
        producer.send_encoded("t", EncodedBatch(0, data, len(rows)), delivery)
        delivery.result()
    ((_, base_offset, _),) = delivery.places()
    return base_offset


def offsets(address: str) -> list[int]:
    """Return the offsets that a consumer gets; check that each record's value is its offset."""
    with Consumer(address) as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        ((tp, end),) = consumer.end_offsets([("t", 0)]).items()
        found = []
        while consumer.position(tp) < end:
            found += consumer.poll(500)
    assert [b"%d" % record.offset for record in found] == [record.value for record in found]
    return [record.offset for record in found]


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("settings", [{}, {"cleanup.policy": "compact"}, {"compression.type": "lz4"}])
def test_batches_stay_where_they_were(settings: dict[str, str], idempotent: bool) -> None:
    with Broker(log_retention_ms=-1) as broker:
        address = broker.bootstrap_servers
        with Admin(address) as admin:
            admin.create_topic("t", partitions=1, config={KEEP: "true", **settings})
        far = 5_000_000_000
        for first, deltas in (
            (7, [0, 1]),
            (9, [0]),
            (20, [0, 5, 6]),
            (far, [2, 3]),
            (far + 9, [0]),
        ):
            assert put(address, first, deltas, codec=CompressionCodec.GZIP, idempotent=idempotent) == first
        expected = [7, 8, 9, 20, 25, 26, far + 2, far + 3, far + 9]
        assert offsets(address) == expected
        for first in (0, 26, far + 9, 2**62 + 1):
            with pytest.raises(KafkaError, match=r"keep.offsets.*ends at offset 5000000010") as caught:
                put(address, first, [0], idempotent=idempotent)
            assert caught.value.code == ErrorCode.INVALID_RECORD
        assert offsets(address) == expected


def test_a_batch_may_say_how_far_behind_the_end_it_lies() -> None:
    with Broker(log_retention_ms=-1) as broker:
        address = broker.bootstrap_servers
        with Admin(address) as admin:
            admin.create_topic("t", partitions=1, config={KEEP: "true"})
        put(address, 7, [0, 1], gap=7)
        put(address, 9, [0], gap=0)
        for first, gap in ((10, 1), (12, 0), (12, 1), (12, 3)):
            with pytest.raises(KafkaError, match="ends at offset 10"):
                put(address, first, [0], gap=gap)
        put(address, 12, [0], gap=2)
        assert offsets(address) == [7, 8, 9, 12]


def test_other_topics_number_records_themselves() -> None:
    with Broker(log_retention_ms=-1) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("t", partitions=1)
            assert KEEP not in admin.describe_config("t")
        with pytest.raises(KafkaError, match="numbers its records from 0, not from 7"):
            put(broker.bootstrap_servers, 7, [0, 1])
        with pytest.raises(KafkaError, match="2 records cannot end at offset 5"):
            put(broker.bootstrap_servers, 0, [0, 5])


def test_compacted_topics_take_no_records_without_a_key() -> None:
    with Broker(log_retention_ms=-1) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("t", partitions=1, config={KEEP: "true", "cleanup.policy": "compact"})
        with pytest.raises(KafkaError, match="without key"):
            put(broker.bootstrap_servers, 7, [0, 1], key=None)


def test_a_broker_that_starts_again_has_them_and_producers_go_on(tmp_path: Path) -> None:
    dice = random.Random(5)
    expected: list[int] = []
    for _ in range(4):
        with Broker(data_dir=str(tmp_path), log_retention_ms=-1) as broker:
            address = broker.bootstrap_servers
            with Admin(address) as admin:
                if not expected:
                    admin.create_topic("t", partitions=1, config={"segment.bytes": "1000"})
                admin.alter_config("t", set={KEEP: "true"})
                for _ in range(8):
                    first = (expected[-1] + 1 if expected else 0) + dice.randrange(4)
                    deltas = sorted(dice.sample(range(30), dice.randrange(1, 9)))
                    put(address, first, deltas)
                    expected += [first + delta for delta in deltas]
                admin.alter_config("t", delete=[KEEP])
            with Producer(address) as producer:
                expected.append(expected[-1] + 1)
                sent = producer.send("t", b"%d" % expected[-1], partition=0).result()
                assert sent.offset == expected[-1]
            assert offsets(address) == expected


def test_followers_have_them_and_lead_with_them() -> None:
    with KafkaCluster(3) as cluster:
        address = cluster.bootstrap_servers
        with Admin(address) as admin:
            admin.create_topic("t", partitions=1, replication_factor=3, config={KEEP: "true"})
        put(address, 7, [0, 3])
        put(address, 40, [0])
        cluster.kill(cluster.partition("t", 0).leader, fence=True)
        put(address, 50, [1, 2])
        assert offsets(address) == [7, 10, 40, 51, 52]
