"""Tests of the checker of chaos histories, with a minimal history for each kind of finding.

A second history lacks the finding.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from penstock.errors import ConfigError
from penstock.model import TopicPartition
from penstock.testing.chaos import Finding, History, HistoryError, findings
from penstock.testing.chaos.events import LogRecord, Outcome, State
from penstock.testing.chaos.evidence import FinalLog

ORDERS, BILLS = TopicPartition("orders", 0), TopicPartition("bills", 0)


def log(
    tp: TopicPartition, keys: Sequence[str], *, state: State = "committed", settled_at: int = -1
) -> FinalLog:
    """Return a log with one record for each key, at offsets 0, 1, 2 ...; "." leaves its offset empty."""
    records = [
        LogRecord(*tp, offset, key.encode(), b"v", state=state, settled_at=settled_at)
        for offset, key in enumerate(keys)
        if key != "."
    ]
    return FinalLog(records, 0, len(keys))


def delivery(outcome: Outcome, offset: int = -1, reason: str = "") -> Callable[[], tuple[Outcome, int, str]]:
    return lambda: (outcome, offset, reason)


def pipeline(orders: Sequence[str], bills: Sequence[str]) -> History:
    history = History()
    history.flow("orders", "bills", group="billing")
    history.logs = {ORDERS: log(ORDERS, orders), BILLS: log(BILLS, bills)}
    return history


def names(history: History, **promises: Any) -> list[str]:
    return [finding.name for finding in history.findings(**promises)]


def test_a_right_history_has_no_findings() -> None:
    history = pipeline("abc", "abc")
    for offset, key in enumerate("abc"):
        history.record.sent("bills", 0, b"v", key.encode(), delivery=delivery("acknowledged", offset))
        history.record.committed("billing", {ORDERS: offset + 1}, ends={BILLS: offset + 1})
    history.record.polled(history.logs[ORDERS].records, client=1)
    assert history.findings(exactly_once=True, ordered=True) == []
    history.check(exactly_once=True, ordered=True)


# --- writes ----------------------------------------------------------------------------------------------


def test_an_acknowledged_record_that_the_log_does_not_hold() -> None:
    history = History()
    history.logs = {ORDERS: log(ORDERS, "a.")}
    history.record.sent("orders", 0, b"v", b"a", delivery=delivery("acknowledged", 0))
    assert names(history) == []
    history.record.sent("orders", 0, b"v", b"b", delivery=delivery("acknowledged", 1))
    (finding,) = history.findings()
    assert finding.name == "LostWrite"
    assert [str(place) for place in finding.places] == ["orders-0@1"]
    assert "key b" in str(finding)


def test_a_record_that_retention_has_removed_is_not_lost() -> None:
    history = History()
    history.logs = {ORDERS: FinalLog([], start=5, end=5)}
    history.record.sent("orders", 0, b"v", b"a", delivery=delivery("acknowledged", 0))
    assert names(history) == []


def test_another_record_at_the_acknowledged_offset() -> None:
    history = History()
    history.logs = {ORDERS: log(ORDERS, "x")}
    history.record.sent("orders", 0, b"v", b"a", delivery=delivery("acknowledged", 0))
    assert names(history) == ["InconsistentOffsets"]


def test_a_failure_that_is_not_made_good() -> None:
    history = History()
    history.logs = {ORDERS: log(ORDERS, "")}
    history.record.sent("orders", 0, b"v", b"a", delivery=delivery("failed", reason="too large"))
    (finding,) = history.findings()
    assert finding.name == "UnheededFailure"
    assert "failed (too large)" in finding.text
    # Sent once more, with success.
    history.logs = {ORDERS: log(ORDERS, "a")}
    assert names(history) == []


def test_a_record_that_was_never_flushed() -> None:
    history = History()
    history.logs = {ORDERS: log(ORDERS, "")}
    history.record.sent("orders", 0, b"v", b"a")
    (finding,) = history.findings()
    assert finding.name == "UnheededFailure"
    assert "never known" in finding.text


def test_a_failure_within_a_transaction_is_made_good_by_its_abort() -> None:
    history = History()
    history.logs = {ORDERS: log(ORDERS, "")}
    history.record.sent("orders", 0, b"v", b"a", delivery=delivery("failed"), client=1, transaction=1)
    history.record.transaction_ended(1, 1, is_committed=False)
    assert names(history) == []
    history.record.sent("orders", 0, b"v", b"b", delivery=delivery("failed"), client=1, transaction=2)
    history.record.transaction_ended(1, 2, is_committed=True)
    assert names(history) == ["UnheededFailure"]


def test_a_dead_letter_makes_a_failure_good() -> None:
    dead = TopicPartition("dead", 0)
    history = History()
    history.flow("orders", ("bills", "dead"))
    history.logs = {ORDERS: log(ORDERS, "a"), BILLS: log(BILLS, ""), dead: log(dead, "a")}
    history.record.sent("bills", 0, b"other", b"a", delivery=delivery("failed"))
    assert names(history) == []


def test_one_send_stored_twice() -> None:
    history = History()
    history.logs = {ORDERS: log(ORDERS, "aa")}
    history.record.sent("orders", 0, b"v", b"a", delivery=delivery("acknowledged", 1))
    assert names(history) == []
    assert names(history, writes_once=True) == ["DuplicateWrite"]
    assert names(history, exactly_once=True) == ["DuplicateWrite"]
    history.record.sent("orders", 0, b"v", b"a", delivery=delivery("acknowledged", 0), client=2)
    assert names(history, writes_once=True) == []


def test_sends_of_one_producer_stored_in_the_other_order() -> None:
    history = History()
    history.logs = {ORDERS: log(ORDERS, "ab")}
    history.record.sent("orders", 0, b"v", b"b", delivery=delivery("acknowledged", 1), client=1)
    history.record.sent("orders", 0, b"v", b"a", delivery=delivery("acknowledged", 0), client=2)
    assert names(history) == []
    history.record.sent("orders", 0, b"v", b"a", delivery=delivery("acknowledged", 0), client=1)
    assert names(history) == ["ReorderedWrite"]


def test_a_transaction_that_is_left_open() -> None:
    history = History()
    history.logs = {ORDERS: log(ORDERS, "ab", state="open")}
    assert names(history) == ["UnendedTransaction"]


# --- polls -----------------------------------------------------------------------------------------------


def test_polls_that_go_back_or_skip() -> None:
    def polls(*offsets: int, moved: bool = False) -> list[str]:
        history = History()
        history.logs = {ORDERS: log(ORDERS, "ab.d")}
        for offset in offsets:
            if moved:
                history.record.moved([ORDERS], client=1)
            history.record.polled([LogRecord(*ORDERS, offset, b"abcd"[offset : offset + 1], b"v")], client=1)
        return names(history)

    assert polls(0, 1, 3) == []  # offset 2 is the marker of a transaction
    assert polls(0, 3) == ["PollSkip"]
    assert polls(1, 0) == ["NonMonotonicPoll"]
    assert polls(1, 1) == ["NonMonotonicPoll"]
    assert polls(1, 0, 3, moved=True) == []


def test_a_skip_over_what_is_aborted_is_none() -> None:
    history = History()
    rows = [*log(ORDERS, "a").records, LogRecord(*ORDERS, 1, b"b", b"v", state="aborted")]
    history.logs = {ORDERS: FinalLog([*rows, LogRecord(*ORDERS, 2, b"c", b"v")])}
    history.record.polled([LogRecord(*ORDERS, 0, b"a", b"v"), LogRecord(*ORDERS, 2, b"c", b"v")])
    assert names(history) == []
    history.record.polled([rows[1]], client=2)
    (finding,) = history.findings()
    assert finding.name == "AbortedRead"
    assert "isolation.level" in finding.text


def test_a_poll_before_the_transaction_was_committed() -> None:
    def polled(end: int | None, state: State = "committed") -> list[str]:
        history = History()
        history.logs = {ORDERS: log(ORDERS, "ab", state=state, settled_at=2 if state == "committed" else -1)}
        history.record.end_of = lambda tp: end
        history.record.polled(history.logs[ORDERS].records[:1], client=1)
        return names(history)

    assert polled(2) == ["PrecommittedRead"]
    assert polled(3) == []
    assert polled(None) == []
    assert polled(2, "open") == ["PrecommittedRead", "UnendedTransaction"]
    assert polled(2, "aborted") == ["AbortedRead"]


def test_two_polls_that_differ() -> None:
    history = History()
    history.record.polled([LogRecord(*ORDERS, 0, b"a", b"v")], client=1)
    history.record.polled([LogRecord(*ORDERS, 0, b"a", b"v")], client=2)
    assert names(history) == []
    history.record.polled([LogRecord(*ORDERS, 0, b"a", b"w")], client=3)
    assert names(history) == ["InconsistentOffsets"]
    # What a deserializer returns is not compared with bytes.
    history = History()
    history.logs = {ORDERS: log(ORDERS, "a")}
    history.record.polled([LogRecord(*ORDERS, 0, "a", "v")], client=1)
    assert names(history) == []


# --- work ------------------------------------------------------------------------------------------------


def test_offsets_ahead_of_the_work() -> None:
    history = pipeline("abc", "abc")
    history.record.committed("billing", {ORDERS: 2}, ends={BILLS: 1})
    history.record.committed("others", {ORDERS: 3}, ends={BILLS: 0})
    (finding,) = history.findings()
    assert finding.name == "OffsetAheadOfWork"
    assert [str(place) for place in finding.places] == ["orders-0@1"]
    assert "orders-0 at 2" in finding.text
    assert history.findings(at_least_once=False) == []


def test_offsets_ahead_of_calls() -> None:
    history = History()
    history.flow("orders", group="billing")
    history.logs = {ORDERS: log(ORDERS, "ab")}
    history.work(history.logs[ORDERS].records[0])
    history.record.committed("billing", {ORDERS: 1})
    history.work(history.logs[ORDERS].records[1])
    history.record.committed("billing", {ORDERS: 2})
    assert names(history, exactly_once=True, ordered=True) == []
    history = History()
    history.flow("orders", group="billing")
    history.logs = {ORDERS: log(ORDERS, "ab")}
    history.work(history.logs[ORDERS].records[1])
    history.record.committed("billing", {ORDERS: 2})
    history.work(history.logs[ORDERS].records[0])
    assert names(history) == ["OffsetAheadOfWork"]
    assert names(history, ordered=True) == ["OffsetAheadOfWork", "ReorderedWork"]


def test_work_that_was_never_done() -> None:
    history = pipeline("abc", "ac")
    assert names(history) == ["UndoneWork"]
    history.record.committed("billing", {ORDERS: 3})
    assert names(history) == ["OffsetAheadOfWork", "LostWork"]
    assert names(history, at_least_once=False) == []


def test_work_that_was_done_twice() -> None:
    history = pipeline("ab", "aab")
    assert names(history) == []
    (finding,) = history.findings(exactly_once=True)
    assert finding.name == "DoubledWork"
    assert [str(place) for place in finding.places] == ["orders-0@0", "bills-0@0", "bills-0@1"]
    # Two orders of one key are to be billed twice.
    assert names(pipeline("aab", "aab"), exactly_once=True) == []
    assert names(pipeline("aab", "ab")) == ["UndoneWork"]


def test_work_of_an_aborted_transaction_does_not_count() -> None:
    history = pipeline("a", "")
    aborted = LogRecord(*BILLS, 0, b"a", b"v", state="aborted", settled_at=1)
    history.logs[BILLS] = FinalLog([aborted])
    assert names(history) == ["UndoneWork"]
    history.logs[BILLS] = FinalLog([aborted, LogRecord(*BILLS, 2, b"a", b"v", settled_at=3)])
    assert names(history, exactly_once=True) == []


def test_work_in_another_order() -> None:
    assert names(pipeline("abc", "acb")) == []
    assert names(pipeline("abc", "acb"), ordered=True) == ["ReorderedWork"]
    assert names(pipeline("abc", "ababc"), ordered=True) == []  # what comes again counts the first time


def test_offsets_outside_of_the_transaction() -> None:
    history = pipeline("a", "")
    history.logs[BILLS] = log(BILLS, "a", settled_at=1)
    history.record.committed("billing", {ORDERS: 1}, ends={BILLS: 2}, in_transaction=True)
    assert names(history, exactly_once=True) == []
    history.record.committed("billing", {ORDERS: 0})
    history.record.committed("billing", {ORDERS: 1}, ends={BILLS: 2})
    assert names(history) == []
    assert names(history, exactly_once=True) == ["OffsetsOutsideTransaction"]


def test_work_after_the_group_has_gone_on() -> None:
    def went_on(*, polls_again: bool, other_has_it: bool = False) -> list[str]:
        history = pipeline("ab", "ab")
        history.record.polled(history.logs[ORDERS].records, client=1)
        history.record.sent("bills", 0, b"v", b"a", client=9, delivery=delivery("acknowledged", 0))
        history.record.commit_refused(22, client=1)
        if polls_again:
            history.record.moved([ORDERS], client=1)
        if other_has_it:
            history.record.polled(history.logs[ORDERS].records, client=2)
        history.record.sent("bills", 0, b"v", b"b", client=9, delivery=delivery("acknowledged", 1))
        return names(history)

    assert went_on(polls_again=False) == ["WorkAfterRebalance"]
    assert went_on(polls_again=True) == []
    assert went_on(polls_again=False, other_has_it=True) == []


# --- as a whole ------------------------------------------------------------------------------------------


def test_what_concerns_nothing_is_left_out() -> None:
    history = History()
    history.flow("orders", "bills", of=lambda record: None if record.key == b"x" else record.key)
    history.logs = {ORDERS: log(ORDERS, "xa"), BILLS: log(BILLS, "ax")}
    assert names(history, exactly_once=True) == []


def test_records_without_keys_are_known_by_their_values() -> None:
    history = History()
    history.flow("orders", "bills")
    history.logs = {
        ORDERS: FinalLog([LogRecord(*ORDERS, 0, None, b"one"), LogRecord(*ORDERS, 1, None, b"two")]),
        BILLS: FinalLog([LogRecord(*BILLS, 0, None, b"one")]),
    }
    (finding,) = history.findings()
    assert finding.places == (("orders", 0, 1),)


def test_the_gravest_comes_first_and_the_error_lists_ten() -> None:
    history = pipeline([str(number) for number in range(20)], "")
    history.record.sent("bills", 0, b"v", b"0", delivery=delivery("acknowledged", 0))
    with pytest.raises(HistoryError) as raised:
        history.check()
    assert isinstance(raised.value, AssertionError)
    assert raised.value.findings[0].name == "LostWrite"
    assert str(raised.value).count("\n") == 10
    assert str(raised.value).endswith("and 11 more findings")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_every_kind_has_its_rank_and_its_sentence() -> None:
    kinds = {kind for kind in vars(findings).values() if isinstance(kind, type) and issubclass(kind, Finding)}
    assert kinds - {Finding} == set(findings.GRAVITY)
    assert all(kind.__doc__ for kind in kinds)


def test_mistakes() -> None:
    history = History()
    with pytest.raises(ConfigError, match="no name of a topic"):
        history.flow("orders", ["bills", 7])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="of='key': of is a function"):
        history.flow("orders", "bills", of="key")  # type: ignore[arg-type]


def test_a_flow_from_nowhere_finds_nothing_and_says_so() -> None:
    history = pipeline("a", "a")
    history.flow("oders", "bills")
    with pytest.raises(ConfigError, match=r"no log of topic 'oders': .*; did you mean orders"):
        history.findings()


def test_a_history_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.testing.chaos import recorder as module

    monkeypatch.setattr(module, "EVENTS_MAX", 2)
    history = History()
    history.record.polled([LogRecord(*ORDERS, 0, b"a", b"v"), LogRecord(*ORDERS, 1, b"a", b"v")])
    with pytest.raises(ConfigError, match="2 events are kept"):
        history.record.commit_refused(22)
