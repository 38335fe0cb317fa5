"""Tests of one partition's transactions, without a log: open and fenced ones, and the last stable offset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.broker.partitions.producers.producer_state import Producers, SeenBatch, last_sequence
from penstock.broker.partitions.producers.transactions import AbortedTransaction, Transactions, Verification
from penstock.errors import KafkaError

P, Q = 5, 6
HOUR_MS = 3_600_000


class Bench:
    """A partition for tests: its producers, its transactions, and an end offset instead of a log."""

    def __init__(self) -> None:
        self.producers = Producers(HOUR_MS)
        self.transactions = Transactions(self.producers)
        self.end = 0
        self.now_ms = 0

    def write(
        self,
        producer_id: int,
        epoch: int = 0,
        sequence: int = 0,
        *,
        count: int = 1,
        transactional: bool = True,
        verification: Verification | None = None,
        verify: bool = True,
        implicit: bool = False,
    ) -> int:
        """Append a batch as a partition does; return its base offset.

        A batch that repeats an earlier one returns the earlier offset.
        """
        repeated = self.producers.judge(producer_id, epoch, sequence, count, self.now_ms)
        if repeated is not None:
            return repeated.first_offset
        if transactional and verify and verification is None:
            verification = self.transactions.begin_verification(
                producer_id, epoch, sequence, implicit, self.now_ms
            )
        self.transactions.check_append(producer_id, epoch, sequence, transactional, verification)
        offset, self.end = self.end, self.end + count
        batch = SeenBatch(sequence, last_sequence(sequence, count), offset, self.end - 1, self.now_ms)
        self.producers.record(producer_id, epoch, batch, self.now_ms)
        if transactional:
            self.transactions.record_data(producer_id, offset)
        return offset

    def mark(
        self,
        producer_id: int,
        epoch: int = 0,
        *,
        commit: bool = True,
        coordinator_epoch: int = 0,
        version: int = 0,
    ) -> AbortedTransaction | None:
        self.transactions.check_marker(producer_id, epoch, coordinator_epoch, version)
        offset, self.end = self.end, self.end + 1
        return self.transactions.record_marker(
            producer_id,
            epoch,
            coordinator_epoch,
            commit,
            offset,
            self.now_ms,
            self.now_ms,
            transaction_version=version,
        )

    @property
    def stable(self) -> int:
        return self.transactions.last_stable_offset(0, self.end)


def refused(code: int) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code == code)


def test_the_last_stable_offset_waits_for_the_oldest() -> None:
    bench = Bench()
    for producer in (1, 2, 3):
        bench.write(producer)
    bench.write(4, transactional=False)
    assert bench.stable == 0
    assert bench.mark(3, commit=False) == AbortedTransaction(3, 2, 4, 0)
    assert bench.mark(2, commit=False) == AbortedTransaction(2, 1, 5, 0)
    bench.write(9)
    assert bench.mark(1, commit=False) == AbortedTransaction(1, 0, 7, 6)
    assert bench.stable == 6
    assert bench.mark(9) is None
    assert bench.stable == bench.end == 9


def test_the_last_stable_offset_stays_within_the_log() -> None:
    bench = Bench()
    bench.write(P)
    assert bench.transactions.last_stable_offset(3, 9) == 3
    assert bench.transactions.last_stable_offset(3, 3) == 3
    assert Bench().transactions.last_stable_offset(3, 9) == 9


def test_a_transaction_must_be_verified_before_it_opens() -> None:
    bench = Bench()
    with refused(48):
        bench.write(P, verify=False)
    assert bench.write(P) == 0
    assert bench.write(P, sequence=1, verify=False) == 1  # it is open


def test_a_late_batch_opens_no_transaction() -> None:
    bench = Bench()
    bench.write(P)
    asked = bench.transactions.begin_verification(P, 0, 1, False, 0)
    assert asked is None  # open: the coordinator need not be asked
    bench.mark(P)
    with refused(48):
        bench.write(P, sequence=1, verify=False)
    assert bench.stable == bench.end


def test_a_marker_makes_a_verification_void() -> None:
    bench = Bench()
    asked = bench.transactions.begin_verification(P, 0, 0, False, 0)
    bench.mark(P)
    with refused(48):
        bench.write(P, verification=asked)


def test_a_marker_of_kip_890_spares_the_next_transaction() -> None:
    bench = Bench()
    bench.write(P, implicit=True)
    asked = bench.transactions.begin_verification(P, 1, 0, True, 0)
    bench.mark(P, 1, version=2)
    assert bench.write(P, 1, verification=asked) == 2


def test_a_batch_does_not_overtake_another_that_is_being_verified() -> None:
    bench = Bench()
    bench.transactions.begin_verification(P, 0, 0, False, 0)
    with refused(45):
        bench.write(P, sequence=3)
    assert bench.write(P, sequence=0) == 0


def test_the_first_batch_of_kip_890_begins_with_sequence_0() -> None:
    bench = Bench()
    with refused(45):
        bench.write(P, sequence=3, implicit=True)
    assert bench.write(Q, sequence=3) == 0  # before KIP-890, other data may have been deleted


def test_older_epochs_are_fenced() -> None:
    bench = Bench()
    bench.write(P, 3)
    bench.mark(P, 4, commit=False)
    with refused(47):
        bench.write(P, 3, 1)
    with refused(47):
        bench.transactions.begin_verification(P, 3, 0, False, 0)
    bench.transactions.begin_verification(Q, 3, 0, False, 0)
    with refused(47):
        bench.transactions.begin_verification(Q, 2, 0, False, 0)


def test_a_batch_outside_of_the_transaction_is_refused() -> None:
    bench = Bench()
    bench.write(P)
    with refused(48):
        bench.write(P, sequence=1, transactional=False)
    bench.mark(P)
    assert bench.write(P, sequence=1, transactional=False) == 2


def test_a_batch_sent_again_is_known_inside_and_after_its_transaction() -> None:
    bench = Bench()
    assert bench.write(P, count=2) == 0
    assert bench.write(P, count=2) == 0
    bench.mark(P)
    assert bench.write(P, count=2) == 0
    assert bench.stable == bench.end == 3


def test_a_marker_that_raises_the_epoch_begins_sequences_anew() -> None:
    bench = Bench()
    bench.write(P)
    bench.mark(P, 1, version=2)
    with refused(45):
        bench.write(P, 1, 1)
    assert bench.write(P, 1, 0) == 2
    other = Bench()
    other.write(P)
    other.mark(P)
    assert other.write(P, 0, 1) == 2  # before KIP-890 they go on


@for_each(
    [
        (3, True, 3, 0, None),
        (3, True, 4, 0, None),
        (3, True, 2, 0, 47),
        (3, False, 2, 0, 47),
        (3, False, 3, 0, None),
        (3, True, 4, 2, None),
        (3, True, 3, 2, 47),
        (3, False, 3, 2, None),
        (3, False, 2, 2, 47),
        (32767, True, 32767, 2, None),
    ]
)
def test_which_markers_are_taken(
    stored: int, is_open: bool, epoch: int, version: int, code: int | None
) -> None:
    bench = Bench()
    bench.write(P, stored)
    if not is_open:
        bench.mark(P, stored)
    if code is None:
        bench.mark(P, epoch, version=version)
    else:
        with refused(code):
            bench.mark(P, epoch, version=version)


def test_markers_of_a_former_coordinator_are_refused() -> None:
    bench = Bench()
    bench.write(P)
    bench.mark(P, coordinator_epoch=7)
    with refused(52):
        bench.mark(P, coordinator_epoch=6)
    bench.mark(P, coordinator_epoch=7)


def test_a_marker_for_an_unknown_producer_is_taken() -> None:
    bench = Bench()
    assert bench.mark(P, 4, commit=False) is None
    with refused(47):
        bench.write(P, 3)


def test_producers_with_a_transaction_open_are_not_forgotten() -> None:
    bench = Bench()
    bench.write(P)
    bench.write(Q, transactional=False)
    assert bench.producers.expire(2 * HOUR_MS) == 1
    bench.now_ms = 2 * HOUR_MS
    with refused(45):
        bench.write(P, sequence=7)
    bench.write(Q, transactional=False)
    assert bench.producers.forget_idlest(0) == 1
    assert P in bench.producers
    bench.mark(P)
    assert bench.producers.forget_idlest(0) == 1


def test_verifications_that_lead_to_nothing_are_forgotten() -> None:
    bench = Bench()
    asked = bench.transactions.begin_verification(P, 0, 0, False, 10)
    bench.transactions.expire_verifications(11)
    with refused(48):
        bench.write(P, verification=asked)


def test_open_transactions_are_taken_over_from_what_was_stored() -> None:
    bench = Bench()
    bench.write(1)
    bench.write(2)
    bench.write(3, transactional=False)
    again = Transactions(bench.producers)
    assert list(again.open_transactions()) == [(1, 0), (2, 1)]
    assert again.first_unstable_offset == 0


steps = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(("data", "plain", "commit", "abort"))), max_size=60
)


@given(steps)
def test_open_and_aborted_transactions_are_those_of_a_model(history: list[tuple[int, str]]) -> None:
    bench = Bench()
    sequences = dict.fromkeys(range(1, 5), 0)
    begun: dict[int, int] = {}
    aborted: list[tuple[int, int, int]] = []
    found: list[AbortedTransaction] = []
    for producer, what in history:
        if what == "plain":
            if producer not in begun:
                bench.write(producer, 0, sequences[producer], transactional=False)
                sequences[producer] += 1
        elif what == "data":
            begun.setdefault(producer, bench.end)
            bench.write(producer, 0, sequences[producer])
            sequences[producer] += 1
        else:
            if what == "abort" and producer in begun:
                aborted.append((producer, begun[producer], bench.end))
            begun.pop(producer, None)
            entry = bench.mark(producer, commit=what == "commit")
            if entry is not None:
                found.append(entry)
                assert entry.last_stable_offset == min(begun.values(), default=bench.end)
        assert bench.stable == min(begun.values(), default=bench.end)
        assert dict(bench.transactions.open_transactions()) == begun
    assert [entry[:3] for entry in found] == aborted
