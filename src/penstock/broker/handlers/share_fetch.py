"""ShareFetch (78): acquire records for a member of a share group, and wait for them (KIP-932).

v1 is the lowest version; v2 may limit the number of records exactly (`share_acquire_mode`, KIP-1206), and
renew locks (`is_renew_ack`, KIP-1222).

A request may carry acknowledgements, which are stored first. The response waits until `min_bytes` are
available or `max_wait_ms` is over; an error in any partition ends the wait. Records are acquired only when
the response is built.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.broker.context import Context
from penstock.broker.handlers.share_acknowledge import reads
from penstock.broker.handlers.share_groups import NOT_OFFERED, has_share_groups
from penstock.broker.requests.purgatory import Wait
from penstock.broker.sharing.acknowledging import Acknowledging
from penstock.broker.sharing.led_partition import LedPartition, SharePartitionKey
from penstock.broker.sharing.reading import free_bytes, take
from penstock.broker.sharing.sessions import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    MemberKey,
    ShareSession,
    TopicIdPartition,
    member_of,
)
from penstock.errors import CorruptRecordError, KafkaError, StorageError
from penstock.log.contract import DamagedLogError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.share_fetch_request import ShareFetchRequest
from penstock.protocol.messages.share_fetch_response import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
"""The values of `share_acquire_mode` in a request (KIP-1206): the limit of records may be exceeded to
acquire whole batches, or is exact.
"""


def share_fetch(request: ShareFetchRequest, context: Context[ServingNode]) -> ShareFetchResponse | Wait:
    """Apply acknowledgements, then acquire records from every partition of the session, or wait for them."""
    if not has_share_groups(context):
        return ShareFetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=NOT_OFFERED)
    service = context.node.sharing
    try:
        _check(request)
        member = member_of(request.group_id, request.member_id)
        if request.share_session_epoch == FIRST_EPOCH:
            session = service.begin(member, context.session)
        else:
            session = service.sessions.find(member, request.share_session_epoch)
        if request.share_session_epoch != FINAL_EPOCH:
            service.sessions.add(
                session,
                [
                    (topic.topic_id, asked.partition_index)
                    for topic in request.topics
                    for asked in topic.partitions
                ],
            )
    except KafkaError as error:
        refusal = ShareFetchResponse(error_code=error.code, error_message=error.detail)
        if error.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED and request.max_wait_ms > 0:
            # Clients try again at once.
            return Wait((), context.arrived + request.max_wait_ms / 1000, answer=lambda: refusal)
        return refusal
    return _Fetching(request, context, member, session).begin()


def _check(request: ShareFetchRequest) -> None:
    """Check the parts of a request that do not depend on the session.

    Raises:
        KafkaError: INVALID_REQUEST (42), if acknowledgements come with a new session, or renewals with fetch
        limits above 0. UNKNOWN_SERVER_ERROR (-1), the acquire mode does not exist.
    """
    if request.is_renew_ack and (
        request.max_wait_ms or request.min_bytes or request.max_bytes or request.max_records
    ):
        raise error_for(
            ErrorCode.INVALID_REQUEST, "a request that renews locks fetches nothing: limits are 0"
        )
    if request.share_acquire_mode not in (BATCH_OPTIMIZED, RECORD_LIMIT):
        raise error_for(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"there is no share acquire mode {request.share_acquire_mode}"
        )
    if request.share_session_epoch == FIRST_EPOCH and any(
        asked.acknowledgement_batches for topic in request.topics for asked in topic.partitions
    ):
        raise error_for(
            ErrorCode.INVALID_REQUEST, "the request that begins a share session has acknowledgements"
        )


class _Fetching:
    """Handles one ShareFetch request: stores its acknowledgements, then acquires records for the response."""

    def __init__(
        self,
        request: ShareFetchRequest,
        context: Context[ServingNode],
        member: MemberKey,
        session: ShareSession,
    ) -> None:
        self._request = request
        self._context = context
        self._member = member
        self._session = session
        self._service = context.node.sharing
        self._settings = self._service.settings_of(member.group_id)
        self._may_read: Callable[[str], bool] = reads(context)
        self._deadline = context.arrived + request.max_wait_ms / 1000
        self._leds: dict[TopicIdPartition, LedPartition] = {}
        self._acknowledging = Acknowledging(
            self._service, member, self._may_read, context.now, with_renewals=request.is_renew_ack
        )

    def begin(self) -> ShareFetchResponse | Wait:
        """Begin to store the acknowledgements of the request, then continue with `go_on`."""
        request, service = self._request, self._service
        for topic in request.topics:
            for asked in topic.partitions:
                if asked.acknowledgement_batches:
                    self._acknowledging.begin(
                        (topic.topic_id, asked.partition_index), asked.acknowledgement_batches
                    )
        if request.share_session_epoch == FINAL_EPOCH:
            service.close(self._session)
        else:
            forgotten = [
                (each.topic_id, i) for each in request.forgotten_topics_data for i in each.partitions
            ]
            service.forget(self._session, forgotten)
        return self.go_on()

    def go_on(self) -> ShareFetchResponse | Wait:
        """Return the response, or a `Wait` until acknowledgements are stored or records are available."""
        context, request = self._context, self._request
        if not self._acknowledging.settle(context.now):
            return Wait(self._acknowledging.keys, self._acknowledging.deadline, answer=self.go_on)
        if request.share_session_epoch == FINAL_EPOCH or request.is_renew_ack or request.max_records <= 0:
            return self._answer({})
        if not self._service.sessions.is_open(self._session):
            return ShareFetchResponse(
                error_code=ErrorCode.SHARE_SESSION_NOT_FOUND, error_message="the share session has ended"
            )
        return self._fetch()

    # --- records -----------------------------------------------------------------------------------------

    def _fetch(self) -> ShareFetchResponse | Wait:
        """Acquire available records; return the response, or a `Wait` if `min_bytes` are not available."""
        request, context = self._request, self._context
        may_wait = context.now < self._deadline
        found: dict[TopicIdPartition, PartitionData] = {}
        ready: list[tuple[TopicIdPartition, LedPartition]] = []
        for partition in self._session.in_turn():
            try:
                led = self._open(partition)
            except KafkaError as error:
                found[partition] = _refuse(partition, error)
            else:
                if led.is_ready:
                    ready.append((partition, led))
        missing_bytes = 1
        if may_wait and not found and request.min_bytes > 1:
            missing_bytes = request.min_bytes - self._available_bytes(ready, found)
            if missing_bytes > 0 and not found:
                return self._wait(missing_bytes)
        self._take(ready, found)
        if may_wait and request.min_bytes > 0 and not found:
            return self._wait(1)
        return self._answer(found)

    def _wait(self, missing_bytes: int) -> Wait:
        keys: list[object] = []
        for led in self._leds.values():
            keys += (led, led.partition)
        return Wait(keys, self._deadline, missing_bytes, self.go_on)

    def _open(self, partition: TopicIdPartition) -> LedPartition:
        """Return the share partition, which this broker leads; its state may not have been read yet.

        Raises:
            KafkaError: this request gets no records from the partition.
        """
        topic_id, index = partition
        led = self._leds.get(partition)
        if led is not None and led.error_code:
            raise error_for(ErrorCode(led.error_code))
        if not self._may_read(self._service.topic_of(topic_id).name):
            raise error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        key = SharePartitionKey(self._member.group_id, topic_id, index)
        led = self._leds[partition] = self._service.open(key, self._member.member_id)
        if led.error_code:
            raise error_for(ErrorCode(led.error_code))
        return led

    def _available_bytes(
        self,
        ready: list[tuple[TopicIdPartition, LedPartition]],
        found: dict[TopicIdPartition, PartitionData],
    ) -> int:
        """Return the bytes of records that can be acquired now; add partitions with an error to `found`."""
        total = 0
        for partition, led in ready:
            try:
                total += free_bytes(led, self._settings, self._request.min_bytes - total)
            except (KafkaError, StorageError, CorruptRecordError) as error:
                if not self._goes_on(led, error):
                    found[partition] = self._failed(partition, error)
            if total >= self._request.min_bytes:
                break
        return total

    def _take(
        self,
        ready: list[tuple[TopicIdPartition, LedPartition]],
        found: dict[TopicIdPartition, PartitionData],
    ) -> None:
        """Acquire records from one partition after the other, until the request's limits are reached."""
        request, context = self._request, self._context
        left_bytes = min(request.max_bytes, context.node.fetch_bytes_max)
        left_records = request.max_records
        part_bytes = left_bytes // max(1, len(ready))
        for partition, led in ready:
            if partition in found or left_records <= 0 or left_bytes <= 0:
                continue
            try:
                taken = take(
                    led,
                    self._member.member_id,
                    self._settings,
                    context.now,
                    max_bytes=part_bytes,
                    max_records=left_records,
                    batch_size=request.batch_size,
                    is_exact=request.share_acquire_mode == RECORD_LIMIT,
                )
            except (KafkaError, StorageError, CorruptRecordError) as error:
                if not self._goes_on(led, error):
                    found[partition] = self._failed(partition, error)
                continue
            finally:
                led.acquired()
            if taken.acquired:
                left_bytes -= taken.size
                left_records -= sum(each.last - each.first + 1 for each in taken.acquired)
                found[partition] = PartitionData(
                    partition_index=partition[1],
                    records=taken.pieces,
                    acquired_records=[
                        AcquiredRecords(
                            first_offset=each.first, last_offset=each.last, delivery_count=each.deliveries
                        )
                        for each in taken.acquired
                    ],
                )

    def _goes_on(self, led: LedPartition, error: Exception) -> bool:
        """Return True if `error` only means that records were deleted; archive these records first."""
        if getattr(error, "code", None) != ErrorCode.OFFSET_OUT_OF_RANGE or led.share is None:
            return False
        led.share.archive_below(led.partition.log_start_offset)
        return True

    def _failed(self, partition: TopicIdPartition, error: Exception) -> PartitionData:
        if isinstance(error, KafkaError):
            return _refuse(partition, error)
        self._context.node.limited_log.once(logging.ERROR, str(error))
        is_damaged = isinstance(error, (DamagedLogError, CorruptRecordError))
        code = ErrorCode.CORRUPT_MESSAGE if is_damaged else ErrorCode.KAFKA_STORAGE_ERROR
        return PartitionData(partition_index=partition[1], error_code=code, records=b"")

    # --- answers -----------------------------------------------------------------------------------------

    def _answer(self, found: dict[TopicIdPartition, PartitionData]) -> ShareFetchResponse:
        """Return the response with records, acknowledgement results and the session's new partitions."""
        followed = self._session.partitions
        topics: dict[bytes, ShareFetchableTopicResponse] = {}
        codes = self._acknowledging.codes
        for partition in dict.fromkeys(
            (*found, *codes, *(key for key, known in followed.items() if not known))
        ):
            topic_id, index = partition
            data = found.get(partition) or PartitionData(partition_index=index, records=b"")
            data.acknowledge_error_code = codes.get(partition, 0)
            topic = topics.setdefault(topic_id, ShareFetchableTopicResponse(topic_id=topic_id))
            topic.partitions.append(data)
            if partition in followed:
                followed[partition] = True
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self._settings.lock_duration_ms, responses=list(topics.values())
        )


def _refuse(partition: TopicIdPartition, error: KafkaError) -> PartitionData:
    return PartitionData(
        partition_index=partition[1], error_code=error.code, error_message=error.detail, records=b""
    )
