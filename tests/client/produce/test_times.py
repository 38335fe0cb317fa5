"""Tests that records without a timestamp get the time of the producer's clock, as rows and as columns."""

from __future__ import annotations

import asyncio

import pyarrow as pa

from penstock import Broker
from penstock.client.config import ProducerConfig
from penstock.client.produce.columns import ColumnEncoder
from penstock.client.produce.producer import AsyncProducer
from penstock.clock import SystemClock
from penstock.records.batch import decode_batch
from penstock.tables.topics import read_topic


class Calendar(SystemClock):
    """A clock with a fixed wall time and a normal monotonic time."""

    def now_ms(self) -> int:
        return 1_234_567


def test_columns_get_the_time_they_are_encoded_with() -> None:
    rows = pa.record_batch({"value": [b"a", b"b"], "timestamp": pa.array([None, 5], pa.timestamp("ms"))})
    encoder = ColumnEncoder(ProducerConfig.parse(None, {"bootstrap_servers": "unused:1"}), lambda: 0.5)
    [encoded] = encoder.encode(rows, 1, [0], 1_234_567)
    records = decode_batch(encoded.data, 0, len(encoded.data), "t", 0, verify=False)
    assert [record.timestamp for record in records] == [1_234_567, 5]


def test_rows_and_tables_get_the_time_of_the_clock() -> None:
    async def produce(bootstrap: str) -> None:
        async with AsyncProducer(bootstrap) as producer:
            producer.clock = Calendar()
            await (await producer.send("times", b"row"))
            await (await producer.send("times", b"with its own", timestamp=77))
            await (await producer.send_arrow("times", pa.table({"value": [b"column"]})))

    with Broker() as broker:
        asyncio.run(produce(broker.bootstrap_servers))
        table = read_topic("times", bootstrap_servers=broker.bootstrap_servers)
    times = [round(each.timestamp() * 1000) for each in table["timestamp"].to_pylist()]
    found = dict(zip(table["value"].to_pylist(), times, strict=True))
    assert found == {b"row": 1_234_567, b"with its own": 77, b"column": 1_234_567}
