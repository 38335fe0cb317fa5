"""Read a topic into Arrow with the Kafka 0.7 protocol, compared with today's protocol.

One broker in a separate process serves both protocols. The topic for today's protocol has one partition too,
since 0.7 can only read a partition with one request after another.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from broker_process import free_port, running_broker
from client_arrow import table_of
from harness import Contestant, arguments, measure, report
from penstock import scan_topic, write_topic
from penstock.records.compression.codecs import CompressionCodec
from penstock.v07.driver import Driver07

COLUMNS = ("value", "partition", "offset")
SET_MESSAGES = 5_000


def fill(host: str, port: int, topic: str, table: pa.Table, codec: CompressionCodec) -> None:
    values = table["value"].to_pylist()
    with Driver07(host, port) as driver:
        for first in range(0, len(values), SET_MESSAGES):
            driver.send(topic, values[first : first + SET_MESSAGES], partition=0, codec=codec)
        driver.latest(topic, 0)  # an answer: everything before it has been taken


def consume(topic: str, address: str, protocol: str, rows: int) -> None:
    batches = scan_topic(topic, address, columns=COLUMNS, protocol=protocol)
    seen = sum(batch.num_rows for batch in batches)
    assert seen == rows, (seen, rows)


def main() -> None:
    options = arguments("Kafka 0.7, Arrow", rounds=5)
    port = free_port()
    old = f"127.0.0.1:{port}"
    with running_broker(f"penstock.0.7.port={port}", "penstock.0.7.log.file.size=268435456") as modern:
        for value_bytes, codec in ((100, "none"), (1_000, "none"), (100, "gzip")):
            rows = (200_000_000 if not options.quick else 20_000_000) // (value_bytes + 100)
            table = table_of(rows, value_bytes)
            topic = f"topic-{value_bytes}-{codec}"
            fill("127.0.0.1", port, topic, table, CompressionCodec.from_name(codec))
            write_topic(table, topic, modern, compression=codec)
            contestants = [
                Contestant(
                    "today's protocol",
                    partial(consume, topic, modern, "kafka", rows),
                    rows,
                    rows * value_bytes,
                ),
                Contestant("Kafka 0.7", partial(consume, topic, old, "0.7", rows), rows, rows * value_bytes),
            ]
            measure(contestants, options.rounds)
            report(f"consume to Arrow, {value_bytes} B, {codec}", contestants)


if __name__ == "__main__":
    main()
