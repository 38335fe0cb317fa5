"""Unmaintained clients that are still in use, against Penstock's broker: pykafka, kafka-node and no-kafka."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from compat.peers import HERE, PATIENCE_S, need, node_program, python_program, until
from penstock import Broker, Producer

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

PARTITIONS = 4


@contextmanager
def broker_as(release: str | None, partitions: int = 1) -> Iterator[Broker]:
    settings = {"offsets.topic.num.partitions": "2", "num.partitions": str(partitions)}
    with Broker(config=settings, as_version=release) as broker:
        yield broker


def command(client: str, servers: str, *words: str) -> list[str]:
    if client == "pykafka":
        program = [str(python_program("pykafka")), str(HERE / "pykafka" / "main.py")]
    else:
        program = [need("node"), str(node_program("older-node") / f"{client}.js")]
    return [*program, servers, *words]


@pytest.mark.parametrize(
    ("client", "release", "oks"),
    # every codec it has, offsets, commits, and a group where there are groups
    [("pykafka", None, 5), ("pykafka", "0.10.2", 5), ("pykafka", "0.8.2", 4)]
    + [("kafka-node", release, 2) for release in (None, "0.10.2", "0.9")]
    + [("no-kafka", release, 3) for release in (None, "0.9")],
)
def test_what_it_writes_it_reads(client: str, release: str | None, oks: int) -> None:
    with broker_as(release) as broker:
        what = "records" if release != "0.8.2" else "records-of-0.8"
        done = subprocess.run(
            command(client, broker.bootstrap_servers, what),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert (done.returncode, done.stdout.count("ok ")) == (0, oks), done.stdout[-3000:] + done.stderr[-3000:]


class Member:
    """A group member in a process of its own, with the (partition, offset) pairs that it has read."""

    def __init__(self, client: str, servers: str) -> None:
        self.places: set[tuple[int, int]] = set()
        self.process = subprocess.Popen(
            command(client, servers, "member", "group", "t"), stdout=subprocess.PIPE, text=True
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith("\n"):  # killed in the middle of it
                break
            _, partition, offset = line.split()
            self.places.add((int(partition), int(offset)))

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.join(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.mark.parametrize("client", ["kafka-node", "no-kafka"])
def test_members_share_leave_and_die(client: str) -> None:
    with ExitStack() as stack:
        broker = stack.enter_context(broker_as(None, PARTITIONS))
        producer = stack.enter_context(Producer(bootstrap_servers=broker.bootstrap_servers))
        sent: set[tuple[int, int]] = set()
        members: list[Member] = []

        def write() -> None:
            futures = [producer.send("t", b"v", partition=partition) for partition in range(PARTITIONS)]
            sent.update(
                (done.partition, done.offset)
                for done in (each.result(timeout=PATIENCE_S) for each in futures)
            )

        def joins() -> Member:
            """Add a member, and wait until all members read records."""
            members.append(stack.enter_context(Member(client, broker.bootstrap_servers)))
            reads_on(*members)
            return members[-1]

        def reads_on(*readers: Member) -> None:
            before = [len(reader.places) for reader in readers]

            def all_have() -> bool:
                write()
                return all(len(each.places) > count for each, count in zip(readers, before, strict=True))

            until(all_have, f"of {len(readers)} members not every one reads", PATIENCE_S)

        def everything_is_read() -> None:
            write()
            until(
                lambda: sent <= set().union(*(each.places for each in members)),
                "records that nobody reads",
                PATIENCE_S,
            )

        first = joins()
        second = joins()
        first.process.terminate()
        assert first.process.wait(PATIENCE_S) is not None
        everything_is_read()
        second.process.kill()
        third = stack.enter_context(Member(client, broker.bootstrap_servers))
        members.append(third)
        reads_on(third)
        everything_is_read()
