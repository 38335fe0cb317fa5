"""Tests of share sessions as a state machine: epochs, added and removed partitions, acknowledgements."""

from __future__ import annotations

import pytest

from penstock.client.share.acknowledgements import DIVISIONS_MAX, AcknowledgementGroup, AcknowledgeType
from penstock.client.share.offset_map import RunMap, ValueRun
from penstock.client.share.session import EPOCH_MAX, FetchTerms, SessionPartition, ShareMemberSession
from penstock.errors import KafkaError, NetworkError, PenstockError, ProtocolViolationError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages import share_acknowledge_response as acknowledged
from penstock.protocol.messages import share_fetch_response as fetched
from penstock.protocol.messages.share_acknowledge_request import ShareAcknowledgeRequest
from penstock.protocol.messages.share_fetch_request import ShareFetchRequest

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
ID = b"t" * 16
NEVER = float("inf")
TERMS = FetchTerms(500, 500, 100, 1, 1 << 20)


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def wanted(*numbers: int) -> dict[TopicPartition, bytes]:
    return {tp(number): ID for number in numbers}


class Bench:
    """A share session for tests, with a list of the results of its acknowledgements."""

    def __init__(self) -> None:
        self.settled: list[tuple[list[ValueRun], PenstockError | None]] = []
        self.session = ShareMemberSession("g", "m", self._settle, lambda: "b:1", lambda tries: tries + 1.0)

    def _settle(self, group: AcknowledgementGroup, error: PenstockError | None) -> None:
        self.settled.append((list(group.runs), error))

    @property
    def codes(self) -> list[int | None]:
        return [None if error is None else getattr(error, "code", -99) for _, error in self.settled]

    def decide(self, number: int, *runs: ValueRun, deadline: float = 100.0) -> None:
        self.session.acknowledge(
            SessionPartition(ID, number), AcknowledgementGroup(tp(number), list(runs), deadline)
        )

    def open(self, *numbers: int) -> None:
        self.session.fetch(wanted(*numbers), TERMS, 0.0)
        assert self.session.answered(fetched.ShareFetchResponse(), 0.0) is None

    def fetch_answer(self, code: int = 0, acks: dict[int, int] | None = None) -> PenstockError | None:
        parts = [
            fetched.PartitionData(partition_index=number, acknowledge_error_code=error)
            for number, error in (acks or {}).items()
        ]
        topics = [fetched.ShareFetchableTopicResponse(topic_id=ID, partitions=parts)]
        return self.session.answered(fetched.ShareFetchResponse(error_code=code, responses=topics), 0.0)

    def ack_answer(
        self, code: int = 0, acks: dict[int, int] | None = None, now: float = 0.0
    ) -> PenstockError | None:
        parts = [
            acknowledged.PartitionData(partition_index=number, error_code=error)
            for number, error in (acks or {}).items()
        ]
        topics = [acknowledged.ShareAcknowledgeTopicResponse(topic_id=ID, partitions=parts)]
        answer = acknowledged.ShareAcknowledgeResponse(error_code=code, responses=topics)
        return self.session.answered(answer, now)

    def acks(self, now: float = 0.0) -> ShareAcknowledgeRequest:
        request = self.session.acknowledgements(now)
        assert request is not None
        return request


def places(request: ShareFetchRequest | ShareAcknowledgeRequest) -> list[int]:
    return [each.partition_index for topic in request.topics for each in topic.partitions]


def batches(request: ShareFetchRequest | ShareAcknowledgeRequest) -> list[tuple[int, int, list[int]]]:
    return [
        (batch.first_offset, batch.last_offset, batch.acknowledge_types)
        for topic in request.topics
        for each in topic.partitions
        for batch in each.acknowledgement_batches
    ]


def test_epochs_count_fetches_and_acknowledgements_together() -> None:
    bench = Bench()
    first = bench.session.fetch(wanted(0, 1), TERMS, 0.0)
    assert (first.share_session_epoch, places(first), first.max_records) == (0, [0, 1], 500)
    bench.fetch_answer()
    second = bench.session.fetch(wanted(0, 1), TERMS, 0.0)
    assert (second.share_session_epoch, second.topics, second.forgotten_topics_data) == (1, [], [])
    bench.fetch_answer()
    bench.decide(0, ValueRun(0, 4, ACCEPT))
    third = bench.acks()
    assert (third.share_session_epoch, batches(third)) == (2, [(0, 4, [1])])
    bench.ack_answer(acks={0: 0})
    assert bench.settled == [([ValueRun(0, 4, ACCEPT)], None)]
    assert bench.session.fetch(wanted(0, 1), TERMS, 0.0).share_session_epoch == 3


def test_after_the_highest_epoch_comes_1() -> None:
    bench = Bench()
    bench.open(0)
    bench.session.epoch = EPOCH_MAX
    bench.session.fetch(wanted(0), TERMS, 0.0)
    bench.fetch_answer()
    assert bench.session.epoch == 1


def test_partitions_come_and_go() -> None:
    bench = Bench()
    bench.open(0, 1)
    request = bench.session.fetch(wanted(1, 2), TERMS, 0.0)
    assert places(request) == [2]
    assert [(each.topic_id, each.partitions) for each in request.forgotten_topics_data] == [(ID, [0])]
    bench.fetch_answer()
    assert set(bench.session.partitions) == {SessionPartition(ID, 1), SessionPartition(ID, 2)}


def test_a_refused_fetch_names_its_partitions_again() -> None:
    bench = Bench()
    bench.open(0)
    bench.session.fetch(wanted(0, 1), TERMS, 0.0)
    assert bench.fetch_answer(ErrorCode.UNKNOWN_SERVER_ERROR) is not None
    again = bench.session.fetch(wanted(0, 1), TERMS, 0.0)
    assert (again.share_session_epoch, places(again)) == (2, [1])


def test_acknowledgements_ride_on_a_fetch() -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 1, ACCEPT), ValueRun(2, 2, REJECT))
    assert bench.session.can_carry(wanted(0), 0.0)
    assert not bench.session.can_carry(wanted(1), 0.0)
    request = bench.session.fetch(wanted(0), TERMS, 0.0)
    assert batches(request) == [(0, 2, [1, 1, 3])]
    bench.fetch_answer(acks={0: 0})
    assert bench.codes == [None]
    assert bench.session.next_due == NEVER


def test_those_of_partitions_that_went_have_a_request_of_their_own() -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    request = bench.session.fetch(wanted(1), TERMS, 0.0)
    assert batches(request) == []
    bench.fetch_answer()
    assert batches(bench.acks()) == [(0, 1, [1])]


def test_renewals_have_requests_of_their_own() -> None:
    bench = Bench()
    bench.open(0, 1)
    bench.decide(0, ValueRun(0, 1, RENEW))
    bench.decide(1, ValueRun(5, 5, ACCEPT))
    assert not bench.session.can_carry(wanted(0, 1), 0.0)
    renewal = bench.acks()
    assert (renewal.is_renew_ack, places(renewal)) == (True, [0])
    bench.ack_answer(acks={0: 0})
    other = bench.acks()
    assert (other.is_renew_ack, places(other)) == (False, [1])


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    ],
)
def test_a_session_that_ended_is_opened_anew_and_its_acknowledgements_fail(code: ErrorCode) -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    bench.session.fetch(wanted(0), TERMS, 0.0)
    assert bench.fetch_answer(code) is not None
    assert bench.codes == [code]
    again = bench.session.fetch(wanted(0), TERMS, 0.0)
    assert (again.share_session_epoch, places(again)) == (0, [0])


def test_an_opening_fetch_takes_no_acknowledgements() -> None:
    bench = Bench()
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    assert not bench.session.can_carry(wanted(0), 0.0)
    assert bench.session.acknowledgements(0.0) is None
    assert bench.codes == [ErrorCode.SHARE_SESSION_NOT_FOUND]
    assert "come again" in str(bench.settled[0][1])


def test_without_an_answer_the_session_begins_anew() -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    bench.acks()
    error = NetworkError("gone")
    bench.session.failed(error)
    assert bench.settled == [([ValueRun(0, 1, ACCEPT)], error)]
    assert not bench.session.is_open


def test_one_lock_that_ran_out_does_not_fail_the_others() -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 7, ACCEPT))
    tries = 0
    while bench.session.next_due < NEVER:
        tries += 1
        ((first, last, _),) = batches(bench.acks())
        bench.ack_answer(acks={0: ErrorCode.INVALID_RECORD_STATE if first <= 5 <= last else 0})
    assert tries == 7
    assert [runs for runs, error in bench.settled if error is not None] == [[ValueRun(5, 5, ACCEPT)]]
    well = sorted(run.first for runs, error in bench.settled if error is None for run in runs)
    assert well == [0, 4, 6]
    (error,) = [error for _, error in bench.settled if error is not None]
    assert isinstance(error, KafkaError)
    assert "share.record.lock.duration.ms" in str(error)


def test_what_may_pass_is_tried_until_its_deadline() -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 1, ACCEPT), deadline=10.0)
    now, tries = 0.0, 0
    while not bench.settled:
        assert bench.session.next_due == now
        bench.acks(now)
        tries += 1
        bench.ack_answer(acks={0: ErrorCode.COORDINATOR_NOT_AVAILABLE}, now=now)
        now = now + tries  # as long as the backoff after so many tries
    assert tries == 4  # at 0, 1, 3 and 6 s; the next would be at 10 s
    assert bench.codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_what_may_pass_is_sent_again_after_a_distance() -> None:
    bench = Bench()
    bench.open(0, 1)
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    bench.acks()
    bench.ack_answer(acks={0: ErrorCode.REQUEST_TIMED_OUT}, now=5.0)
    assert bench.session.next_due == 6.0
    assert bench.session.acknowledgements(5.9) is None
    assert bench.session.can_carry(wanted(1), 5.9)
    assert not bench.session.can_carry(wanted(1), 6.0)
    assert places(bench.session.fetch(wanted(0, 1), TERMS, 5.9)) == []
    bench.fetch_answer()
    bench.decide(1, ValueRun(7, 7, RENEW))
    assert places(bench.acks(5.9)) == [1]
    bench.ack_answer(acks={1: 0})
    assert places(bench.session.fetch(wanted(0, 1), TERMS, 6.0)) == [0]
    bench.fetch_answer(acks={0: 0})
    assert bench.codes == [None, None]


def test_what_waits_for_another_try_is_lost_with_the_session() -> None:
    bench = Bench()
    bench.open(0, 1)
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    bench.acks()
    bench.ack_answer(acks={0: ErrorCode.REQUEST_TIMED_OUT}, now=5.0)
    bench.decide(1, ValueRun(0, 1, ACCEPT))
    bench.acks(5.0)
    bench.session.failed(NetworkError("gone"))
    assert bench.session.next_due <= 5.0
    assert bench.session.acknowledgements(5.0) is None
    assert bench.codes[-1] == ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize("size", [1, 2, 100, 5_000])
def test_locks_that_have_all_run_out_cost_few_requests(size: int) -> None:
    """Acknowledgements of expired locks are divided to find the failed ones, but only a few times.

    One request per record would exceed the time limit of a commit.
    """
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, size - 1, ACCEPT))
    tries = 0
    while bench.session.next_due < NEVER:
        tries += 1
        bench.acks()
        bench.ack_answer(acks={0: ErrorCode.INVALID_RECORD_STATE})
    assert tries <= 2 * DIVISIONS_MAX + 1
    refused = RunMap()
    for runs, error in bench.settled:
        assert error is not None
        for run in runs:
            refused.put(*run)
    assert list(refused) == [ValueRun(0, size - 1, ACCEPT)]


def test_nothing_is_divided_after_the_deadline() -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 7, ACCEPT), deadline=10.0)
    bench.acks()
    bench.ack_answer(acks={0: ErrorCode.INVALID_RECORD_STATE}, now=10.0)
    assert bench.codes == [ErrorCode.INVALID_RECORD_STATE]


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID])
def test_locks_of_a_former_leader_are_not_tried_again(code: ErrorCode) -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    bench.acks()
    bench.ack_answer(acks={0: code})
    assert bench.codes == [code]


def test_a_refused_request_counts_as_an_epoch() -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    bench.acks()
    assert bench.ack_answer(ErrorCode.GROUP_AUTHORIZATION_FAILED) is not None
    assert bench.codes == [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    assert bench.session.epoch == 2


def test_what_is_left_out_of_an_answer_has_failed() -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    bench.acks()
    bench.ack_answer()
    assert isinstance(bench.settled[0][1], ProtocolViolationError)


def test_a_session_is_closed_with_what_is_left() -> None:
    bench = Bench()
    bench.open(0, 1)
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    bench.decide(1, ValueRun(3, 3, RENEW))
    request = bench.session.acknowledgements(0.0, is_final=True)
    assert request is not None
    assert (request.share_session_epoch, batches(request)) == (-1, [(0, 1, [1])])
    bench.ack_answer(acks={0: 0})
    assert bench.codes == [None, None]
    assert not bench.session.is_open


def test_a_closed_session_does_not_try_again() -> None:
    bench = Bench()
    bench.open(0)
    bench.decide(0, ValueRun(0, 1, ACCEPT))
    bench.session.acknowledgements(0.0, is_final=True)
    bench.ack_answer(acks={0: ErrorCode.INVALID_RECORD_STATE})
    assert bench.codes == [ErrorCode.INVALID_RECORD_STATE]
    assert bench.session.next_due == NEVER


def test_a_session_that_is_not_open_is_closed_without_a_request() -> None:
    bench = Bench()
    assert bench.session.acknowledgements(0.0, is_final=True) is None


def test_nothing_to_say_is_no_request() -> None:
    bench = Bench()
    bench.open(0)
    assert bench.session.acknowledgements(0.0) is None
