"""Opens the store of a broker's logs: in memory, or in data directories after checking their contents."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.broker.metadata.image import metadata_level
from penstock.broker.metadata.metadata_log import VOTERS_SINCE
from penstock.broker.metadata.own_authority import first_features_of
from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.broker.partitions.log_store import MemoryStore
from penstock.errors import StorageError

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.partitions.disk_log_store import DiskStore
    from penstock.broker.partitions.log_store import LogStore
    from penstock.clock import Clock


def open_store(config: BrokerConfig, clock: Clock) -> LogStore:
    """Return the store that the settings choose: the directories in `log.dirs`, or memory without any.

    Raises:
        StorageError: the directory cannot be used, or another broker uses it.
    """
    directory = config.data_dir
    if directory is None:
        return MemoryStore(config.node_id, clock)
    return open_disk_store(directory, config, clock)


def open_disk_store(directory: str, config: BrokerConfig, clock: Clock) -> DiskStore:
    """Return the store of a data directory that this or another broker has written.

    The store includes the other directories in `log.dirs`.

    Raises:
        StorageError: the directory cannot be used, has contents that this broker cannot use, or another
            broker uses it.
        ConfigError: the directory belongs to another node, or a setting names no release.
    """
    # A broker in memory starts without them, and one with a new directory has nothing to take over.
    from penstock.broker.partitions.disk_log_store import DiskStore

    others = [each for each in config.data_dirs if each != directory]
    if others:
        directory, others = _metadata_first([directory, *others])
    if any(map(os.path.isdir, (directory, *others))):
        from penstock.broker.metadata.takeover import check_takeover

        check_takeover(
            directory,
            others,
            has_authorizer=bool((config.settings.get("authorizer.class.name") or "").strip()),
            has_token_secret="delegation.token.secret.key" in config.settings,
        )
    # Releases of Apache Kafka with an older level cannot read who votes.
    names_voters = metadata_level(first_features_of(config)) >= VOTERS_SINCE
    return DiskStore(directory, config, clock, others, names_voters=names_voters)


def _metadata_first(directories: list[str]) -> tuple[str, list[str]]:
    """Return the data directory with the metadata log (else the first one), and a list of the others.

    Raises:
        StorageError: more than one directory has a metadata log.
    """
    found = [each for each in directories if os.path.isdir(f"{each}/{METADATA_TOPIC}-0")]
    if len(found) > 1:
        raise StorageError(
            f"{found[0]} and {found[1]} both have metadata of a cluster; name the directories of one broker"
        )
    first = found[0] if found else directories[0]
    return first, [each for each in directories if each != first]
