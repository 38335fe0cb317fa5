"""Checks that a metadata log of Apache Kafka contains nothing that this broker cannot use or keep.

Each check returns the problem and its remedy as texts, or None. Source: KIP-631, KIP-858, KIP-868.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.broker.metadata.metadata_log import METADATA_LEVEL_MAX, METADATA_LEVEL_MIN, known_head
from penstock.common.logs import logger_named
from penstock.errors import DecodeError
from penstock.protocol.field_values import TOPIC_RESOURCE
from penstock.protocol.messages.abort_transaction_record import AbortTransactionRecord
from penstock.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from penstock.protocol.messages.begin_transaction_record import BeginTransactionRecord
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.delegation_token_record import DelegationTokenRecord
from penstock.protocol.messages.end_transaction_record import EndTransactionRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.register_broker_record import RegisterBrokerRecord
from penstock.protocol.messages.register_controller_record import RegisterControllerRecord
from penstock.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from penstock.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from penstock.protocol.uuid import uuid_from_text

if TYPE_CHECKING:
    from penstock.log.directory.metadata_snapshots import QuorumVoters
    from penstock.protocol.message import Message

logger = logger_named("penstock.broker")

Found = tuple[str, str] | None

_READ: dict[int, type[Message]] = {
    cls.API_KEY: cls
    for cls in (
        AbortTransactionRecord,
        AccessControlEntryRecord,
        BeginTransactionRecord,
        ConfigRecord,
        DelegationTokenRecord,
        EndTransactionRecord,
        FeatureLevelRecord,
        PartitionChangeRecord,
        PartitionRecord,
        RegisterBrokerRecord,
        RegisterControllerRecord,
        RemoveAccessControlEntryRecord,
        RemoveTopicRecord,
        TopicRecord,
        UnregisterBrokerRecord,
        RemoveDelegationTokenRecord,
    )
    if cls.API_KEY is not None
}

_COPY = "let Apache Kafka serve it, and copy its topics into a new directory"
_RESERVED_IDS = 100
"""Directory ids below this number are reserved, and do not identify a directory (KIP-858)."""


def check_voters(quorum_state: str, node_id: int) -> Found:
    """Check that this node is the only voter in the text of a `quorum-state` file, if that lists voters."""
    try:
        voters = {int(voter["voterId"]) for voter in json.loads(quorum_state)["currentVoters"]}
    except (ValueError, KeyError, TypeError):
        return None  # there is no such file, or the voters are in the metadata log
    return _found_voters(voters, node_id)


def check_quorum(quorum: QuorumVoters, node_id: int) -> Found:
    """Check that this node is the only voter in control records of the metadata log, if these list voters."""
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
    """Check every record of a metadata log; `values` are the records in their frames."""
    image = _Image(node_id, set(map(uuid_from_text, directory_ids)))
    try:
        for value in values:
            image.replay(value)
    except DecodeError as error:
        return f"its metadata log holds records that this release does not support: {error}", _COPY
    return image.found() or image.found_unguarded(has_authorizer, has_token_secret)


class _Image:
    """The state after a metadata log's records, limited to what the checks need."""

    def __init__(self, node_id: int, directory_ids: set[bytes]) -> None:
        self._node_id = node_id
        self._directory_ids = directory_ids
        self._topics: dict[bytes, str] = {}
        self._partitions: dict[tuple[bytes, int], tuple[list[int], list[bytes]]] = {}
        self._brokers: set[int] = set()
        self._controllers: set[int] = set()
        self._rules: set[bytes] = set()
        self._remote: set[str] = set()
        self._level = 0
        self._pending: list[Message] | None = None
        self._tokens: set[str] = set()

    def replay(self, value: bytes) -> None:
        """Apply one record.

        Raises:
            DecodeError: the record's type or version is unknown, or the record is damaged.
        """
        key, version, position = known_head(value)
        cls = _READ.get(key)
        if cls is None:
            return
        record = cls.decode(value[position:], version)
        if isinstance(record, BeginTransactionRecord):
            self._pending = []
        elif isinstance(record, AbortTransactionRecord):
            self._pending = None
        elif isinstance(record, EndTransactionRecord):
            pending, self._pending = self._pending or [], None
            for each in pending:
                self._apply(each)
        elif self._pending is not None:
            self._pending.append(record)
        else:
            self._apply(record)

    def _apply(self, record: Message) -> None:
        if isinstance(record, TopicRecord):
            self._topics[record.topic_id] = record.name
        elif isinstance(record, PartitionRecord):
            partition = record.topic_id, record.partition_id
            self._partitions[partition] = list(record.replicas), list(record.directories or [])
        elif isinstance(record, PartitionChangeRecord):
            self._change(record)
        elif isinstance(record, RemoveTopicRecord):
            name = self._topics.pop(record.topic_id, None)
            self._remote.discard(name or "")
            gone = [partition for partition in self._partitions if partition[0] == record.topic_id]
            for partition in gone:
                del self._partitions[partition]
        elif isinstance(record, ConfigRecord):
            if record.resource_type == TOPIC_RESOURCE and record.name == "remote.storage.enable":
                (self._remote.add if record.value == "true" else self._remote.discard)(record.resource_name)
        elif isinstance(record, FeatureLevelRecord):
            if record.name == "metadata.version":
                self._level = record.feature_level
        else:
            self._apply_to_cluster(record)

    def _apply_to_cluster(self, record: Message) -> None:
        if isinstance(record, RegisterBrokerRecord):
            self._brokers.add(record.broker_id)
        elif isinstance(record, UnregisterBrokerRecord):
            self._brokers.discard(record.broker_id)
        elif isinstance(record, RegisterControllerRecord):
            self._controllers.add(record.controller_id)
        elif isinstance(record, AccessControlEntryRecord):
            self._rules.add(record.id)
        elif isinstance(record, RemoveAccessControlEntryRecord):
            self._rules.discard(record.id)
        elif isinstance(record, DelegationTokenRecord):
            self._tokens.add(record.token_id)
        elif isinstance(record, RemoveDelegationTokenRecord):
            self._tokens.discard(record.token_id)

    def _change(self, record: PartitionChangeRecord) -> None:
        partition = record.topic_id, record.partition_id
        known = self._partitions.get(partition)
        if known is not None:
            replicas = known[0] if record.replicas is None else list(record.replicas)
            directories = known[1] if record.directories is None else list(record.directories)
            self._partitions[partition] = replicas, directories

    def found(self) -> Found:
        """Return the reason why this broker cannot use the directory, or None."""
        if self._pending is not None:
            return (
                "its metadata log ends within a metadata transaction",
                "start Apache Kafka on it once, which ends it, and stop it in order",
            )
        if self._level > METADATA_LEVEL_MAX:
            return (
                f"its metadata.version is at level {self._level}, the newest known is {METADATA_LEVEL_MAX}",
                _COPY,
            )
        if 0 < self._level < METADATA_LEVEL_MIN:
            return (
                f"its metadata.version is at level {self._level}, from before 3.3: such levels are not known",
                "start Apache Kafka 3.9 on it, raise that with kafka-features upgrade --metadata 3.9, and "
                "stop it in order",
            )
        return self._found_elsewhere() or self._found_unserved()

    def _found_elsewhere(self) -> Found:
        others = sorted((self._brokers | self._controllers) - {self._node_id})
        if others:
            return (
                f"it is that of node {self._node_id} of a cluster with the nodes {others}",
                "unregister those that are gone (kafka-cluster unregister), or " + _COPY,
            )
        for (topic_id, index), (replicas, directories) in self._partitions.items():
            where = f"{self._topics.get(topic_id, '?')}-{index}"
            if replicas != [self._node_id]:
                return f"{where} has its replicas on the nodes {replicas}", _COPY
            if self._directory_ids and set(_directories_in(directories)) - self._directory_ids:
                return (
                    f"{where} lies in another directory of log.dirs",
                    "name all of them in log.dirs, as Apache Kafka had them",
                )
        return None

    def _found_unserved(self) -> Found:
        remote = sorted(self._remote.intersection(self._topics.values()))
        if remote:
            return f"records of topic {remote[0]} are in tiered storage", _COPY
        return None

    def found_unguarded(self, has_authorizer: bool, has_token_secret: bool) -> Found:
        """Return a problem if no authorizer would enforce the ACLs; log a warning for unverifiable tokens."""
        if self._rules and not has_authorizer:
            return (
                f"it has {len(self._rules)} access rules (ACLs), which would not be obeyed",
                "set authorizer.class.name and super.users as Apache Kafka had them, or remove them with "
                "kafka-acls",
            )
        if self._tokens and not has_token_secret:
            logger.warning(
                "the directory has %d delegation tokens, which cannot be verified without the "
                "delegation.token.secret.key of Apache Kafka",
                len(self._tokens),
            )
        return None


def _directories_in(directories: Sequence[bytes]) -> Iterator[bytes]:
    for directory in directories:
        if directory[:8] != bytes(8) or int.from_bytes(directory[8:], "big") >= _RESERVED_IDS:
            yield directory
