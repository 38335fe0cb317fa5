"""Read and write `meta.properties` and `partition.metadata`: node, cluster, directory and topic ids."""

from __future__ import annotations

import os
from typing import NamedTuple

from penstock.common.properties_files import parse_properties
from penstock.errors import ConfigError, StorageError
from penstock.log.directory.files import read_text, write_text
from penstock.protocol.uuid import uuid_from_text, uuid_to_text

META_PROPERTIES = "meta.properties"

FORMAT_FILES = ("bootstrap.checkpoint", f"__cluster_metadata-0/{0:020}-{0:010}.checkpoint")
"""The files in which `kafka-storage format` puts the records for the first start: the first one until Apache
Kafka 4.3, the second one since 4.4. Before 4.4, only the first voters of the quorum are in the second one."""
PARTITION_METADATA = "partition.metadata"

_VERSION = 1
_ADVICE = (
    "It says whose data these are: put it back from a copy; or remove it, and the directory becomes a new "
    "cluster's, with the records it holds"
)


class MetaProperties(NamedTuple):
    """The node, cluster and directory id in a data directory's `meta.properties` (KIP-631, KIP-858)."""

    cluster_id: str
    node_id: int
    directory_id: str | None = None
    has_zookeeper: bool = False
    """True if a release with ZooKeeper wrote the file: the cluster's metadata is then in ZooKeeper."""


def format_file(directory: str) -> str | None:
    """Return the file that `kafka-storage format` has written for the first start, or None."""
    files = (f"{directory}/{name}" for name in FORMAT_FILES)
    return next((file for file in files if os.path.exists(file)), None)


def read_meta_properties(directory: str) -> MetaProperties | None:
    """Return `meta.properties`, version 0 (`broker.id`) or 1 (`node.id`); None if the file is missing.

    Raises:
        StorageError: the file is unreadable, or a required entry is missing or malformed.
    """
    path = f"{directory}/{META_PROPERTIES}"
    text = read_text(path)
    if text is None:
        return None
    try:
        properties = {entry.name: entry.value for entry in parse_properties(text, path)}
    except ConfigError as error:
        raise StorageError(f"{error}. {_ADVICE}") from None
    version = properties.get("version", "")
    if version not in ("0", "1"):
        said = f"version {version}" if version else "no version"
        raise StorageError(f"{path} has {said}; 0 and 1 are known. {_ADVICE}")
    name = "node.id" if version == "1" else "broker.id"
    try:
        node_id = int(properties.get(name, "-1" if version == "0" else ""))
    except ValueError:
        raise StorageError(f"{path} has no {name} that is a number. {_ADVICE}") from None
    cluster_id = properties.get("cluster.id", "")
    if version == "1" and not cluster_id:
        raise StorageError(f"{path} has no cluster.id. {_ADVICE}")
    directory_id = properties.get("directory.id")
    if not (cluster_id + (directory_id or "")).isprintable() or "\ufffd" in text:
        raise StorageError(f"{path} holds bytes that are no text. {_ADVICE}")
    if directory_id is not None:
        try:
            uuid_from_text(directory_id)
        except ValueError:
            raise StorageError(f"{path} has no directory.id that is one. {_ADVICE}") from None
    return MetaProperties(cluster_id, node_id, directory_id, version == "0")


def write_meta_properties(directory: str, meta: MetaProperties) -> None:
    """Write `meta.properties` in version 1."""
    lines = ["#", f"cluster.id={meta.cluster_id}"]
    if meta.directory_id is not None:
        lines.append(f"directory.id={meta.directory_id}")
    lines += [f"node.id={meta.node_id}", f"version={_VERSION}", ""]
    write_text(f"{directory}/{META_PROPERTIES}", "\n".join(lines), sync=True)


def read_topic_id(directory: str) -> bytes | None:
    """Return the topic id in a partition's `partition.metadata`; None if the file is missing or empty.

    A file of zeros, which a power cut may leave, counts as empty.

    Raises:
        StorageError: the file is unreadable or malformed.
    """
    path = f"{directory}/{PARTITION_METADATA}"
    text = read_text(path)
    if text is None or not text.strip("\0\n"):
        return None
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if fields.get("version") != "0":
        raise StorageError(f"{path} has version {fields.get('version')}; 0 is known")
    try:
        return uuid_from_text(fields["topic_id"].strip())
    except (KeyError, ValueError):
        raise StorageError(f"{path} has no topic_id that is one") from None


def write_topic_id(directory: str, topic_id: bytes) -> None:
    """Write the topic id into a partition's `partition.metadata`, version 0."""
    text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
    write_text(f"{directory}/{PARTITION_METADATA}", text, sync=False)
