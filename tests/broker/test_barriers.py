"""Tests that raise an exception in each part of the broker that others must not depend on.

A well-behaved client beside it must notice nothing; the exception is counted for its component and logged
once. It is raised in work for a misbehaving client, or, in parts that serve no client, on their next run.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import penstock.broker.groups.service
import penstock.broker.network.metrics
import penstock.broker.requests.dispatch
import penstock.common.listening.accepting
import penstock.v07.server
from broker.bench_node import batch_of, produce_request
from broker.good_client import GoodClient, fetch_request
from broker.groups.requests import heartbeat_request, join_request
from broker.wire_client import WireClient, is_well
from penstock import Broker
from penstock.broker.groups.classic.group import ClassicGroup
from penstock.broker.groups.service import GroupService
from penstock.broker.network.connection import ServedConnection
from penstock.broker.network.large_answer import LargeAnswer
from penstock.broker.network.metrics import _CountingEncoder
from penstock.broker.network.server import Server
from penstock.broker.node import Node
from penstock.broker.partitions.partition import Partition
from penstock.broker.partitions.upkeep.cleaner import Compactor
from penstock.broker.requests.purgatory import Purgatory
from penstock.common.listening.accepting import Acceptor
from penstock.log.disk.disk_log import DiskLog, FileFlush
from penstock.protocol.message import Message
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.v07.byte_log import ByteLog
from penstock.v07.message_set import encode_set
from penstock.v07.topics import Topics
from penstock.v07.wire import FetchPart, ProducePart, RequestType, WireRequest, encode_request

PATIENCE_S = 60.0

ERRORS: list[Callable[[], Exception]] = [
    lambda: ValueError("a fault"),
    lambda: MemoryError("a fault"),
    lambda: RecursionError("a fault"),
]
ERROR_NAMES = ["ValueError", "MemoryError", "RecursionError"]


class Bed:
    """A test bed with a broker, the well-behaved client, and the actions of the misbehaving one."""

    def __init__(self, broker: Broker, good: GoodClient) -> None:
        self.broker = broker
        self.good = good
        self._numbers = itertools.count()

    @property
    def server(self) -> Server:
        assert self.broker.server is not None
        return self.broker.server

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the broker's thread, and wait until it has ended."""
        done = threading.Event()

        def run() -> None:
            try:
                function()
            finally:
                done.set()

        self.server.loop.call_soon_threadsafe(run)
        assert done.wait(PATIENCE_S)

    # --- what the bad client does ------------------------------------------------------------------------

    def ask(self, *requests: tuple[Message, int]) -> None:
        """Connect as client ``bad``, send all requests at once, and read answers until the peer hangs up."""
        with contextlib.suppress(OSError), WireClient(self.broker.port, 0.3, "bad") as client:
            client.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
            client.socket.sendall(b"".join(client.bytes_of(*request) for request in requests))
            for _ in requests:
                client.receive()

    def ask_for_metadata(self) -> None:
        self.ask((MetadataRequest(topics=[MetadataRequestTopic(name="bad")]), 9))

    def ask_twice(self) -> None:
        """Send two requests in one write, so that their answers are sent together."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name="bad")])
        self.ask((request, 9), (request, 9))

    def poll(self) -> None:
        self.ask((fetch_request("quiet", 0, 30), 12))

    def poll_and_go(self) -> None:
        with contextlib.suppress(OSError), WireClient(self.broker.port, 0.3, "bad") as client:
            client.ask(fetch_request("quiet", 0, 1), 12)
            client.send(fetch_request("quiet", 0, 60_000), 12)

    def produce(self) -> None:
        self.ask((produce_request(batch_of(b"value"), topic="bad"), 9))

    def produce_much(self) -> None:
        self.ask((produce_request(batch_of(b"v" * 300_000), topic="bad"), 9))

    def fetch_much(self) -> None:
        self.produce_much()
        self.ask((fetch_request("bad", 0, 0), 12))

    def produce_flushed(self) -> None:
        with contextlib.suppress(OSError), WireClient(self.broker.port, 0.3, "bad") as client:
            for _ in range(2):
                client.ask(produce_request(batch_of(b"value"), topic="flushed"), 9)

    def join(self) -> None:
        """Join two members and let the second one fall silent, so that the rebalance timer fires."""
        group = f"bad {next(self._numbers)}"
        first = join_request(group=group, session_timeout_ms=6000, rebalance_timeout_ms=50)
        second = join_request(group=group, session_timeout_ms=6000, rebalance_timeout_ms=50)
        with contextlib.suppress(OSError), WireClient(self.broker.port, 0.3, "bad") as client:
            joined = client.ask(first, 3)
            heartbeat = heartbeat_request(joined.member_id, joined.generation_id, group=group)
            client.ask(heartbeat, 3)
            self.ask((second, 3))
            client.ask(heartbeat, 3)

    def keep_house(self) -> None:
        self.call(self.server._keep_house)

    def keep_house_of_open_logs(self) -> None:
        """Produce first, since only open logs are maintained; then run the maintenance."""
        self.produce()
        self.keep_house()

    def finish_in_a_thread(self) -> None:
        call_soon = self.server.node.call_soon
        assert call_soon is not None
        call_soon(self.finished)

    def finished(self) -> None:
        """Do nothing: the callback that a thread schedules on the broker's event loop."""

    def scrape(self) -> None:
        assert self.server.metrics_port is not None
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.server.metrics_port), 5) as peer,
        ):
            peer.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            while peer.recv(1 << 16):
                pass

    def ask_07(self) -> None:
        assert self.server.address07 is not None
        data = encode_set([b"value"])
        with contextlib.suppress(OSError), socket.create_connection(self.server.address07, 5) as peer:
            peer.sendall(encode_request(WireRequest(RequestType.PRODUCE, (ProducePart("bad", 0, data),))))
            peer.sendall(encode_request(WireRequest(RequestType.FETCH, (FetchPart("bad", 0, 0, 1000),))))
            peer.recv(1000)

    def connect(self) -> None:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.broker.port), 5) as one,
        ):
            one.settimeout(1)
            one.recv(1)


class Place(NamedTuple):
    """A function in the broker that a test makes raise.

    It says when the function raises, how the misbehaving client triggers it, and the component that counts
    the error.
    """

    name: str
    holder: Any
    function: str
    when: Callable[..., bool]
    trigger: Callable[[Bed], None]
    component: str
    once: bool = False


def of_bad_client(connection: Any, *_: Any, **__: Any) -> bool:
    context = getattr(connection, "_context", None)
    return context is not None and context.session.client_id == "bad"


def to_bad_client(answer: Any, *_: Any, **__: Any) -> bool:
    return of_bad_client(answer._sender)


def any_time(*_: Any, **__: Any) -> bool:
    return True


def of_bad_topic(partition: Any, *_: Any, **__: Any) -> bool:
    return str(partition.topic) == "bad"


def of_bad_group(group: Any, *_: Any, **__: Any) -> bool:
    return bool(group.id.startswith("bad"))


CONNECTION_PLACES = [
    Place(f"connection {function}", ServedConnection, function, of_bad_client, trigger, component)
    for function, trigger, component in (
        ("deliver", Bed.ask_for_metadata, "request"),
        ("flush", Bed.ask_twice, "request"),
        ("note_time", Bed.poll, "request"),
        ("_wait", Bed.poll, "request"),
        ("_run_again", Bed.poll, "waiter"),
        ("go_on", Bed.poll, "request"),
        ("_take_requests", Bed.fetch_much, "request"),
        ("_send", Bed.fetch_much, "request"),
        ("_cancel_parked", Bed.poll_and_go, "connection"),
        ("_forget_unanswered", Bed.poll_and_go, "connection"),
        ("_cancel_timers", Bed.ask_for_metadata, "connection"),
        ("drop_frame", Bed.ask_for_metadata, "connection"),
    )
]

ANSWER_PLACES = [
    Place("large answer", LargeAnswer, "_send_region", to_bad_client, Bed.fetch_much, "request"),
]

REQUEST_PLACES = [
    Place(
        "handler",
        penstock.broker.requests.dispatch,
        "encode_outcome",
        lambda response, request, route, number, context: context.session.client_id == "bad",
        Bed.ask_for_metadata,
        "request",
    ),
    Place(
        "encoder",
        _CountingEncoder,
        "encode",
        lambda encoder, message: getattr(message, "topics", None) and message.topics[0].name == "bad",
        Bed.ask_for_metadata,
        "request",
    ),
    Place("append", Partition, "append", of_bad_topic, Bed.produce, "request"),
    Place("a connection begins", ServedConnection, "_begin", any_time, Bed.connect, "request", once=True),
    Place("admission", Server, "admit", any_time, Bed.connect, "request", once=True),
]

SERVER_PLACES = [
    Place("taking in", Acceptor, "_begin", any_time, Bed.connect, "accept", once=True),
    Place("what is due", Purgatory, "take_due", any_time, Bed.poll, "timer", once=True),
    Place("idle connections", Server, "_close_idle", any_time, Bed.keep_house, "housekeeping"),
    Place("maintenance", Node, "maintain", any_time, Bed.keep_house, "housekeeping"),
    Place(
        "maintenance of a log",
        Partition,
        "maintain",
        of_bad_topic,
        Bed.keep_house_of_open_logs,
        "housekeeping",
    ),
    Place("maintenance of groups", GroupService, "maintain", any_time, Bed.keep_house, "housekeeping"),
    Place("compaction", Compactor, "step", any_time, Bed.keep_house, "housekeeping"),
    Place("the checkpoint begins", Server, "_begin_checkpoint", any_time, Bed.keep_house, "housekeeping"),
    Place("flush in a thread", FileFlush, "sync", any_time, Bed.produce_flushed, "flush"),
    Place("a flush is done", DiskLog, "flushed", any_time, Bed.produce_flushed, "flush"),
    Place("what a thread has finished", Bed, "finished", any_time, Bed.finish_in_a_thread, "callback"),
    Place("metrics", penstock.broker.network.metrics, "render", any_time, Bed.scrape, "metrics"),
]

GROUP_PLACES = [
    Place("a generation begins", ClassicGroup, "_complete_join", of_bad_group, Bed.join, "group timer"),
    Place("a join's timer", ClassicGroup, "_join_time_is_up", of_bad_group, Bed.join, "group timer"),
    Place("a sync's timer", ClassicGroup, "_sync_time_is_up", of_bad_group, Bed.join, "group timer"),
    Place("a heartbeat", ClassicGroup, "heartbeat", of_bad_group, Bed.join, "request"),
    Place(
        "a group is stored",
        penstock.broker.groups.service,
        "snapshot",
        of_bad_group,
        Bed.join,
        "group",
    ),
]

PLACES_07 = [
    Place("0.7 request", penstock.v07.server, "decode_request", any_time, Bed.ask_07, "0.7 request"),
    Place("0.7 fetch", Topics, "log", any_time, Bed.ask_07, "0.7 request"),
    Place("0.7 flusher", ByteLog, "maintain", any_time, Bed.ask_07, "0.7 flusher"),
]

PLACES = [*CONNECTION_PLACES, *ANSWER_PLACES, *REQUEST_PLACES, *SERVER_PLACES, *GROUP_PLACES, *PLACES_07]


def topic(name: str, **configs: str) -> CreatableTopic:
    settings = [
        CreatableTopicConfig(name=each.replace("_", "."), value=text) for each, text in configs.items()
    ]
    return CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=settings)


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    directory = tmp_path_factory.mktemp("barriers")
    settings = {
        "penstock.metrics.port": "0",
        "penstock.0.7.log.default.flush.scheduler.interval.ms": "50",
        "group.initial.rebalance.delay.ms": "0",
        # Records of these tests are years old: retention would remove them half a minute after the start,
        # one perhaps before the good client has read it.
        "log.retention.ms": "-1",
    }
    with Broker(directory / "data", config=settings, listen_07=0) as broker:
        with WireClient(broker.port) as client:
            topics = [
                topic("good"),
                topic("quiet"),
                topic("bad"),
                topic("flushed", flush_messages="1"),
                topic("compacted", cleanup_policy="compact"),
            ]
            client.ask(CreateTopicsRequest(topics=topics), 5)
        good = GoodClient(broker.port)
        good.start()
        good.is_well()
        bed = Bed(broker, good)
        bed.ask_07()  # so that there is a log
        # Faults are those of a class: another broker of this process, which has them too, reports elsewhere.
        bed.server.node.failures._logger = logging.getLogger("penstock.bed")
        yield bed
        good.is_well()
        good.stop()
        assert not good.errors


@contextlib.contextmanager
def fault(place: Place, make: Callable[[], Exception]) -> Iterator[list[int]]:
    """Make a function raise for the length of a block.

    Yields a list that gets one element each time it raises.
    """
    original = getattr(place.holder, place.function)
    raised: list[int] = []

    def raising(*arguments: Any, **named: Any) -> Any:
        if place.when(*arguments, **named) and not (place.once and raised):
            raised.append(1)
            raise make()
        return original(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place.holder, place.function, raising)
        yield raised


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("make", ERRORS, ids=ERROR_NAMES)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_good_client_notices_nothing(
    place: Place, make: Callable[[], Exception], bed: Bed, caplog: pytest.LogCaptureFixture
) -> None:
    failures = bed.server.node.failures
    failures.counts.clear()
    failures._reported.clear()
    with caplog.at_level(logging.ERROR, logger="penstock"), fault(place, make) as raised:
        for _ in range(2):
            place.trigger(bed)
        eventually(lambda: raised and failures.counts.get(place.component))
        bed.good.is_well()
        bed.keep_house()
        assert is_well(bed.broker.port)
    bed.good.is_well()
    assert raised
    of_component = [
        record
        for record in caplog.records
        if record.name == "penstock.bed" and record.getMessage().startswith(f"{place.component} failed: ")
    ]
    assert len(of_component) == 1
    assert of_component[0].exc_info is not None
    if not place.once:
        assert failures.counts[place.component] >= 1
    # The place is as useful as before: the bad client, should it behave, is served.
    place.trigger(bed)
    bed.good.is_well()
