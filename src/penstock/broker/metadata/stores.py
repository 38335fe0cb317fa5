"""Open the store of a broker's logs: in memory, or a data directory that it may take over."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.broker.partitions.log_store import MemoryStore

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.partitions.disk_log_store import DiskStore
    from penstock.broker.partitions.log_store import LogStore
    from penstock.clock import Clock


def open_store(config: BrokerConfig, clock: Clock) -> LogStore:
    """The store that the settings ask for: `log.dirs`, or memory where they name none.

    Raises:
        StorageError: the directory cannot be used, or another broker uses it.
    """
    directory = config.data_dir
    if directory is None:
        return MemoryStore(config.node_id, clock)
    return open_disk_store(directory, config, clock)


def open_disk_store(directory: str, config: BrokerConfig, clock: Clock) -> DiskStore:
    """The store of a data directory that this broker or another has written.

    Raises:
        StorageError: the directory cannot be used, or not be taken over whole, or another broker uses it.
        ConfigError: it belongs to another node.
    """
    # A broker in memory starts without them, and one with a new directory has nothing to take over.
    from penstock.broker.partitions.disk_log_store import DiskStore

    if os.path.isdir(directory):
        from penstock.broker.metadata.takeover import check_takeover

        check_takeover(
            directory,
            has_authorizer=bool((config.settings.get("authorizer.class.name") or "").strip()),
            has_token_secret="delegation.token.secret.key" in config.settings,
        )
    return DiskStore(directory, config, clock)
