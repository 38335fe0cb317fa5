"""The sans-I/O core of a share session (KIP-932) between one member and one broker.

The session has an epoch, which each fetch or acknowledgement increments, so that only one request may be in
flight. The session has a list of partitions: requests name only the partitions that are added or removed. A
fetch with epoch 0 opens a session, and has no acknowledgements. An acknowledgement with epoch -1 closes it,
and the broker releases all other records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from penstock.client.share.acknowledgements import AcknowledgementGroup, wire_batches
from penstock.client.share.errors import MOVED_CODES, SESSION_CODES, explain_acknowledgement
from penstock.errors import PenstockError, ProtocolViolationError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages import share_acknowledge_request as acknowledging
from penstock.protocol.messages import share_fetch_request as fetching
from penstock.protocol.messages.share_acknowledge_response import ShareAcknowledgeResponse
from penstock.protocol.messages.share_fetch_response import PartitionData, ShareFetchResponse

EPOCH_MAX = 2**31 - 1
OPENING_EPOCH = 0
FINAL_EPOCH = -1


class FetchTerms(NamedTuple):
    """The size limits of a fetch, and the time that the broker may wait for records."""

    max_records: int
    batch_size: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    is_strict: bool = False
    """True if `max_records` is a limit (``record_limit``); False if the broker may exceed it by whole
    batches."""


class SessionPartition(NamedTuple):
    """A partition in the requests of share sessions: topic id and partition number."""

    topic_id: bytes
    partition: int


ACCEPTED = PenstockError()
"""A marker that stands for the success of acknowledgements, where otherwise an error is given."""

ShareRequest = fetching.ShareFetchRequest | acknowledging.ShareAcknowledgeRequest


class ShareMemberSession:
    """The session of one member with one broker.

    The session calls `settle` once for every group of acknowledgements: with None if the broker has accepted
    it, else with the error.
    """

    def __init__(
        self,
        group_id: str,
        member_id: str,
        settle: Callable[[AcknowledgementGroup, PenstockError | None], object],
        broker: Callable[[], object] = lambda: "unknown",
        backoff_s: Callable[[int], float] = lambda tries: 0.0,
    ) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self._settle = settle
        self._broker = broker
        """A function that returns the name of the broker for error messages."""
        self._backoff_s = backoff_s
        """A function of the number of refusals so far that returns the seconds until refused acknowledgements
        are sent again."""
        self.epoch = OPENING_EPOCH
        self.partitions: dict[SessionPartition, TopicPartition] = {}
        """The partitions that the session has at the broker now."""
        self._waiting: dict[SessionPartition, deque[AcknowledgementGroup]] = {}
        """A dict from partition to the acknowledgements to be sent. A request takes one group of each
        partition."""
        self._sent: dict[SessionPartition, AcknowledgementGroup] = {}
        """The acknowledgements in the request in flight."""
        self._asked: dict[SessionPartition, TopicPartition] = {}
        """The partitions that the session has at the broker once the request in flight has succeeded."""
        self._is_closing = False

    def partition_at(self, place: SessionPartition) -> TopicPartition | None:
        """Return the partition of a topic id and number in the session or its current request, or None."""
        return self._asked.get(place) or self.partitions.get(place)

    # -- what is to be sent

    def acknowledge(self, place: SessionPartition, group: AcknowledgementGroup) -> None:
        """Queue acknowledgements for the next requests. Renewals are sent in separate requests."""
        if not group.runs:
            self._settle(group, None)
            return
        queue = self._waiting.setdefault(place, deque())
        if not (queue and queue[-1].absorb(group)):
            queue.append(group)

    @property
    def next_due(self) -> float:
        """The time at which acknowledgements may be sent next, in monotonic seconds; infinite without any.

        The time is 0 if the session is not open, since the acknowledgements then fail at once.
        """
        if self._waiting and not self.is_open:
            return 0.0
        return min((queue[0].not_before for queue in self._waiting.values()), default=float("inf"))

    @property
    def is_open(self) -> bool:
        """True if the broker has the session, as far as the responses show."""
        return self.epoch != OPENING_EPOCH

    def can_carry(self, wanted: Mapping[TopicPartition, bytes], now: float) -> bool:
        """Return True if a fetch of the `wanted` partitions can include all acknowledgements due now."""
        return self.is_open and all(
            wanted.get(queue[0].tp) == place.topic_id and not queue[0].is_renewal
            for place, queue in self._waiting.items()
            if queue[0].not_before <= now
        )

    def fetch(
        self, wanted: Mapping[TopicPartition, bytes], terms: FetchTerms, now: float
    ) -> fetching.ShareFetchRequest:
        """Return the next fetch, of exactly the `wanted` partitions, with their due acknowledgements."""
        places = {SessionPartition(topic_id, tp.partition): tp for tp, topic_id in wanted.items()}
        new = [place for place in places if place not in self.partitions]
        gone = [place for place in self.partitions if place not in places]
        carried: dict[SessionPartition, AcknowledgementGroup] = {}
        if self.is_open:
            carried = self._take(
                lambda place, group: place in places and not group.is_renewal and group.not_before <= now
            )
        topics: dict[bytes, fetching.FetchTopic] = {}
        for place in dict.fromkeys([*new, *carried]):
            topic = topics.setdefault(place.topic_id, fetching.FetchTopic(topic_id=place.topic_id))
            batches = wire_batches(carried[place].runs) if place in carried else []
            topic.partitions.append(
                fetching.FetchPartition(
                    partition_index=place.partition,
                    acknowledgement_batches=[
                        fetching.AcknowledgementBatch(
                            first_offset=each.first, last_offset=each.last, acknowledge_types=each.types
                        )
                        for each in batches
                    ],
                )
            )
        forgotten: dict[bytes, fetching.ForgottenTopic] = {}
        for place in gone:
            left = forgotten.setdefault(place.topic_id, fetching.ForgottenTopic(topic_id=place.topic_id))
            left.partitions.append(place.partition)
        self._asked = places
        return fetching.ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=self.epoch,
            max_wait_ms=terms.max_wait_ms,
            min_bytes=terms.min_bytes,
            max_bytes=terms.max_bytes,
            max_records=terms.max_records,
            batch_size=terms.batch_size,
            share_acquire_mode=int(terms.is_strict),
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()) if self.is_open else [],
        )

    def acknowledgements(
        self, now: float, *, is_final: bool = False
    ) -> acknowledging.ShareAcknowledgeRequest | None:
        """Return a request with the acknowledgements that are due, or None if there are none.

        If `is_final`, the request closes the session. If the session is not open, the acknowledgements fail,
        because the broker has released the records.
        """
        if not self.is_open:
            self.drop(explaining(ErrorCode.SHARE_SESSION_NOT_FOUND, self._broker()))
            return None
        if is_final:
            now = float("inf")
        due = [queue[0] for queue in self._waiting.values() if queue[0].not_before <= now]
        is_renewal = not is_final and any(group.is_renewal for group in due)
        taken = self._take(lambda place, group: group.is_renewal == is_renewal and group.not_before <= now)
        self._is_closing = is_final
        if is_final:
            # Nothing more can be sent after it; renewals would prolong what the broker releases.
            for place, group in self._rest():
                merged = taken.get(place)
                if merged is None or group.is_renewal:
                    self._settle(group, None if group.is_renewal else self._ended(group))
                else:
                    merged.runs = [*merged.runs, *group.runs]
        elif not taken:
            return None
        topics: dict[bytes, acknowledging.AcknowledgeTopic] = {}
        for place, group in taken.items():
            topic = topics.setdefault(place.topic_id, acknowledging.AcknowledgeTopic(topic_id=place.topic_id))
            topic.partitions.append(
                acknowledging.AcknowledgePartition(
                    partition_index=place.partition,
                    acknowledgement_batches=[
                        acknowledging.AcknowledgementBatch(
                            first_offset=each.first, last_offset=each.last, acknowledge_types=each.types
                        )
                        for each in wire_batches(group.runs)
                    ],
                )
            )
        self._asked = self.partitions
        return acknowledging.ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=FINAL_EPOCH if is_final else self.epoch,
            is_renew_ack=is_renewal,
            topics=list(topics.values()),
        )

    def _take(
        self, is_taken: Callable[[SessionPartition, AcknowledgementGroup], bool]
    ) -> dict[SessionPartition, AcknowledgementGroup]:
        """Move each partition's first group that `is_taken` accepts into the request; return all of them."""
        for place, queue in list(self._waiting.items()):
            if is_taken(place, queue[0]):
                self._sent[place] = queue.popleft()
                if not queue:
                    del self._waiting[place]
        return self._sent

    def _rest(self) -> Iterable[tuple[SessionPartition, AcknowledgementGroup]]:
        waiting, self._waiting = self._waiting, {}
        return [(place, group) for place, queue in waiting.items() for group in queue]

    def _ended(self, group: AcknowledgementGroup) -> PenstockError:
        return explain_acknowledgement(ErrorCode.SHARE_SESSION_NOT_FOUND, group.tp, self._broker())

    # -- what has come

    def failed(self, error: PenstockError) -> None:
        """End the session after a request without a response, since its epoch at the broker is not known."""
        self._reset()
        self._settle_sent(lambda place, group: error)

    def drop(self, error: Callable[[AcknowledgementGroup], PenstockError]) -> None:
        """Fail all queued acknowledgements. `error` returns the error for each group."""
        for _, group in self._rest():
            self._settle(group, error(group))

    def answered(
        self, answer: ShareFetchResponse | ShareAcknowledgeResponse, now: float
    ) -> PenstockError | None:
        """Process a response; return the error of the whole request, or None."""
        code = answer.error_code
        if code in SESSION_CODES:
            self._reset()
            ended = explaining(code, self._broker())
            self._settle_sent(lambda place, group: ended(group))
        elif code:
            self._settle_sent(lambda place, group: self._refusal(place, group, code, now))
            self._next_epoch()
        else:
            self.partitions = self._asked
            self._settle_answered(answer, now)
            self._next_epoch()
            return None
        return error_for(code, f"share session of group {self._group_id!r} with broker {self._broker()}")

    def _settle_answered(self, answer: ShareFetchResponse | ShareAcknowledgeResponse, now: float) -> None:
        codes: dict[SessionPartition, int] = {}
        for topic in answer.responses:
            for data in topic.partitions:
                code = data.error_code
                if isinstance(data, PartitionData) and (
                    data.acknowledge_error_code or code not in MOVED_CODES
                ):
                    code = data.acknowledge_error_code
                codes[SessionPartition(bytes(topic.topic_id), data.partition_index)] = code

        def read(place: SessionPartition, group: AcknowledgementGroup) -> PenstockError | None:
            code = codes.get(place)
            if code is None:
                what = f"broker {self._broker()} left acknowledgements of {group.tp} out of its answer"
                return ProtocolViolationError(what)
            return self._refusal(place, group, code, now) if code else ACCEPTED

        self._settle_sent(read)

    def _refusal(
        self, place: SessionPartition, group: AcknowledgementGroup, code: int, now: float
    ) -> PenstockError | None:
        """Return the final error of a refused group, or None if the group or its halves are sent again."""
        error = explain_acknowledgement(code, group.tp, self._broker())
        if self._is_closing:
            return error
        if now >= group.deadline:
            return error
        if code == ErrorCode.INVALID_RECORD_STATE and (halves := group.halves()) is not None:
            # One lock that has run out makes the broker refuse all of them: find the others. The large parts
            # come first, so that a limited number of divisions finds most.
            self._waiting.setdefault(place, deque()).extend(halves)
            return None
        if error.retriable and code not in MOVED_CODES:
            due = now + self._backoff_s(group.tries)
            if due < group.deadline:
                group.postpone(due)
                self._waiting.setdefault(place, deque()).appendleft(group)
                return None
        return error

    def _settle_sent(
        self, decide: Callable[[SessionPartition, AcknowledgementGroup], PenstockError | None]
    ) -> None:
        sent, self._sent = self._sent, {}
        for place, group in sent.items():
            error = decide(place, group)
            if error is not None:
                self._settle(group, None if error is ACCEPTED else error)

    def _next_epoch(self) -> None:
        if self._is_closing:
            self._reset()
            return
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1

    def _reset(self) -> None:
        self.epoch = OPENING_EPOCH
        self.partitions = {}
        self._asked = {}
        self._is_closing = False


def explaining(code: int, broker: object) -> Callable[[AcknowledgementGroup], PenstockError]:
    """Return a function from a group of acknowledgements to its error, after a request failed with `code`."""
    return lambda group: explain_acknowledgement(code, group.tp, broker)
