"""Random topics of several kinds and random SQL queries, with which tests compare query engines."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pyarrow as pa

from penstock import Admin, Producer, TopicPartition, read_topic

T0_MS = 1_700_000_000_000
KINDS = ("plain", "late", "compacted", "transactional", "recreated", "empty", "trimmed")


def rows(dice: random.Random, count: int, partitions: int, *, late: bool = False) -> pa.Table:
    """Return random records with null keys and tombstones; with `late`, timestamps are not ascending."""
    times = [T0_MS + 1_000 * number for number in range(count)]
    if late:
        times = [time - dice.choice([0, 0, 5_000, 400_000, 900_000]) for time in times]
    return pa.table(
        {
            "key": pa.array(
                [dice.choice([b"a", b"b", b"c'\"", b"", None]) for _ in range(count)], pa.binary()
            ),
            "value": pa.array(
                [
                    dice.choice([None, b"x", b'{"a": %d}' % number, b"\xff\xfe", b"it's"])
                    for number in range(count)
                ],
                pa.binary(),
            ),
            "timestamp": pa.array(times, pa.timestamp("ms", tz="UTC")),
            "partition": pa.array([dice.randrange(partitions) for _ in range(count)], pa.int32()),
        }
    )


def in_pieces(table: pa.Table, topic: str, servers: str, size: int) -> None:
    """Write a table to a topic in batches of `size` records."""
    with Producer(servers) as producer:
        for start in range(0, table.num_rows, size):
            producer.send_arrow(topic, table.slice(start, size))
            producer.flush()


def make_topic(kind: str, servers: str, admin: Admin, name: str, seed: int) -> None:
    """Create a topic of a kind, such as "compacted", and write random records to it."""
    dice = random.Random(seed)
    partitions = dice.choice([1, 3, 4])
    config = {"retention.ms": "-1", "segment.bytes": "16384"}
    if kind == "compacted":
        config |= {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "2048"}
    admin.create_topic(name, partitions, config=config)
    if kind == "empty":
        return
    table = rows(dice, 600, partitions, late=kind in ("late", "compacted"))
    if kind == "compacted":  # it has no room for records without keys
        keys = [b"k%d" % dice.randrange(40) for _ in range(table.num_rows)]
        table = table.set_column(0, "key", pa.array(keys, pa.binary()))
    if kind == "recreated":
        in_pieces(table.slice(0, 50), name, servers, 50)
        admin.delete_topics([name])
        admin.create_topic(name, partitions, config=config)
    if kind == "transactional":
        for index, start in enumerate(range(0, 600, 60)):
            piece = table.slice(start, 60)
            with Producer(servers, config={"transactional.id": f"{name}-{index}"}) as producer:
                try:
                    with producer.transaction():
                        producer.send_arrow(name, piece)
                        producer.flush()
                        if index % 3 == 1:
                            raise Abort
                except Abort:
                    pass
        return
    in_pieces(table, name, servers, 40)
    if kind == "compacted":
        wait_for_gaps(name, servers, table.num_rows)
        admin.alter_config(
            name, set={"cleanup.policy": "delete"}
        )  # no record goes while answers are compared
        wait_for_gaps(name, servers, table.num_rows)
    if kind == "trimmed":
        admin.delete_records({TopicPartition(name, 0): 30})


def wait_for_gaps(topic: str, servers: str, written: int) -> None:
    """Wait until compaction has removed some records and removes no more."""
    deadline, rows = time.monotonic() + 60, -1
    while True:
        left = read_topic(topic, servers).num_rows
        if left < written and left == rows:
            return
        assert time.monotonic() < deadline, "nothing was compacted"
        rows = left
        time.sleep(0.3)


class Abort(Exception):
    """An exception that aborts a transaction in a `with` block."""


def timestamp(dice: random.Random) -> str:
    """Return a random timestamp as SQL, sometimes outside of the topic's range."""
    ms = T0_MS + dice.choice([dice.randrange(-1_000_000, 700_000), dice.randrange(0, 600) * 1_000])
    return f"make_timestamptz({ms}::bigint * 1000 + {dice.choice([0, 0, 1])})"


def condition(dice: random.Random, depth: int = 0) -> str:
    """Return a random SQL condition on records; some of its parts limit what is fetched, others cannot."""
    if depth < 3 and dice.random() < 0.5:
        word = dice.choice(["and", "and", "or"])
        made = f"({condition(dice, depth + 1)} {word} {condition(dice, depth + 1)})"
        return f"not {made}" if dice.random() < 0.15 else made
    compare = dice.choice(["=", "<", "<=", ">", ">=", "<>"])
    makers: list[Callable[[], str]] = [
        lambda: f"partition {compare} {dice.randrange(-1, 6)}",
        lambda: f"partition in ({', '.join(str(dice.randrange(0, 6)) for _ in range(dice.randrange(1, 4)))})",
        lambda: f'"offset" {compare} {dice.choice([0, -5, dice.randrange(0, 300), 2**40])}',
        lambda: f'"offset" between {dice.randrange(0, 200)} and {dice.randrange(0, 300)}',
        lambda: f'"offset" in ({dice.randrange(0, 300)}, {dice.randrange(0, 300)}, {dice.randrange(0, 300)})',
        lambda: f"timestamp {compare} {timestamp(dice)}",
        lambda: f"timestamp between {timestamp(dice)} and {timestamp(dice)}",
        lambda: f"key {compare} 'b'::blob",
        lambda: f"key is {dice.choice(['', 'not '])}null",
        lambda: f"value is {dice.choice(['', 'not '])}null",
        lambda: "key in ('a'::blob, ''::blob)",
        lambda: f"octet_length(value) {compare} {dice.randrange(0, 12)}",
        lambda: f"topic {compare} 'nothing'",
        lambda: f'"offset" % 7 = {dice.randrange(0, 7)}',
        lambda: f'{dice.randrange(0, 300)} {compare} "offset"',
    ]
    return dice.choice(makers)()


def query(dice: random.Random) -> str:
    """Return a random query over the table ``t`` whose answer has a defined order."""
    where = f" where {condition(dice)}" if dice.random() < 0.9 else ""
    return dice.choice(
        [
            f"select count(*) from t{where}",
            f'select count(*), min("offset"), max("offset"), min(timestamp), max(timestamp) from t{where}',
            f"select key, count(*), sum(octet_length(value)) from t{where} group by key order by key",
            f'select partition, "offset", key, value, timestamp from t{where} order by partition, "offset"',
            f'select value, headers from t{where} order by partition, "offset" limit {dice.randrange(1, 20)}',
            f'select "offset" from t{where} order by "offset" desc, partition limit {dice.randrange(1, 9)}',
            f'select a.partition, a."offset", b.key from t a join t b using (partition, "offset") '
            f'where a.partition >= 0 and "offset" in (select "offset" from t{where}) order by 1, 2',
        ]
    )
