"""Committed offsets of a group, written and read through its coordinator. For asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.client.arguments import by_partition, whole
from penstock.client.assignors.member_metadata import NO_GENERATION, group_by_topic
from penstock.client.cluster.client import MAIN
from penstock.client.cluster.retry import check_complete, left_out
from penstock.client.group.coordinator import MEMBER_CODES, CoordinatorFinder
from penstock.client.group.errors import explain_commit
from penstock.client.group.old_groups import peer_for_groups
from penstock.common.hints import with_hints
from penstock.errors import (
    ConfigError,
    KafkaError,
    NetworkError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_commit_response import OffsetCommitResponse
from penstock.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from penstock.protocol.since import (
    OFFSET_COMMIT_TOPIC_IDS_SINCE,
    OFFSET_FETCH_GROUPS_SINCE,
    OFFSET_FETCH_TOPIC_IDS_SINCE,
)

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient

COMMIT_VERSION_MAX = OFFSET_COMMIT_TOPIC_IDS_SINCE - 1
FETCH_VERSION_MAX = OFFSET_FETCH_TOPIC_IDS_SINCE - 1
"""The highest versions of OffsetCommit and OffsetFetch to use. Newer ones name topics by id, which old
topics lack."""

STATIC_COMMIT_VERSION = 7
REQUIRE_STABLE_VERSION = 7
ALL_TOPICS_VERSION = 2

NOT_COMMITTED = -1


@with_hints("OffsetAndMetadata")
class OffsetAndMetadata(NamedTuple):
    """A committed offset, which is the next to read, and a string that the application stores with it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Committable = Mapping[TopicPartition, "int | OffsetAndMetadata"]


class GroupMetadata(NamedTuple):
    """The identity of a member in its group. With the defaults, brokers check no membership (KIP-447)."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None

    @property
    def is_member(self) -> bool:
        return self.generation >= 0 or bool(self.member_id) or self.group_instance_id is not None

    def check(self) -> None:
        """Raise ConfigError if the group has no name, or if there is a generation without a member id."""
        if not self.group_id:
            raise ConfigError("offsets belong to a group: its name is empty")
        if self.generation > 0 and not self.member_id:
            raise ConfigError(f"generation {self.generation} of group {self.group_id!r} needs a member id")


class MemberIdentity(NamedTuple):
    """The group member that commits. By default, there is none: the consumer assigns its own partitions."""

    generation: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None


class GroupOffsets:
    """The committed offsets of one group. Commits reach the coordinator in the order of the calls."""

    def __init__(self, client: AsyncClient, coordinator: CoordinatorFinder) -> None:
        self._client = client
        self._coordinator = coordinator
        self._in_order = asyncio.Lock()
        self.on_refused: Callable[[int, int], None] = lambda code, generation: None
        """A function that is called with error code and generation when offsets are refused for a reason that
        concerns the member.
        """
        self.join_answered: Callable[[], Awaitable[None]] = _at_once
        """A function that waits for the response to a JoinGroup or a KIP-848 heartbeat in flight. The
        response may have a newer generation or member epoch.
        """

    async def commit(
        self,
        offsets: Committable,
        identify: Callable[[MemberIdentity | None], MemberIdentity],
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets. `identify` gets the identity of the previous attempt, and returns the one to use.

        `identify` may raise to refuse an attempt under another identity. If a rebalance ends while a commit
        is in flight, the offsets of partitions that the member keeps are committed under the new generation.

        Raises:
            KafkaError: 22, 25, 82 or 113: the group has removed this member; 27: the group is rebalancing;
                12: the metadata is too long.
            ConfigError: an offset is negative.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        topics = _topics(offsets)
        if not topics:
            return
        identity: MemberIdentity | None = None

        async def attempt() -> None:
            nonlocal identity
            while True:
                before, identity = identity, identify(identity)
                try:
                    return await self._commit(topics, identity)
                except KafkaError as error:
                    if error.code not in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH):
                        raise
                    # Joins and heartbeats have a connection of their own: the new generation or epoch may
                    # come after this refusal.
                    await self.join_answered()
                    try:
                        present = identify(identity)
                    except KafkaError:
                        raise error from None
                    if identity == present:
                        raise
                    if before is not None and before.generation >= identity.generation:
                        raise

        async with self._in_order:
            await self._retrying("committing offsets", attempt, timeout_ms)

    async def _commit(self, topics: list[OffsetCommitRequestTopic], identity: MemberIdentity) -> None:
        group_id = self._coordinator.group_id
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
            topics=topics,
        )
        answer: OffsetCommitResponse
        answer, broker = await self._ask(request, COMMIT_VERSION_MAX)
        told = {
            (topic.name, p.partition_index): p.error_code for topic in answer.topics for p in topic.partitions
        }
        codes = [code for code in told.values() if code]
        for code in MEMBER_CODES.intersection(codes):
            self.on_refused(code, identity.generation)
        if codes:
            self._note(codes[0])
            raise explain_commit(codes[0], group_id, broker)
        asked = [TopicPartition(topic.name, p.partition_index) for topic in topics for p in topic.partitions]
        check_complete(asked, told, broker, "OffsetCommit")

    async def fetch(
        self,
        partitions: Iterable[TopicPartition] | None,
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
        identify: Callable[[], MemberIdentity] = lambda: MemberIdentity(),
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offset of each partition, or None if the group has committed none.

        If `partitions` is None, return all committed offsets. `identify` returns the identity of the member
        that reads. The coordinator checks a member of KIP-848: if the member's epoch is outdated, the read is
        repeated once the member has the newer epoch.

        Raises:
            KafkaError: the client is not authorized for the group or a topic.
            UnsupportedVersionError: all partitions were requested from a broker before 0.10.2.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        asked = None if partitions is None else list(partitions)
        if asked is not None and not asked:
            return {}
        found = await self._retrying(
            "reading committed offsets",
            lambda: self._fetch(asked, require_stable, identify()),
            timeout_ms,
        )
        return found if asked is None else {tp: found.get(tp) for tp in asked}

    async def _fetch(
        self, asked: list[TopicPartition] | None, require_stable: bool, identity: MemberIdentity
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        group_id = self._coordinator.group_id
        request = _fetch_request(group_id, asked, require_stable, identity)
        answer, broker = await self._ask(request, FETCH_VERSION_MAX)
        told: Any = answer.groups[0] if answer.groups else answer
        if told.error_code:
            what = f"committed offsets of group {group_id!r}, at broker {broker}"
            raise await self._unread(told.error_code, what, identity)
        if answer.groups and told.group_id != group_id:
            raise left_out(broker, f"group {group_id!r}", "OffsetFetch")
        found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        for topic in told.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                # Version 0 reads from ZooKeeper and has an error for "nothing there".
                if partition.error_code and partition.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    what = f"the committed offset of {tp}, at broker {broker}"
                    raise await self._unread(partition.error_code, what, identity)
                found[tp] = (
                    None
                    if partition.committed_offset < 0
                    else OffsetAndMetadata(
                        partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch
                    )
                )
        # What is left out must not count as never committed: reading would begin elsewhere.
        check_complete(asked or (), found, broker, "OffsetFetch")
        return found

    async def _unread(self, code: int, what: str, identity: MemberIdentity) -> KafkaError:
        """Return the exception for an OffsetFetch error. It is retriable if the member's epoch is outdated.

        An error never counts as "nothing committed", because reading would then begin at a wrong offset.
        """
        self._note(code)
        refusal = error_for(code, what)
        if identity.member_id and code in MEMBER_CODES:
            self.on_refused(code, identity.generation)
            await self.join_answered()
            refusal.retriable = True
        return refusal

    # -- talking

    async def _retrying(self, what: str, attempt: Callable[[], Any], timeout_ms: float | None) -> Any:
        return await self._client.retrying(what, attempt, timeout_ms)

    async def _ask(
        self, message: OffsetCommitRequest | OffsetFetchRequest, at_most: int
    ) -> tuple[Any, object]:
        """Send a request to the coordinator; return the response, and the address of the broker."""
        node = await self._coordinator.known()
        try:
            peer = await peer_for_groups(self._client, node, MAIN)
            version = peer.versions.choose(type(message), at_most)
            fitted = _fitted(message, version)
            answer = await peer.connection.request(fitted, version, self._client.request_timeout_s)
            return answer, peer.connection.address
        except (NetworkError, RequestTimeoutError):
            self._coordinator.forget(node)
            raise

    def _note(self, code: int) -> None:
        if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self._coordinator.forget(self._coordinator.node)


async def _at_once() -> None:
    """Return without waiting: the default of `GroupOffsets.join_answered`, for consumers without a group."""


def checked_offsets(offsets: object, call: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to commit as a dict from partition to offset and metadata.

    Raises:
        ConfigError: `offsets` is no mapping of partitions to offsets, or an offset is negative.
    """
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for tp, given in by_partition(offsets, call).items():
        at = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(whole(given, "an offset"))
        if at.offset < 0:
            raise ConfigError(f"offset {at.offset} of {tp}: offsets begin at 0")
        checked[tp] = at
    return checked


def _topics(offsets: Committable) -> list[OffsetCommitRequestTopic]:
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, number), at in checked_offsets(offsets, "commit()").items():
        topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name))
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=at.offset,
                committed_leader_epoch=at.leader_epoch,
                committed_metadata=at.metadata,
            )
        )
    return list(topics.values())


def _fetch_request(
    group_id: str, asked: list[TopicPartition] | None, require_stable: bool, identity: MemberIdentity
) -> OffsetFetchRequest:
    """Return an OffsetFetch request with the fields of all versions, from which `_fitted` chooses."""
    old: list[OffsetFetchRequestTopic] | None = None
    new: list[OffsetFetchRequestTopics] | None = None
    if asked is not None:
        groups = group_by_topic(asked)
        old = [OffsetFetchRequestTopic(name=topic, partition_indexes=numbers) for topic, numbers in groups]
        new = [OffsetFetchRequestTopics(name=topic, partition_indexes=numbers) for topic, numbers in groups]
    return OffsetFetchRequest(
        group_id=group_id,
        topics=old,
        groups=[
            OffsetFetchRequestGroup(
                group_id=group_id,
                member_id=identity.member_id or None,
                member_epoch=identity.generation,
                topics=new,
            )
        ],
        require_stable=require_stable,
    )


def _fitted(
    message: OffsetCommitRequest | OffsetFetchRequest, version: int
) -> OffsetCommitRequest | OffsetFetchRequest:
    """Return the request with only the fields that this version of its API has."""
    if isinstance(message, OffsetCommitRequest):
        if version < STATIC_COMMIT_VERSION and message.group_instance_id is not None:
            # Before Kafka 2.3 there are no static members, so that none could have got this far.
            message.group_instance_id = None
        return message
    if version >= OFFSET_FETCH_GROUPS_SINCE:
        return OffsetFetchRequest(groups=message.groups, require_stable=message.require_stable)
    if message.topics is None and version < ALL_TOPICS_VERSION:
        raise UnsupportedVersionError(
            "listing all offsets of a group needs Kafka 0.10.2 or newer: name the topics"
        )
    return OffsetFetchRequest(
        group_id=message.group_id,
        topics=message.topics,
        require_stable=message.require_stable and version >= REQUIRE_STABLE_VERSION,
    )
