"""A gateway's listener for Kafka 0.7: its server, reader and writer for the cluster, and ZooKeeper."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ClientConfig
from penstock.clock import SystemClock
from penstock.common.failures import Failures, LimitedLog
from penstock.common.logs import logger_named
from penstock.errors import PenstockError
from penstock.gateway.limits import Limits
from penstock.gateway.v07.counts import Counts07
from penstock.gateway.v07.offsets import slot_bits_of
from penstock.gateway.v07.padding import WRAPPED
from penstock.gateway.v07.reading import ClusterReader
from penstock.gateway.v07.store import ClusterStore
from penstock.gateway.v07.topics import ClusterTopics
from penstock.gateway.v07.writing import ClusterWriter
from penstock.v07.server import StoreServer
from penstock.v07.settings import Settings

if TYPE_CHECKING:
    from penstock.v07.groups.registration import Registration

READ_BYTES = 64 << 10
"""The size in bytes of a connection's read buffer, in which requests wait while the producer's buffer is
full."""

FOLLOW_EVERY_S = 10.0
"""Seconds between look-ups of all topics of the cluster, to register new ones in ZooKeeper."""

FOLLOW_AGAIN_S = 1.0

CLOSE_S = 10.0
"""The longest time in seconds that closing waits for the acknowledgement of produced messages."""

logger = logger_named("penstock.gateway")


class Options07(NamedTuple):
    """The options of the listener for Kafka 0.7; see the arguments ``v07_*`` of `Gateway`.

    `zookeeper` is ``host:port,host:port/chroot``, or empty for no registration.
    """

    port: int
    zookeeper: str = ""
    broker_id: int = 0
    slot_bytes: int = 0
    form: str = WRAPPED


class Listener07(NamedTuple):
    """A running listener for Kafka 0.7 clients: its port and its counts."""

    server: StoreServer
    counts: Counts07


@asynccontextmanager
async def serving07(
    options: Options07,
    to: str | Sequence[str],
    given: Mapping[str, object],
    config: ClientConfig,
    limits: Limits,
    host: str,
    advertised_host: str | None,
) -> AsyncIterator[Listener07]:
    """Serve a cluster to clients of 0.7, on the running event loop, while the block runs.

    `given` are the settings of connections to the cluster, from which `config` was parsed.

    Raises:
        NetworkError: the gateway cannot listen on the address, or cannot reach ZooKeeper.
        MissingDependencyError: kazoo, which registration needs, is not installed.
    """
    clock = SystemClock()
    settings = Settings(
        {
            "brokerid": str(options.broker_id),
            "hostname": _host_for_others(host, advertised_host),
            "zk.connect": options.zookeeper,
            "max.socket.request.bytes": str(limits.request_bytes_max),
        }
    )
    log = LimitedLog(clock.monotonic, logger)
    counts = Counts07()
    client = AsyncClient(replace(config, allow_auto_create_topics=False, topic_metadata_propagation_max_ms=0))
    topics = ClusterTopics(client)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.close, 0)
        store = ClusterStore(
            client,
            topics,
            ClusterReader(client, topics),
            ClusterWriter(to, given, topics, counts, settings.unpack_limits, log),
            counts,
            log,
            message_bytes_max=settings.number("max.message.size"),
            slot_bits=slot_bits_of(options.slot_bytes),
            form=options.form,
        )
        stack.push_async_callback(store.close, CLOSE_S)
        server = StoreServer(
            store,
            settings,
            Failures(clock.monotonic, logger),
            clock,
            connections_max=limits.connections_max,
            read_bytes_max=READ_BYTES,
            held_bytes_max=limits.held_bytes_max,
            idle_s=limits.idle_ms / 1000,
        )
        await server.start(host, options.port)
        stack.push_async_callback(server.stop)
        if options.zookeeper:
            await stack.enter_async_context(_registered(topics, settings, server.address))
        yield Listener07(server, counts)


@asynccontextmanager
async def _registered(
    topics: ClusterTopics, settings: Settings, address: tuple[str, int]
) -> AsyncIterator[None]:
    """Keep the gateway registered in ZooKeeper as a broker of 0.7 that has the topics of the cluster."""
    from penstock.v07.groups.registration import Registration  # kazoo is an extra

    registration = Registration(settings, *address, lambda: topics.names, topics.count)
    try:
        await topics.look()
    except PenstockError as error:
        logger.warning("topics are registered in ZooKeeper when the cluster answers: %s", error)
    known = {name: topics.count(name) for name in topics.names}
    await asyncio.to_thread(registration.start)
    try:
        follower = asyncio.create_task(_follow(topics, registration, known))
        try:
            yield
        finally:
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)
    finally:
        await asyncio.to_thread(registration.stop)


async def _follow(topics: ClusterTopics, registration: Registration, known: dict[str, int]) -> None:
    """Register new topics, and new partitions of topics, until cancelled."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FOLLOW_EVERY_S if known else FOLLOW_AGAIN_S):
                await topics.created.wait()
        topics.created.clear()
        with contextlib.suppress(PenstockError):
            await topics.look(is_urgent=True)
        for name in topics.names:
            count = topics.count(name)
            if count and known.get(name) != count:
                known[name] = count
                registration.announce(name)


def _host_for_others(host: str, advertised_host: str | None) -> str:
    """Return the host to register in ZooKeeper: the machine's name if the gateway listens everywhere."""
    return advertised_host or (socket.gethostname() if host in ("", "0.0.0.0", "::") else host)
