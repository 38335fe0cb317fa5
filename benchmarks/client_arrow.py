"""Read topics into Arrow and write Arrow to topics over a socket, compared with confluent-kafka.

Both clients use one Penstock broker in a separate process. confluent-kafka is tuned: large queues and
fetches, no checksums. The consumer's batches are converted into a pyarrow.RecordBatch column by column. Its
producer is called once per record, which is its only interface.

Every producer run begins with an empty topic, after the former topic was deleted, so that the log uses memory
pages that were used before. On a virtual machine, never-used pages cost several times as much as all other
work.
"""

from __future__ import annotations

import itertools
import random
from functools import partial

import confluent_kafka as ck
import pyarrow as pa

from broker_process import running_broker
from harness import Contestant, arguments, measure, report
from penstock import Admin, read_topic, scan_topic, write_topic

PARTITIONS = 4
COLUMNS = ("key", "value", "partition", "offset", "timestamp")


WORDS = [
    "origin",
    "carrier",
    "delayed",
    "departed",
    "scheduled",
    "weather",
    "window",
    "gate",
    "airport",
    "flight",
    "north",
    "south",
]


def table_of(rows: int, value_bytes: int) -> pa.Table:
    """Return a table of values of one size without keys.

    Values are numbers and words that compress about as well as JSON does.
    """
    dice = random.Random(rows)
    pool = []
    for _ in range(997):
        text = " ".join(f"{dice.choice(WORDS)}={dice.randrange(10_000)}" for _ in range(value_bytes // 6))
        pool.append(text[: value_bytes - 10].encode())
    values = pa.array([b"%010d" % number + pool[number % 997] for number in range(rows)], pa.binary())
    return pa.table({"value": values})


# -- consume


def confluent_consumer(bootstrap: str) -> ck.Consumer:
    return ck.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "check.crcs": False,
            "queued.min.messages": 10_000_000,
            "queued.max.messages.kbytes": 1 << 20,
            "fetch.queue.backoff.ms": 1,
            "max.partition.fetch.bytes": 8 << 20,
            "fetch.max.bytes": 64 << 20,
        }
    )


def consume_confluent(consumer: ck.Consumer, topic: str, rows: int) -> None:
    """Consume a topic with confluent-kafka.

    One consumer serves all rounds, since closing it takes seconds.
    """
    consumer.assign([ck.TopicPartition(topic, p, ck.OFFSET_BEGINNING) for p in range(PARTITIONS)])
    seen = 0
    while seen < rows:
        # It waits for as many as it was asked for, so that the last call must not ask for more than come.
        messages = consumer.consume(min(10_000, rows - seen), timeout=10.0)
        if not messages:
            raise RuntimeError(f"{seen} of {rows} records came")
        batch = pa.record_batch(
            {
                "key": pa.array([m.key() for m in messages], pa.binary()),
                "value": pa.array([m.value() for m in messages], pa.binary()),
                "partition": pa.array([m.partition() for m in messages], pa.int32()),
                "offset": pa.array([m.offset() for m in messages], pa.int64()),
                "timestamp": pa.array([m.timestamp()[1] for m in messages], pa.timestamp("ms", tz="UTC")),
            }
        )
        seen += batch.num_rows
    consumer.unassign()


def consume_scan(bootstrap: str, topic: str, rows: int) -> None:
    seen = sum(batch.num_rows for batch in scan_topic(topic, bootstrap, columns=COLUMNS))
    assert seen == rows, (seen, rows)


def consume_table(bootstrap: str, topic: str, rows: int) -> None:
    assert read_topic(topic, bootstrap, columns=COLUMNS).num_rows == rows


# -- produce


def confluent_producer(bootstrap: str, codec: str) -> ck.Producer:
    return ck.Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 5,
            "compression.type": codec,
            "queue.buffering.max.messages": 10_000_000,
            "queue.buffering.max.kbytes": 1 << 20,
            "batch.num.messages": 100_000,
            "batch.size": 1_000_000,
        }
    )


def produce_confluent(bootstrap: str, topic: str, values: list[bytes], codec: str) -> None:
    producer = confluent_producer(bootstrap, codec)
    produce = producer.produce
    for number, value in enumerate(values):
        produce(topic, value)
        if not number % 100_000:
            producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("records were left")


def produce_arrow(bootstrap: str, topic: str, table: pa.Table, codec: str) -> None:
    assert write_topic(table, topic, bootstrap, compression=codec).rows == table.num_rows


def main() -> None:
    options = arguments("client, Arrow", rounds=5)
    cases = [(100, "none"), (100, "lz4"), (1_000, "none"), (1_000, "zstd")]
    numbers = itertools.count()
    with running_broker() as bootstrap, Admin(bootstrap) as admin:
        reader = confluent_consumer(bootstrap)

        def topic() -> str:
            name = f"bench-{next(numbers)}"
            admin.create_topic(name, PARTITIONS)
            return name

        def emptied(name: str) -> None:
            admin.delete_topics([name])
            admin.create_topic(name, PARTITIONS)

        for value_bytes, codec in cases[:: 2 if options.quick else 1]:
            rows = 400_000_000 // (value_bytes + 30) // (4 if options.quick else 1)
            size = rows * value_bytes
            table = table_of(rows, value_bytes)
            filled, target = topic(), topic()
            produce_arrow(bootstrap, filled, table, codec)
            consumers = [
                Contestant(
                    "confluent-kafka consume(10000) → record_batch",
                    partial(consume_confluent, reader, filled, rows),
                    rows,
                    size,
                ),
                Contestant("penstock scan_topic", partial(consume_scan, bootstrap, filled, rows), rows, size),
                Contestant(
                    "penstock read_topic", partial(consume_table, bootstrap, filled, rows), rows, size
                ),
            ]
            measure(consumers, options.rounds)
            report(f"consume to Arrow, {value_bytes} B, {codec}", consumers)
            values = table["value"].to_pylist()
            producers = [
                Contestant(
                    "confluent-kafka produce()",
                    partial(produce_confluent, bootstrap, target, values, codec),
                    rows,
                    size,
                    prepare=partial(emptied, target),
                ),
                Contestant(
                    "penstock write_topic",
                    partial(produce_arrow, bootstrap, target, table, codec),
                    rows,
                    size,
                    prepare=partial(emptied, target),
                ),
            ]
            measure(producers, options.rounds)
            report(f"produce from Arrow, {value_bytes} B, {codec}", producers)
            admin.delete_topics([filled, target])


if __name__ == "__main__":
    main()
