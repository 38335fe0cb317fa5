"""Run the cases of ``make bench-check``; print each case's CPU seconds, the least of three runs, as JSON.

    PYTHONPATH=TREE/src python tools/bench_cases.py [CASE ...]

The `penstock` package of TREE is measured. If it lacks a feature that a case needs, the case is left out of
the output line, and the reason is printed to stderr.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from penstock.protocol.framing import encode_request
from penstock.protocol.message import Message

VALUE = b"%010d" % 7 + b"x" * 90
ROWS = 100_000
FEW_ROWS = 20_000
REQUESTS = 2_000
RUNS = 3


@cache
def broker() -> Any:
    """Return the in-memory broker that all cases of this process share, after starting it if necessary."""
    from penstock import Broker

    return Broker().__enter__()


@cache
def table(rows: int) -> Any:
    """Return a table of rows with keys and values of 100 bytes."""
    import pyarrow as pa

    return pa.table({"key": pa.array([b"%d" % n for n in range(rows)]), "value": pa.array([VALUE] * rows)})


@cache
def written(rows: int) -> str:
    """Return the name of a topic that contains `table(rows)`."""
    from penstock import write_topic

    topic = f"rows-{rows}"
    write_topic(table(rows), topic, broker().bootstrap_servers)
    return topic


def read_values() -> Callable[[], object]:
    from penstock import read_topic

    topic = written(ROWS)
    return lambda: read_topic(topic, broker().bootstrap_servers, columns=["value"])


def read_columns() -> Callable[[], object]:
    from penstock import read_topic

    topic = written(ROWS)
    return lambda: read_topic(topic, broker().bootstrap_servers)


def write_columns() -> Callable[[], object]:
    from penstock import write_topic

    rows = table(ROWS)
    return lambda: write_topic(rows, "written", broker().bootstrap_servers)


def send_rows() -> Callable[[], object]:
    from penstock import Producer

    def send() -> None:
        with Producer(broker().bootstrap_servers, linger_ms=5) as producer:
            for _ in range(FEW_ROWS):
                producer.send("sent", VALUE)
            producer.flush()

    return send


def poll_rows() -> Callable[[], object]:
    from penstock import Consumer, TopicPartition

    topic = written(FEW_ROWS)

    def poll() -> None:
        with Consumer(bootstrap_servers=broker().bootstrap_servers) as consumer:
            place = TopicPartition(topic, 0)
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            seen = 0
            while seen < FEW_ROWS:
                seen += len(consumer.poll(timeout_ms=5_000, max_records=10_000))

    return poll


def answered(request: Message, version: int) -> Callable[[], object]:
    """Return a case that sends prepared requests one at a time, so that nearly all CPU is the broker's."""
    frame = b"".join(map(bytes, encode_request(request, version, 7, "bench")))
    connection = socket.create_connection(("127.0.0.1", broker().port))

    def ask() -> None:
        for _ in range(REQUESTS):
            connection.sendall(frame)
            left = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
            connection.recv(left, socket.MSG_WAITALL)

    return ask


def one_produce() -> Callable[[], object]:
    from penstock import Admin
    from penstock.protocol.messages.produce_request import (
        PartitionProduceData,
        ProduceRequest,
        TopicProduceData,
    )
    from penstock.records.batch import encode_batch

    with Admin(bootstrap_servers=broker().bootstrap_servers) as admin:
        admin.create_topic("one", partitions=1)
    part = PartitionProduceData(index=0, records=encode_batch([(b"key", VALUE, (), 1_700_000_000_000)]))
    topic = TopicProduceData(name="one", partition_data=[part])
    request = ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[topic])
    return answered(request, 7)


def one_fetch() -> Callable[[], object]:
    from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    topic = FetchTopic(topic=written(10), partitions=[part])
    request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1_000, topics=[topic])
    return answered(request, 6)


def one_metadata() -> Callable[[], object]:
    from penstock.protocol.messages.metadata_request import MetadataRequest

    return answered(MetadataRequest(topics=None), 5)


def events() -> Callable[[], object]:
    """Return a case that decodes binary CloudEvents from a table of records."""
    import pyarrow as pa

    from penstock.cloudevents import decode_events
    from penstock.records.arrow import HEADERS_TYPE

    names = {"ce_specversion": b"1.0", "ce_id": b"7", "ce_source": b"/bench", "ce_type": b"bench"}
    headers = [{"key": name, "value": value} for name, value in names.items()]
    rows = pa.table(
        {
            "value": pa.array([VALUE] * ROWS),
            "headers": pa.array([headers] * ROWS, HEADERS_TYPE),
        }
    )
    return lambda: decode_events(rows)


def started(code: str) -> Callable[[], object]:
    """Return a case that runs `code` in a new Python process, whose CPU counts."""
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))


def start_broker() -> Callable[[], object]:
    return started("from penstock import Broker\nwith Broker(): pass")


def first_table() -> Callable[[], object]:
    topic, servers = written(10), broker().bootstrap_servers
    return started(f"from penstock import read_topic\nread_topic({topic!r}, {servers!r})")


def command_line() -> Callable[[], object]:
    return started("from penstock.cli import main\nmain(['topic', '--help'])")


CASES: dict[str, Callable[[], Callable[[], object]]] = {
    "read_topic, value": read_values,
    "read_topic, all columns": read_columns,
    "write_topic": write_columns,
    "rows sent": send_rows,
    "rows polled": poll_rows,
    "one-record Produce": one_produce,
    "one-record Fetch": one_fetch,
    "Metadata": one_metadata,
    "CloudEvents out of records": events,
    "a broker starts": start_broker,
    "a first table in a new process": first_table,
    "penstock topic --help": command_line,
}


def cpu_s() -> float:
    """Return the CPU seconds of this process and of its ended child processes."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def main(names: list[str]) -> None:
    found = {}
    for name, prepare in CASES.items():
        if names and name not in names:
            continue
        try:
            run = prepare()
            run()
        except (ImportError, AttributeError, TypeError) as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        took = []
        for _ in range(RUNS):
            before = cpu_s()
            run()
            took.append(cpu_s() - before)
        found[name] = min(took)
    print(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
