"""Runs a server for one node, with metrics and Kafka 0.7, and closes the node's store at the end."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from penstock.broker.interceptors import Stage
from penstock.broker.network.server import Server
from penstock.broker.node import Node
from penstock.common.logs import logger_named

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.requests.routes import Interceptor
    from penstock.clock import Clock

logger = logger_named("penstock.broker")


@asynccontextmanager
async def serving(
    config: BrokerConfig,
    store: LogStore,
    clock: Clock,
    host: str,
    port: int,
    *,
    interceptors: Sequence[Interceptor] = (),
    numbers: Iterator[int] | None = None,
    make_node: Callable[..., Node] = Node,
) -> AsyncIterator[Server]:
    """Serve a node with `store` on the running loop for the length of a block, then close the store.

    `interceptors` wrap every handler, the first outermost. `numbers` yields the numbers of connections, from
    1 by default. `make_node` creates the node and takes the arguments of `Node`; a cluster passes a function
    of its own.
    """
    server: Server | None = None
    loop = asyncio.get_running_loop()
    try:
        async with AsyncExitStack() as stack:
            node = make_node(config, store, clock, interceptors)
            server = Server(node, loop, numbers or itertools.count(1))
            metrics_port = config["penstock.metrics.port"]
            if isinstance(metrics_port, int):
                from penstock.broker.network.metrics import Metrics, serving_metrics

                metrics = Metrics()
                node.interceptors.set(Stage.METRICS, metrics.intercept)
                server.metrics_port = await stack.enter_async_context(serving_metrics(server, metrics))
            await server.start(host, port)
            inspection = server.node.inspect()
            if config.data_dir is not None:
                inspection.start()
            try:
                port07 = config["penstock.0.7.port"]
                if isinstance(port07, int):
                    from penstock.broker.network.kafka07 import serving07

                    host07 = config.text("penstock.0.7.host") or host
                    listening = serving07(config, store, clock, host07, port07, server.node.failures)
                    server.address07 = await stack.enter_async_context(listening)
                yield server
            finally:
                inspection.stop()
                await server.stop()
    finally:
        if server is not None:
            server.node.end_upkeep()
        if server is not None and server.dies:
            store.abandon()
        else:
            if server is not None:
                for failure in server.node.note_producers():
                    logger.warning("what is known of producers is not written down: %s", failure)
            store.close()
