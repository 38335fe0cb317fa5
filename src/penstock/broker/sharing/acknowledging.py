"""The acknowledgements of one request: processed for each partition, and answered when all are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.sharing.acknowledgements import AckBatch, ranges_of
from penstock.broker.sharing.led_partition import SharePartitionKey
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.sharing.led_partition import LedPartition
    from penstock.broker.sharing.service import ShareService
    from penstock.broker.sharing.sessions import MemberKey, TopicIdPartition
    from penstock.broker.sharing.share_partition import DeliveryChange

PATIENCE_S = 15.0
"""The maximum seconds that a response waits until its acknowledgements are stored."""


class _Begun(NamedTuple):
    led: LedPartition
    change: DeliveryChange


class Acknowledging:
    """Processes a member's acknowledgements in one request, and collects their error codes.

    `may_read` takes a topic name and returns True if the member may read the topic. `with_renewals` is the
    request's flag `is_renew_ack`.
    """

    def __init__(
        self,
        service: ShareService,
        member: MemberKey,
        may_read: Callable[[str], bool],
        now: float,
        *,
        with_renewals: bool,
    ) -> None:
        self._service = service
        self._member = member
        self._may_read = may_read
        self._now = now
        self._with_renewals = with_renewals
        self._begun: dict[TopicIdPartition, _Begun] = {}
        self.codes: dict[TopicIdPartition, int] = {}
        """A dict from each partition in the request to its error code; 0 as long as there is no error."""
        self.deadline = now + PATIENCE_S
        """The monotonic time in seconds at which acknowledgements that are not stored get
        REQUEST_TIMED_OUT (7).
        """

    def begin(self, partition: TopicIdPartition, batches: Sequence[AckBatch]) -> None:
        """Begin the acknowledgements for one partition. They are accepted or refused as a whole."""
        if self.codes.get(partition) or partition in self._begun:
            # Named twice in one request: what it says is not clear, and the first is under way.
            self.codes[partition] = self.codes[partition] or ErrorCode.INVALID_REQUEST
            return
        self.codes[partition] = 0
        topic_id, index = partition
        try:
            topic = self._service.topic_of(topic_id)
            if not self._may_read(topic.name):
                raise error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            topic.partition(index)
            ranges = ranges_of(batches, with_renewals=self._with_renewals)
            led = self._service.find(SharePartitionKey(self._member.group_id, topic_id, index))
            if led is None:
                raise error_for(ErrorCode.INVALID_RECORD_STATE, "nothing is acquired in this partition")
            change = led.acknowledge(self._member.member_id, ranges, self._now)
        except KafkaError as error:
            self.codes[partition] = error.code
            return
        if change is not None:
            self._begun[partition] = _Begun(led, change)

    def settle(self, now: float) -> bool:
        """Collect the results of storing the acknowledgements; return True if every one has a result."""
        for partition, (_, change) in list(self._begun.items()):
            if change.settled:
                self.codes[partition] = change.error_code
            elif now >= self.deadline:
                self.codes[partition] = ErrorCode.REQUEST_TIMED_OUT
            else:
                continue
            del self._begun[partition]
        return not self._begun

    @property
    def keys(self) -> list[LedPartition]:
        """The share partitions that the request waits for, as purgatory keys."""
        return [led for led, _ in self._begun.values()]
