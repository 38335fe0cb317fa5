"""Tests without numpy or pyarrow: features that need them name the extra to install, and others work."""

from __future__ import annotations

import json
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
import asyncio, json, os, traceback
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

def attempt(call):
    global servers
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("t")
        with Producer(servers) as producer:
            producer.send("t", b"v").result(30)
        try:
            exec(call, globals())
        except MissingDependencyError as error:
            print(error)
        with Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", 0)])
            print(consumer.poll(30_000)[0].value)

for call in json.loads(sys.argv[1]):
    print("call", call, flush=True)
    if (child := os.fork()) == 0:
        try:
            attempt(call)
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
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


def printed(calls: list[str], *missing: str) -> dict[str, str]:
    """Run each call in a forked process of its own; return a dict from the call to what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED.format(missing=missing), json.dumps(calls)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    parts = ("\n" + done.stdout).split("\ncall ")[1:]
    return {call: part.removeprefix(f"{call}\n") for call, part in zip(calls, parts, strict=True)}


@pytest.mark.parametrize("missing", ["numpy", "pyarrow"])
def test_what_is_missing_is_said_with_the_extra_that_has_it(missing: str) -> None:
    expected = {
        call: f"{name} needs {missing}: pip install 'penstock[arrow]'\nb'v'" for call, name in CALLS.items()
    }
    found = printed(list(CALLS), missing)
    assert {call: said.removesuffix("\n") for call, said in found.items()} == expected


def test_so_does_reading_a_directory(tmp_path: Path) -> None:
    calls = []
    for name in ("00000000000000000000.log", "00000000000000000000.kafka"):
        partition = tmp_path / name / "t-0"
        partition.mkdir(parents=True)
        (partition / name).write_bytes(b"")
        calls.append(f"read_log({str(tmp_path / name)!r})")
    expected = "reading into Arrow needs pyarrow: pip install 'penstock[arrow]'\nb'v'"
    assert {said.removesuffix("\n") for said in printed(calls, "pyarrow").values()} == {expected}
