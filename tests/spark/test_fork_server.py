"""Tests of streams that are started one after another: all but the first fork a warm Python process."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import write_topic
from penstock.spark.runtime.fork_client import address

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(sys.platform != "linux", reason="fork servers are for Linux"),
]


def is_listening(jvm: int) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(address(jvm)) == 0


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def forked_for(jvm: int) -> list[int]:
    """Return the process ids that the fork server of a JVM has forked."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            command = stat.with_name("cmdline").read_bytes().split(b"\0")
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"penstock.spark.runtime.fork_server" in command and b"%d" % jvm in command:
            found[int(stat.parent.name)] = parent
    return [pid for pid, parent in found.items() if parent in found]


def test_streams_after_the_first_are_forked(
    spark: Any, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    rows = pa.table({"value": pa.array([b"%d" % n for n in range(10)], pa.binary())})
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    topic = new_topic(rows)
    read = spark.readStream.format("penstock").option("kafka.bootstrap.servers", brokers)
    frame = read.option("subscribe", topic).option("startingOffsets", "earliest").load()

    def start(name: str) -> Any:
        writer = frame.writeStream.format("memory").queryName(name)
        return writer.option("checkpointLocation", str(tmp_path / name)).start()

    def has_read(name: str, count: int) -> None:
        until(lambda: spark.table(name).count() == count)

    first = start("a_first_stream")
    has_read("a_first_stream", 10)
    write_topic(rows, topic, bootstrap_servers=brokers)
    has_read("a_first_stream", 20)
    until(lambda: is_listening(jvm))
    before = forked_for(jvm)
    second = start("a_second_stream")
    has_read("a_second_stream", 20)
    assert len(set(forked_for(jvm)) - set(before)) == 1
    write_topic(rows, topic, bootstrap_servers=brokers)
    has_read("a_first_stream", 30)
    has_read("a_second_stream", 30)
    second.stop()
    until(lambda: not set(forked_for(jvm)) - set(before))
    first.stop()
