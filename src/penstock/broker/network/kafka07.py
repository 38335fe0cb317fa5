"""A second listener of a broker, for the protocol of Kafka 0.7, with logs of its own.

Offsets of a 0.7 log count bytes, those of a modern log count records, so the two listeners share a process
and a data directory, but no topics; `penstock mirror` copies records between them. The settings are `host`,
`port` and the settings of Kafka 0.7, all with the prefix ``penstock.0.7.``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.partitions.log_store import LogStore
    from penstock.clock import Clock
    from penstock.common.failures import Failures

PREFIX = "penstock.0.7."

DIRECTORY = "kafka-0.7"
"""The subdirectory of the data directory with the logs of Kafka 0.7. No partition can have this name."""


@asynccontextmanager
async def serving07(
    config: BrokerConfig, store: LogStore, clock: Clock, host: str, port: int, failures: Failures
) -> AsyncIterator[tuple[str, int]]:
    """Listen for Kafka 0.7 on the running loop for the length of a block; yield host and port.

    `failures` logs and counts exceptions that end one connection or one periodic flush.

    Raises:
        ConfigError: a setting is invalid.
        NetworkError: the address cannot be listened on, or ZooKeeper cannot be reached.
        StorageError: the directory cannot be used.
    """
    from penstock.records.compression.codecs import BYTES_OPTION, RECORDS_OPTION
    from penstock.v07.server import serving  # few brokers have this listener, and starting is fast
    from penstock.v07.settings import Settings

    texts = {
        name.removeprefix(PREFIX): text
        for name, text in config.settings.items()
        if name.startswith(PREFIX) and name not in (f"{PREFIX}host", f"{PREFIX}port")
    }
    # Both listeners have the same broker id unless a setting gives another.
    texts.setdefault("brokerid", str(store.node_id))
    for name in (BYTES_OPTION, RECORDS_OPTION):
        texts[name] = str(config.integer(name))
    directory = store.side_directory(DIRECTORY)
    async with serving(directory, host, port, Settings(texts), clock, failures) as server:
        yield server.address
