"""Tests of the ISR changes that a leader proposes: they are batched, one request is in flight at a time.

While requests fail, the pauses between them grow.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from penstock.broker.replication.followers import Followers
from penstock.broker.replication.proposals import CHANGES_MAX, RETRY_MAX_S, IsrProposals
from penstock.broker.replication.transport.messages import Proposal, ProposalAnswer
from penstock.protocol.error_codes import ErrorCode

NODE, BROKER_EPOCH = 1, 11

Answering = Callable[[Proposal], "ProposalAnswer | None"]


class Led:
    """A stand-in for a leader replica and its partition.

    Follower 2 is not in sync; it last fetched with broker epoch 22.
    """

    topic_id = bytes(16)
    leader_epoch = 5

    def __init__(self, index: int) -> None:
        self.index = index
        self.epoch = 7
        self.followers = Followers(NODE, (1, 2, 3), (1, 3), 0, 0.0)
        self.followers.fetched(2, 0, 0, 22, 0, 0.0)

    @property
    def partition(self) -> Led:
        return self


def partition(index: int) -> Any:
    return Led(index)


class Leader:
    """A stand-in for a node that sends its ISR proposals as soon as its timers allow."""

    def __init__(self, partitions: int, seed: int = 1) -> None:
        self.proposals = IsrProposals(NODE, Random(seed))
        self.partitions = [partition(index) for index in range(partitions)]
        self.now_s = 0.0
        self.sent: list[tuple[float, Proposal]] = []
        self.propose()

    def propose(self) -> None:
        """Propose to add follower 2 to each ISR, unless such a proposal is pending, as each fetch does."""
        for each in self.partitions:
            if not each.followers.pending and 2 not in each.followers.in_sync:
                self.proposals.add(each, (1, 3, 2))

    def run(self, seconds: float, answering: Answering) -> None:
        """Let time pass: each request is answered after 1 ms, and then the followers fetch again."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            asked = self.proposals.request(BROKER_EPOCH, self.now_s)
            if asked is not None:
                self.sent.append((self.now_s, asked))
                self.now_s += 0.001
                self.proposals.answered(asked.number, answering(asked), self.now_s)
                self.propose()
            else:
                self.now_s += 0.01

    def accept(self, asked: Proposal) -> ProposalAnswer:
        """Apply a proposal, with the new metadata arriving before the answer."""
        for change in asked.changes:
            found = self.partitions[change.partition]
            found.epoch += 1
            found.followers.changed(tuple(replica for replica, _ in change.in_sync))
            self.proposals.settled(found)
        return ProposalAnswer(0, (0,) * len(asked.changes))

    @property
    def in_sync(self) -> int:
        return sum(2 in each.followers.in_sync for each in self.partitions)


def refusing(error: int) -> Answering:
    return lambda asked: ProposalAnswer(0, (error,) * len(asked.changes))


@pytest.mark.parametrize(
    "failing",
    [
        lambda asked: None,
        lambda asked: ProposalAnswer(ErrorCode.STALE_BROKER_EPOCH),
        refusing(ErrorCode.INELIGIBLE_REPLICA),
        refusing(ErrorCode.INVALID_UPDATE_VERSION),
    ],
    ids=["away", "stale", "ineligible", "older"],
)
@pytest.mark.parametrize("partitions", [1, 1_200])
def test_requests_are_few_while_they_fail_and_all_is_accepted_in_the_end(
    failing: Answering, partitions: int
) -> None:
    leader = Leader(partitions)
    leader.run(20, failing)
    # Pauses of 0.05, 0.1, 0.2, 0.4, 0.8 s, then of a second, each up to a fifth shorter.
    assert 15 <= len(leader.sent) <= 5 + 20 / (0.8 * RETRY_MAX_S)
    assert leader.in_sync == 0
    failed = len(leader.sent)
    leader.run(2 * RETRY_MAX_S, leader.accept)
    assert leader.in_sync == partitions
    assert len(leader.sent) - failed == -(-partitions // CHANGES_MAX)
    leader.run(10, leader.accept)
    assert len(leader.sent) - failed == -(-partitions // CHANGES_MAX)


def test_answers_that_are_lost_are_waited_for_longer_and_longer() -> None:
    leader = Leader(1)
    for _ in range(60_000):
        asked = leader.proposals.request(BROKER_EPOCH, leader.now_s)
        if asked is not None:
            leader.sent.append((leader.now_s, asked))
        leader.now_s += 0.01
    gaps = [later - earlier for (earlier, _), (later, _) in zip(leader.sent, leader.sent[1:], strict=False)]
    assert gaps[:5] == sorted(gaps[:5])
    assert 30 <= max(gaps) < 32
    assert len(gaps) < 30


def test_one_request_is_under_way_and_the_next_has_all_that_came_meanwhile() -> None:
    proposals = IsrProposals(NODE, Random(1))
    first, *others = [partition(index) for index in range(5)]
    proposals.add(first, (1, 3, 2))
    asked = proposals.request(BROKER_EPOCH, 0.0)
    assert asked is not None
    assert [each.partition for each in asked.changes] == [0]
    for each in others:
        proposals.add(each, (1, 3, 2))
    assert proposals.request(BROKER_EPOCH, 0.9) is None
    proposals.answered(asked.number, ProposalAnswer(0, (0,)), 0.9)
    later = proposals.request(BROKER_EPOCH, 0.9)
    assert later is not None
    assert [each.partition for each in later.changes] == [1, 2, 3, 4]


def test_what_is_settled_is_not_repeated() -> None:
    proposals = IsrProposals(NODE, Random(1))
    one, other = partition(0), partition(1)
    proposals.add(one, (1, 3, 2))
    proposals.add(other, (1, 3, 2))
    asked = proposals.request(BROKER_EPOCH, 0.0)
    assert asked is not None
    one.epoch += 1  # the metadata have come, the answer is lost
    one.followers.changed((1, 3))
    proposals.settled(one)
    proposals.answered(asked.number, None, 0.1)
    later = proposals.request(BROKER_EPOCH, 1.0)
    assert later is not None
    assert [each.partition for each in later.changes] == [1]
    assert not one.followers.pending


def test_the_answer_to_an_earlier_request_does_not_decide() -> None:
    """A late refusal of the first request does not end the joining of a follower.

    The controller may have accepted the second request, so that the follower is in the ISR.
    """
    proposals = IsrProposals(NODE, Random(1))
    found = partition(0)
    proposals.add(found, (1, 3, 2))
    found.followers.joining = 2
    first = proposals.request(BROKER_EPOCH, 0.0)
    assert first is not None
    assert proposals.request(BROKER_EPOCH, 1.0) is None
    second = proposals.request(BROKER_EPOCH, 1.1)
    assert second is not None
    assert second.number > first.number
    refusal = ProposalAnswer(0, (ErrorCode.INELIGIBLE_REPLICA,))
    assert not proposals.answered(first.number, refusal, 1.2)
    assert found.followers.joining == 2
    assert proposals.answered(second.number, ProposalAnswer(0, (0,)), 1.2)
    assert found.followers.joining == 2
    assert found.followers.pending


def test_the_life_that_was_in_sync_is_proposed_whatever_life_has_fetched_since() -> None:
    proposals = IsrProposals(NODE, Random(1))
    found = partition(0)
    proposals.add(found, (1, 3, 2))
    asked = proposals.request(BROKER_EPOCH, 0.0)
    assert asked is not None
    found.followers.fetched(2, 0, 0, 99, 0, 0.5)
    proposals.answered(asked.number, None, 0.5)
    later = proposals.request(BROKER_EPOCH, 1.0)
    assert later is not None
    assert later.changes == asked.changes
    assert later.changes[0].in_sync == ((1, -1), (3, -1), (2, 22))


def test_a_seed_decides_the_pauses() -> None:
    def times(seed: int) -> list[float]:
        leader = Leader(1, seed)
        leader.run(20, lambda asked: None)
        return [when for when, _ in leader.sent]

    assert times(3) == times(3)
    assert times(3) != times(4)
