"""Measure the first use of many topics: client and broker CPU per topic for sending, creating and reading.

    python benchmarks/many_topics.py [--topics 100,200,400,800,1600] [--memory]

One record is sent to each of many topics that do not exist yet: by the blocking producer, one after the
other, and by the asyncio producer, all at once. Then an admin client creates as many topics, and a consumer
reads the topics that have a record. Costs that grow faster than the number of topics show as a higher time
per topic.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

from harness import print_table
from penstock import Admin, Consumer, Producer
from penstock.client import AsyncProducer

PATIENCE_S = 120.0


@contextmanager
def running(in_memory: bool) -> Iterator[tuple[str, psutil.Process]]:
    """Start a broker; yield its address and process."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        command = [sys.executable, "-m", "penstock.broker", "--port", "0"]
        if not in_memory:
            command += ["--data-dir", directory]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            try:
                assert process.stdout is not None
                match = re.search(r"listening on (\S+:\d+)", process.stdout.readline())
                assert match is not None
                yield match[1], psutil.Process(process.pid)
            finally:
                process.terminate()


def send_each(address: str, names: list[str]) -> None:
    """Send a record to each topic, one after the other, with the blocking producer."""
    with Producer(address) as producer:
        for name in names:
            producer.send(name, b"value")
        producer.flush()


def send_all(address: str, names: list[str]) -> None:
    """Send a record to each topic, all at once, with the asyncio producer."""

    async def send() -> None:
        async with AsyncProducer(address) as producer:
            await asyncio.gather(*(producer.send(name, b"value") for name in names))
            await producer.flush()

    asyncio.run(send())


def create(address: str, names: list[str]) -> None:
    """Create all topics in one call of the admin client."""
    with Admin(address) as admin:
        admin.create_topics(names)


def read(address: str, names: list[str]) -> None:
    """Consume until a record of each topic has arrived."""
    with Consumer(address, auto_offset_reset="earliest", group_id="bench") as consumer:
        consumer.subscribe(names)
        deadline = time.monotonic() + PATIENCE_S
        seen: set[str] = set()
        while len(seen) < len(names) and time.monotonic() < deadline:
            seen.update(record.topic for record in consumer.poll(1000))
        assert len(seen) == len(names), f"{len(seen)} of {len(names)}"


def cpu_ms(process: psutil.Process) -> float:
    times = process.cpu_times()
    return (times.user + times.system) * 1000


def main() -> None:
    """Print a row for each number of topics and each way to use them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--topics", default="100,200,400,800,1600")
    parser.add_argument("--memory", action="store_true", help="a broker without files")
    arguments = parser.parse_args()
    rows = []
    here = psutil.Process()
    for count in map(int, arguments.topics.split(",")):
        with running(arguments.memory) as (address, broker):
            send_each(address, ["warm-up"])
            steps: list[tuple[str, Callable[[str, list[str]], None], str]] = [
                ("send, one by one", send_each, "each"),
                ("send, at once", send_all, "all"),
                ("create", create, "made"),
                ("read", read, "each"),
            ]
            for title, step, prefix in steps:
                names = [f"{prefix}{number}" for number in range(count)]
                client_ms, broker_ms, began = cpu_ms(here), cpu_ms(broker), time.monotonic()
                step(address, names)
                client_ms, broker_ms = cpu_ms(here) - client_ms, cpu_ms(broker) - broker_ms
                rows.append(
                    [
                        title,
                        str(count),
                        f"{client_ms / count:.2f}",
                        f"{broker_ms / count:.2f}",
                        f"{(client_ms + broker_ms) / count:.2f}",
                        f"{time.monotonic() - began:.2f}",
                    ]
                )
    print_table("first use of many topics", ["", "topics", "client ms", "broker ms", "both ms", "s"], rows)


if __name__ == "__main__":
    main()
