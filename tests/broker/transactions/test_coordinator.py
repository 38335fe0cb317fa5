"""Tests of the transaction coordinator's answers: those of Apache Kafka 4.3, and a few stricter ones."""

from __future__ import annotations

import pytest

from broker.transactions.bench import ID, START_MS, Bench
from for_each import for_each
from penstock.broker.transactions.initialization import Initialization
from penstock.broker.transactions.outbox import ApiOutcome
from penstock.broker.transactions.queries import describe, listed
from penstock.broker.transactions.settings import TransactionSettings
from penstock.protocol.error_codes import ErrorCode

PID = 4000
A, B, C = ("a", 0), ("b", 0), ("c", 7)


def ongoing(bench: Bench, *, new: bool = True) -> None:
    """Open a transaction of producer id 4000 with epoch 0, which contains partition 0 of topic ``a``."""
    assert bench.initialize() == (0, PID, 0)
    assert bench.add(PID, 0, [A], implicit=new) == 0


# --- InitProducerId -----------------------------------------------------------------------------------------


def test_each_initialization_raises_the_epoch() -> None:
    bench = Bench()
    assert [bench.initialize() for _ in range(3)] == [(0, PID, 0), (0, PID, 1), (0, PID, 2)]
    assert bench.initialize(transactional_id="other") == (0, PID + 1, 0)


@for_each(
    [
        (Initialization("", 60_000), 42),
        (Initialization("t" * 32_768, 60_000), 42),
        (Initialization("é" * 16_384, 60_000), 42),
        (Initialization("t", 60_000, 4000), 42),
        (Initialization("t", 60_000, -1, 0), 42),
        (Initialization("t", 0), 50),
        (Initialization("t", -1), 50),
        (Initialization("t", 900_001), 50),
        (Initialization("t", 60_000, two_phase_commit=True), 53),
        (Initialization("t", 60_000, keeps_prepared=True), 35),
    ]
)
def test_wrong_initializations(request_: Initialization, code: int) -> None:
    bench = Bench()
    bench.coordinator.initialize(request_, "ticket", bench.now)
    assert bench.answer("ticket") == ApiOutcome(ErrorCode(code))
    assert bench.coordinator.registry.transactions == {}
    assert bench.log == []


def test_a_producer_raises_its_own_epoch() -> None:
    bench = Bench()
    bench.initialize()
    assert bench.initialize(PID, 0) == (0, PID, 1)
    assert bench.initialize(PID, 0) == (0, PID, 1)  # the answer was lost
    assert bench.initialize(PID, 1) == (0, PID, 2)
    assert bench.initialize(PID, 0) == (90, -1, -1)
    assert bench.initialize(PID + 7, 2) == (90, -1, -1)


def test_an_unknown_id_ignores_what_producer_is_named() -> None:
    assert Bench().initialize(17, 23) == (0, PID, 0)


def test_an_open_transaction_is_aborted_first() -> None:
    bench = Bench()
    ongoing(bench)
    assert bench.initialize() == (51, -1, -1)
    assert bench.state == "CompleteAbort"
    assert bench.initialize() == (0, PID, 2)
    assert bench.end(PID, 0).error == 90


@pytest.mark.parametrize(("level", "expected"), [(0, (90, -1, -1)), (1, (90, -1, -1)), (2, (0, PID, 1))])
def test_a_producer_that_raises_its_epoch_with_a_transaction_open(
    level: int, expected: tuple[int, int, int]
) -> None:
    bench = Bench(level=level)
    ongoing(bench, new=False)
    assert bench.initialize(PID, 0) == (51, -1, -1)
    assert bench.initialize(PID, 0) == expected
    assert bench.initialize()[2] == 2


def test_the_last_epoch_leads_to_another_producer_id() -> None:
    bench = Bench()
    bench.initialize()
    bench.transaction.image = bench.transaction.image._replace(epoch=32766)
    assert bench.initialize() == (0, PID + 1, 0)
    bench.transaction.image = bench.transaction.image._replace(epoch=32766)
    assert bench.initialize(PID + 1, 32766) == (0, PID + 2, 0)
    assert bench.initialize(PID + 1, 32766) == (0, PID + 2, 0)  # the answer was lost
    assert bench.initialize(PID + 1, 32765) == (90, -1, -1)


def test_without_a_producer_id_at_hand_the_client_comes_again() -> None:
    bench = Bench()
    bench.coordinator._new_id = lambda: None
    assert bench.initialize() == (14, -1, -1)
    assert bench.coordinator.registry.transactions == {}


def test_an_id_that_could_not_be_stored_does_not_exist() -> None:
    bench = Bench()
    bench.store_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.initialize() == (15, -1, -1)
    assert bench.coordinator.registry.transactions == {}
    assert bench.coordinator.registry.size_bytes == 0


# --- partitions ---------------------------------------------------------------------------------------------


def test_partitions_are_added_once() -> None:
    bench = Bench()
    bench.initialize()
    assert bench.add(PID, 0, [A, B]) == 0
    size = len(bench.log)
    assert bench.add(PID, 0, [B]) == 0
    assert len(bench.log) == size
    assert bench.add(PID, 0, [C]) == 0
    assert describe(bench.coordinator, ID).partitions == (A, B, C)


def test_adding_with_a_wrong_producer() -> None:
    bench = Bench()
    bench.initialize()
    assert bench.add(PID + 1, 0) == 49
    assert bench.add(PID, 1) == 90
    assert bench.add(PID, 0, transactional_id="unknown") == 49
    assert bench.add(PID, 0, transactional_id="") == 42
    assert bench.state == "Empty"


def test_verifying() -> None:
    bench = Bench()
    ongoing(bench, new=False)
    verify = bench.coordinator.verify
    assert verify(ID, PID, 0, [A, B]) == {A: 0, B: 120}
    assert verify("unknown", PID, 0, [A]) == {A: 49}
    assert verify(ID, PID + 1, 0, [A]) == {A: 49}
    assert verify(ID, PID, 1, [A]) == {A: 90}
    bench.marks = False
    bench.end(PID, 0, new=False)
    assert verify(ID, PID, 0, [A]) == {A: 51}


def test_implicit_adds_need_the_feature() -> None:
    bench = Bench(level=1)
    bench.initialize()
    assert bench.add(PID, 0, implicit=True) == 35
    assert bench.end(PID, 0).error == 35
    assert bench.add(PID, 0) == 0
    assert bench.end(PID, 0, new=False).error == 0


# --- EndTxn -------------------------------------------------------------------------------------------------

STATES = ("Empty", "Ongoing", "CompleteCommit", "CompleteAbort")


def brought_to(state: str) -> tuple[Bench, int]:
    """Return a coordinator with a transaction in this state, and the current epoch, which is not 0."""
    bench = Bench()
    bench.initialize()
    epoch = bench.initialize()[2]
    if state != "Empty":
        bench.add(PID, epoch, implicit=True)
    if state.startswith("Complete"):
        epoch = bench.end(PID, epoch, state == "CompleteCommit").epoch
    assert bench.state == state
    return bench, epoch


NEW_ENDS = {
    ("Ongoing", 0): (0, 0),
    ("Ongoing", -1): (90, 90),
    ("Empty", 0): (48, 0),
    ("Empty", -1): (90, 90),
    ("CompleteCommit", 0): (48, 0),
    ("CompleteCommit", -1): (0, 48),
    ("CompleteAbort", 0): (48, 0),
    ("CompleteAbort", -1): (48, 0),
}
"""The expected error codes of EndTxn, for commit and abort.

Keys are the transaction's state, and the request's producer epoch minus the current one.
"""


@for_each(
    [(state, distance, commit) for state in STATES for distance in [-2, -1, 0, 1] for commit in [True, False]]
)
def test_end_since_kip_890(state: str, distance: int, commit: bool) -> None:
    bench, epoch = brought_to(state)
    expected = NEW_ENDS.get((state, distance), (90, 90))[0 if commit else 1]
    found = bench.end(PID, epoch + distance, commit)
    assert found.error == expected
    if expected:
        assert (found.producer_id, found.epoch) == (-1, -1)
    elif distance:
        assert (found.producer_id, found.epoch) == (PID, epoch)
    else:
        assert (found.producer_id, found.epoch) == (PID, epoch + 1)
        assert bench.state == ("CompleteCommit" if commit else "CompleteAbort")


OLD_ENDS = {
    "Ongoing": (0, 0),
    "Empty": (48, 48),
    "CompleteCommit": (0, 48),
    "CompleteAbort": (48, 0),
}


@for_each(
    [(state, distance, commit) for state in STATES for distance in [-1, 0, 1] for commit in [True, False]]
)
def test_end_before_kip_890(state: str, distance: int, commit: bool) -> None:
    bench, epoch = brought_to(state)
    expected = 90 if distance else OLD_ENDS[state][0 if commit else 1]
    found = bench.end(PID, epoch + distance, commit, new=False)
    assert found.error == expected
    assert bench.end(PID + 9, epoch, commit, new=False).error == 49
    if not expected:
        assert bench.transaction.image.epoch == epoch  # it stays


@pytest.mark.parametrize("new", [True, False])
def test_while_markers_are_missing_requests_come_again(new: bool) -> None:
    bench = Bench()
    ongoing(bench, new=new)
    bench.marks = False
    epoch = 1 if new else 0
    assert bench.end(PID, 0, new=new).error == 0  # answered before any marker
    assert bench.state == "PrepareCommit"
    for commit in (True, False):
        assert bench.end(PID, epoch, commit, new=new).error == 51
    assert bench.add(PID, epoch, [B]) == 51
    assert bench.initialize() == (51, -1, -1)
    assert describe(bench.coordinator, ID).partitions == (A,)
    bench.marks = True
    bench.settle()
    assert bench.state == "CompleteCommit"
    assert bench.add(PID, epoch, [B]) == 0


def test_nothing_is_answered_or_marked_before_it_is_stored() -> None:
    bench = Bench()
    ongoing(bench)
    bench.stores = False
    ticket = bench.ask_to_end(PID, 0)
    assert ticket not in bench.answers
    assert bench.sent == []
    assert bench.end(PID, 0).error == 51
    assert bench.state == "Ongoing"
    bench.stores = True
    assert bench.answer(ticket) == ApiOutcome(producer_id=PID, epoch=1)
    assert bench.state == "CompleteCommit"


def test_an_outcome_that_could_not_be_stored_is_open_again() -> None:
    bench = Bench()
    ongoing(bench)
    bench.store_error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert bench.end(PID, 0).error == 15
    assert bench.state == "Ongoing"
    assert bench.sent == []
    bench.store_error = ErrorCode.NONE
    assert bench.end(PID, 0, commit=False).error == 0
    assert bench.state == "CompleteAbort"


def test_markers_are_written_again_until_they_are_everywhere() -> None:
    bench = Bench()
    bench.initialize()
    bench.add(PID, 0, [A, B, C])
    bench.mark_errors = {B: ErrorCode.NOT_LEADER_OR_FOLLOWER, C: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert bench.end(PID, 0, new=False).error == 0
    assert [one.partitions for one in bench.sent] == [(A, B, C)]
    bench.wait(1)
    assert {one.partitions for one in bench.sent[1:]} == {(B, C)}
    assert 3 <= len(bench.sent) < 10
    del bench.mark_errors[C]
    bench.wait(60)
    assert bench.state == "PrepareCommit"
    bench.mark_errors.clear()
    bench.wait(10)
    assert bench.state == "CompleteCommit"
    assert bench.sent[-1].partitions == (B,)


def test_an_end_that_could_not_be_stored_is_stored_later() -> None:
    bench = Bench()
    ongoing(bench)
    bench.marks = False
    bench.end(PID, 0)
    bench.store_error = ErrorCode.KAFKA_STORAGE_ERROR
    bench.marks = True
    bench.settle()
    bench.wait(3)
    assert bench.state == "PrepareCommit"
    bench.store_error = ErrorCode.NONE
    bench.wait(6)
    assert bench.state == "CompleteCommit"


def test_an_abort_without_partitions_is_stored() -> None:
    bench = Bench()
    bench.initialize()
    assert bench.end(PID, 0, commit=False) == ApiOutcome(producer_id=PID, epoch=1)
    assert bench.sent == []
    assert bench.state == "CompleteAbort"
    assert describe(bench.coordinator, ID).started_ms == START_MS


def test_the_last_epoch_ends_with_another_producer_id() -> None:
    bench = Bench()
    bench.initialize()
    bench.transaction.image = bench.transaction.image._replace(epoch=32766)
    assert bench.add(PID, 32766, implicit=True) == 0
    assert bench.end(PID, 32766) == ApiOutcome(producer_id=PID + 1, epoch=0)
    assert [(one.producer_id, one.epoch) for one in bench.sent] == [(PID, 32767)]
    assert bench.end(PID, 32766) == ApiOutcome(producer_id=PID + 1, epoch=0)  # the answer was lost
    assert bench.end(PID, 32766, commit=False).error == 48
    assert bench.end(PID, 32765).error == 49
    bench.begin()
    assert bench.end(PID, 32766) == ApiOutcome(producer_id=PID + 1, epoch=0)
    assert bench.add(PID + 1, 0, implicit=True) == 0


def test_a_second_end_is_known_after_a_restart() -> None:
    bench = Bench()
    ongoing(bench)
    assert bench.end(PID, 0).epoch == 1
    bench.begin()
    assert bench.end(PID, 0) == ApiOutcome(producer_id=PID, epoch=1)


def test_an_old_end_and_then_a_new_one() -> None:
    bench = Bench()
    ongoing(bench, new=False)
    assert bench.end(PID, 0, new=False).error == 0
    assert bench.end(PID, 0, commit=False) == ApiOutcome(producer_id=PID, epoch=1)


# --- the late EndTxn of KAFKA-17754 -------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_a_late_end_of_the_old_flow_does_not_end_the_next_transaction(commit: bool) -> None:
    bench = Bench()
    bench.initialize()
    assert bench.add(PID, 0, [A], connection=1) == 0
    # The client has given up connection 1 with the end still in it, and asks again on connection 2.
    assert bench.end(PID, 0, commit, new=False, connection=2).error == 0
    assert bench.add(PID, 0, [B], connection=2) == 0
    late = bench.end(PID, 0, commit, new=False, connection=1)
    assert late.closes_connection
    assert bench.state == "Ongoing"
    assert bench.end(PID, 0, False, new=False, connection=2).error == 0
    assert bench.sent[-1].is_commit is False


def test_an_end_may_come_on_a_newer_connection() -> None:
    bench = Bench()
    bench.initialize()
    bench.add(PID, 0, [A], connection=1)
    assert bench.end(PID, 0, new=False, connection=9).error == 0
    bench.add(PID, 0, [B], connection=1)  # the newest of this transaction
    assert bench.end(PID, 0, new=False, connection=1).error == 0


def test_a_late_end_of_kip_890_is_fenced() -> None:
    bench = Bench()
    ongoing(bench)
    bench.end(PID, 0)
    bench.add(PID, 1, [B], implicit=True)
    assert bench.end(PID, 0).error == 90
    assert bench.state == "Ongoing"


def test_a_zombie_does_not_get_the_epoch_of_a_successor_of_the_old_flow() -> None:
    bench = Bench()
    ongoing(bench)
    assert bench.end(PID, 0).epoch == 1  # the zombie has (4000, 1)
    assert bench.initialize() == (0, PID, 2)
    bench.add(PID, 2)
    bench.end(PID, 2, commit=False, new=False)
    assert bench.end(PID, 1, commit=False).error == 90


# --- time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "commit", "abort"), [(2, 48, 0), (1, None, None)])
def test_a_transaction_whose_time_is_up_is_aborted(level: int, commit: int | None, abort: int | None) -> None:
    bench = Bench(level=level)
    assert bench.initialize(timeout_ms=5_000) == (0, PID, 0)
    bench.add(PID, 0, [A])
    bench.wait(4)
    bench.add(PID, 0, [B])  # prolongs nothing
    bench.wait(12)
    assert bench.state == "CompleteAbort"
    assert [(one.epoch, one.is_commit, one.client_version) for one in bench.sent] == [
        (1, False, 2 if level == 2 else 0)
    ]
    assert bench.end(PID, 0, new=False).error == 90
    if commit is not None:
        assert bench.end(PID, 0, commit=True).error == commit
        assert bench.end(PID, 0, commit=False) == ApiOutcome(ErrorCode(abort or 0), PID, 1)
    assert bench.add(PID, 0) == 90


def test_overdue_transactions_are_looked_for_at_intervals() -> None:
    bench = Bench(settings=TransactionSettings(abort_interval_ms=100))
    bench.initialize(timeout_ms=5_000)
    bench.add(PID, 0)
    bench.wait(4.99)
    assert bench.state == "Ongoing"
    bench.wait(0.2)
    assert bench.state == "CompleteAbort"


def test_nothing_is_due_without_transactions() -> None:
    assert Bench().coordinator.next_deadline() is None


@pytest.mark.parametrize("skew_s", [-1_000_000, -3, 3, 1_000_000])
def test_a_clock_that_is_put_does_not_change_a_timeout(skew_s: int) -> None:
    bench = Bench()
    bench.initialize()
    bench.add(PID, 0)
    bench.skew_ms = skew_s * 1000
    bench.wait(55)
    assert bench.state == "Ongoing"
    bench.wait(20)
    assert bench.state == "CompleteAbort"


def test_a_clock_put_back_over_a_restart_gives_the_timeout_at_most() -> None:
    bench = Bench()
    bench.initialize()
    bench.add(PID, 0)
    bench.skew_ms = -1_000_000_000
    bench.begin()
    bench.wait(55)
    assert bench.state == "Ongoing"
    bench.wait(20)
    assert bench.state == "CompleteAbort"


def test_the_timeout_goes_on_over_a_restart() -> None:
    bench = Bench()
    bench.initialize()
    bench.add(PID, 0)
    bench.wait(30)
    bench.uptime_s += 300  # down
    bench.begin()
    assert bench.state == "Ongoing"
    bench.wait(11)
    assert bench.state == "CompleteAbort"


def test_a_fence_that_cannot_be_stored_raises_the_epoch_once() -> None:
    bench = Bench(level=1)
    ongoing(bench, new=False)
    bench.store_error = ErrorCode.NOT_ENOUGH_REPLICAS
    for _ in range(5):
        assert bench.initialize() == (15, -1, -1)
    assert bench.transaction.image.epoch == 1
    bench.store_error = ErrorCode.NONE
    assert bench.initialize() == (51, -1, -1)
    assert bench.initialize() == (0, PID, 2)


@pytest.mark.parametrize("level", [1, 2])
def test_a_fence_at_the_last_epoch(level: int) -> None:
    bench = Bench(level=level)
    bench.initialize()
    bench.transaction.image = bench.transaction.image._replace(epoch=32766)
    bench.add(PID, 32766)
    assert bench.initialize() == (51, -1, -1)
    assert bench.sent[-1].epoch == 32767
    assert bench.initialize() == (0, PID + 1, 0)


def test_ids_expire_when_they_are_not_used() -> None:
    bench = Bench(settings=TransactionSettings(expiration_ms=10_000_000, max_timeout_ms=2**31 - 1))
    bench.initialize()
    bench.initialize(transactional_id="open", timeout_ms=2**31 - 2)
    bench.add(PID + 1, 0, transactional_id="open")
    bench.wait(9_000)
    assert bench.coordinator.registry.transactions.keys() == {ID, "open"}
    bench.wait(5_000)
    assert bench.coordinator.registry.transactions.keys() == {"open"}
    assert bench.log[-1] == (b"\0\0\0\1t", None)
    assert describe(bench.coordinator, ID).error == 105
    assert bench.initialize(PID, 0) == (0, PID + 2, 0)
    assert bench.end(PID, 0).error == 49
    bench.begin()
    assert describe(bench.coordinator, ID).producer_id == PID + 2


# --- loading ------------------------------------------------------------------------------------------------


def test_markers_are_sent_again_after_a_restart() -> None:
    bench = Bench()
    bench.initialize()
    bench.add(PID, 0, [A, B], implicit=True)
    bench.mark_errors = {B: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    bench.end(PID, 0)
    bench.mark_errors = {}
    bench.sent.clear()
    bench.begin()
    assert bench.state == "CompleteCommit"
    assert [(one.partitions, one.epoch) for one in bench.sent] == [((A, B), 1)]


def test_a_partition_that_is_not_loaded_is_not_answered_for() -> None:
    bench = Bench()
    ongoing(bench)
    index = bench.coordinator.registry.partition_of(ID)
    bench.stores = False
    ticket = bench.ask_to_end(PID, 0)
    (store,) = bench.coordinator.registry.outbox.take_stores()
    bench.coordinator.registry.unload(index)
    assert bench.answer(ticket).error == 16
    bench.coordinator.registry.stored(store, bench.now)  # too late
    assert bench.initialize()[0] == 16
    assert bench.add(PID, 0) == 16
    assert bench.end(PID, 0).error == 16
    assert bench.coordinator.verify(ID, PID, 0, [A]) == {A: 16}
    assert describe(bench.coordinator, ID).error == 16
    bench.coordinator.registry.loading.add(index)
    assert bench.initialize()[0] == 14
    assert describe(bench.coordinator, ID).error == 14
    assert bench.coordinator.registry.size_bytes == 0


def test_values_that_make_no_sense_are_told() -> None:
    bench = Bench()
    bench.initialize()
    record = bench.coordinator.registry.transactions[ID].image
    from penstock.broker.transactions.transaction import stored_form

    value = stored_form(record, 1)
    value.transaction_status = 7
    index = bench.coordinator.registry.partition_of(ID)
    assert bench.coordinator.load(index, 3, {ID: value}, bench.now) == [ID]


def test_size_follows_what_is_kept() -> None:
    bench = Bench()
    ongoing(bench)
    open_size = bench.coordinator.registry.size_bytes
    assert open_size > 1000
    bench.end(PID, 0)
    assert bench.coordinator.registry.size_bytes < open_size


# --- describing ---------------------------------------------------------------------------------------------


def test_describe_and_list() -> None:
    bench = Bench()
    bench.initialize(transactional_id="empty")
    bench.uptime_s = 10
    bench.initialize(timeout_ms=7_000)
    bench.add(PID + 1, 0, [B, A])
    told = describe(bench.coordinator, ID)
    assert told == (0, "Ongoing", 7_000, START_MS + 10_000, PID + 1, 0, (A, B))
    assert describe(bench.coordinator, "").error == 42
    assert describe(bench.coordinator, "unknown").error == 105

    def ids(**filters: object) -> list[str]:
        return [one.id for one in listed(bench.coordinator, bench.now, **filters)]  # type: ignore[arg-type]

    assert ids() == ["empty", ID]
    assert ids(states=["Ongoing"]) == [ID]
    assert ids(states=["ongoing"]) == []
    assert ids(producer_ids=[PID]) == ["empty"]
    assert ids(longer_than_ms=0) == ["empty"]  # it has no start: longer than anything
    bench.uptime_s = 12
    assert ids(longer_than_ms=1_999) == ["empty", ID]
    assert ids(longer_than_ms=2_000) == ["empty"]
    assert ids(is_wanted=lambda name: name == ID) == [ID]
