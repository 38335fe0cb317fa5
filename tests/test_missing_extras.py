"""Without numpy or pyarrow, everything that needs them says which extra to install, and the rest works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BLOCKED = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
import asyncio
from penstock import Admin, Broker, Consumer, Producer, read_log, read_topic, scan_topic, write_topic
from penstock.client import AsyncConsumer, AsyncProducer, fetch_ranges
from penstock.errors import MissingDependencyError

async def poll():
    async with AsyncConsumer(servers) as consumer:
        consumer.assign([("t", 0)])
        await consumer.poll_arrow()

async def send():
    async with AsyncProducer(servers) as producer:
        await producer.send_arrow("t", None)

def with_consumer():
    with Consumer(servers) as consumer:
        consumer.assign([("t", 0)])
        consumer.poll_arrow()

def with_producer():
    with Producer(servers) as producer:
        producer.send_arrow("t", None)

with Broker() as broker:
    servers = broker.bootstrap_servers
    with Admin(servers) as admin:
        admin.create_topic("t")
    with Producer(servers) as producer:
        producer.send("t", b"v").result(30)
    try:
        {call}
    except MissingDependencyError as error:
        print(error)
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        print(consumer.poll(30_000)[0].value)
"""

CALLS = {
    'read_topic("t", servers)': "read_topic",
    'scan_topic("t", servers)': "scan_topic",
    'read_topic("t", servers, protocol="0.7")': "read_topic",
    'write_topic([], "t", servers)': "write_topic",
    'list(fetch_ranges(servers, [("t", 0, 0, 1)]))': "fetch_ranges",
    "asyncio.run(poll())": "poll_arrow",
    "with_consumer()": "poll_arrow",
    "asyncio.run(send())": "send_arrow",
    "with_producer()": "send_arrow",
    "from penstock.gateway.hooks import Hook; Hook(on_batches=print)": "on_batches",
    "from penstock.client import WriteSummary": "penstock.client.WriteSummary",
    "from penstock.cloudevents import decode_events": "penstock.cloudevents.decode_events",
    "from penstock.cloudevents import encode_events": "penstock.cloudevents.encode_events",
}


def printed(call: str, *missing: str) -> str:
    code = BLOCKED.format(missing=missing, call=call)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("call", list(CALLS))
@pytest.mark.parametrize("missing", ["numpy", "pyarrow"])
def test_what_is_missing_is_said_with_the_extra_that_has_it(call: str, missing: str) -> None:
    expected = f"{CALLS[call]} needs {missing}: pip install 'penstock[arrow]'\nb'v'\n"
    assert printed(call, missing) == expected


@pytest.mark.parametrize("age", ["now", "0.7"])
def test_so_does_reading_a_directory(age: str, tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    partition.mkdir()
    name = "00000000000000000000.log" if age == "now" else "00000000000000000000.kafka"
    (partition / name).write_bytes(b"")
    said = printed(f"read_log({str(tmp_path)!r})", "pyarrow")
    assert said == "reading into Arrow needs pyarrow: pip install 'penstock[arrow]'\nb'v'\n"
