"""Checks that a metadata log of Apache Kafka contains nothing that this broker cannot use or keep.

The records are applied to a `ClusterImage`, as at a start. Each check returns the problem and its remedy as
texts, or None. Source: KIP-631, KIP-858, KIP-868.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from penstock.broker.metadata.image import METADATA_FEATURE, ClusterImage
from penstock.broker.metadata.metadata_log import METADATA_LEVEL_MAX, METADATA_LEVEL_MIN, RecordReader
from penstock.common.logs import logger_named
from penstock.errors import DecodeError
from penstock.protocol.uuid import uuid_from_text, uuid_to_text

if TYPE_CHECKING:
    from penstock.log.directory.metadata_snapshots import QuorumVoters

logger = logger_named("penstock.broker")

Found = tuple[str, str] | None

_COPY = "let Apache Kafka serve it, and copy its topics into a new directory"
_RESERVED_IDS = 100
"""Directory ids below this number are reserved, and do not identify a directory (KIP-858)."""


def check_voters(quorum_state: str, node_id: int) -> Found:
    """Check that a `quorum-state` file's text, if it lists voters, has this node as the only voter."""
    try:
        voters = {int(voter["voterId"]) for voter in json.loads(quorum_state)["currentVoters"]}
    except (ValueError, KeyError, TypeError):
        return None  # there is no such file, or the voters are in the metadata log
    return _found_voters(voters, node_id)


def check_quorum(quorum: QuorumVoters, node_id: int) -> Found:
    """Check that the metadata log's control records, if they list voters, have this node as the only one."""
    try:
        voters = quorum.voter_ids()
    except DecodeError as error:
        return f"its metadata log names voters in a form that this release does not support: {error}", _COPY
    return None if voters is None else _found_voters(voters, node_id)


def _found_voters(voters: set[int], node_id: int) -> Found:
    if voters == {node_id}:
        return None
    return (
        f"the voters of its quorum are {sorted(voters)}, and this is node {node_id}",
        "a directory of one of several nodes is not the whole cluster: " + _COPY,
    )


def check_records(
    values: Iterable[bytes],
    node_id: int,
    directory_ids: Collection[str],
    *,
    has_authorizer: bool,
    has_token_secret: bool,
) -> Found:
    """Check that this broker can use every record of a metadata log; `values` are framed records."""
    image, reader = ClusterImage(), RecordReader(is_strict=True)
    try:
        for record in reader.records(values):
            image.apply(record)
    except DecodeError as error:
        return f"its metadata log holds records that this release does not support: {error}", _COPY
    if reader.is_within_transaction:
        return (
            "its metadata log ends within a metadata transaction",
            "start Apache Kafka on it once, which ends it, and stop it in order",
        )
    return (
        _found_level(image.features.get(METADATA_FEATURE, 0))
        or _found_nodes(image, node_id)
        or found_elsewhere(image, directory_ids)
        or _found_unserved(image, has_authorizer=has_authorizer, has_token_secret=has_token_secret)
    )


def _found_level(level: int) -> Found:
    if level > METADATA_LEVEL_MAX:
        return f"its metadata.version is at level {level}, the newest known is {METADATA_LEVEL_MAX}", _COPY
    if 0 < level < METADATA_LEVEL_MIN:
        return (
            f"its metadata.version is at level {level}, from before 3.3: such levels are not known",
            "start Apache Kafka 3.9 on it, raise that with kafka-features upgrade --metadata 3.9, and "
            "stop it in order",
        )
    return None


def _found_nodes(image: ClusterImage, node_id: int) -> Found:
    others = sorted({*image.brokers.by_id, *image.controllers} - {node_id})
    if others:
        return (
            f"it is that of node {node_id} of a cluster with the nodes {others}",
            "unregister those that are gone (kafka-cluster unregister), or " + _COPY,
        )
    for topic in image.topics.values():
        for partition in topic.partitions:
            replicas = partition.replicas.assigned
            if replicas != (node_id,):
                return f"{topic.name}-{partition.index} has its replicas on the nodes {list(replicas)}", _COPY
    return None


def found_elsewhere(image: ClusterImage, directory_ids: Collection[str]) -> Found:
    """Return a problem if a partition is in a directory that is not in `directory_ids`.

    Return None if `directory_ids` is empty: directories had no ids before Apache Kafka 3.7. The broker would
    serve a partition whose directory is missing as an empty one, and begin with offset 0 again.
    """
    ids = set(map(uuid_from_text, directory_ids))
    for topic in image.topics.values() if ids else ():
        for partition in topic.partitions:
            for each in partition.replicas.directories:
                if each not in ids and not _is_reserved(each):
                    return (
                        f"{topic.name}-{partition.index} lies in another directory of log.dirs, whose "
                        f"directory.id is {uuid_to_text(each)}",
                        "name that, too, in log.dirs, and see that its disk is mounted; if it is lost, an "
                        "empty directory with that id in its meta.properties takes its place",
                    )
    return None


def _is_reserved(directory_id: bytes) -> bool:
    return int.from_bytes(directory_id, "big") < _RESERVED_IDS


def _found_unserved(image: ClusterImage, *, has_authorizer: bool, has_token_secret: bool) -> Found:
    """Return a problem if there are tiered topics or unenforced ACLs; warn of unverifiable tokens."""
    for name, topic in sorted(image.topics.items()):
        if topic.overrides.get("remote.storage.enable") == "true":
            return f"records of topic {name} are in tiered storage", _COPY
    if not image.has_security:
        return None
    rules = len(image.security.acls) + len(image.security.unenforceable_acls)
    if rules and not has_authorizer:
        return (
            f"it has {rules} access rules (ACLs), which would not be obeyed",
            "set authorizer.class.name and super.users as Apache Kafka had them, or remove them with "
            "kafka-acls",
        )
    if image.security.tokens and not has_token_secret:
        logger.warning(
            "the directory has %d delegation tokens, which cannot be verified without the "
            "delegation.token.secret.key of Apache Kafka",
            len(image.security.tokens),
        )
    return None
