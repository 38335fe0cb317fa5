"""Tests of the checks for histories: each finds its anomaly in a small history, none in a correct one."""

from __future__ import annotations

from collections.abc import Callable

from for_each import for_each
from histories.clients import Row
from histories.page import CHECK_TEXTS, LOOKED_INTO, PAGE, entries, page
from histories.rules import ALLOWED, CHECKS, MORE_CHECKS, Story, Transaction, anomalies
from penstock import TopicPartition
from penstock.testing.chaos.events import LogRecord
from penstock.testing.chaos.evidence import FinalLog

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def story(*logs: list[tuple[int, bytes, str]]) -> Story:
    """Return a history whose partitions contain these records at its end: offset, value and state."""
    made = Story()
    for partition, rows in enumerate(logs):
        records = [
            LogRecord("t", partition, offset, None, value, state=state) for offset, value, state in rows
        ]  # type: ignore[arg-type]
        made.history.logs[TopicPartition("t", partition)] = FinalLog(records)
    return made


def sent(made: Story, value: bytes, offset: int, *, client: int = 1, transaction: int = 0) -> None:
    made.history.record.sent(
        "t", 0, value, client=client, transaction=transaction, delivery=lambda: ("acknowledged", offset, "")
    )


def polled(made: Story, *rows: tuple[int, bytes], client: int = 9) -> None:
    made.history.record.polled([Row("t", 0, offset, None, value) for offset, value in rows], client)


def lost_write() -> Story:
    made = story([])
    sent(made, b"a", 0)
    return made


def aborted_read() -> Story:
    made = story([(0, b"a", "aborted")])
    polled(made, (0, b"a"))
    return made


def precommitted_read() -> Story:
    made = story([(0, b"a", "committed")])
    made.transactions.append(Transaction("x", [(T0, b"a")], committing_s=5.0, is_committed=True))
    made.seen_s[T0, 0] = 4.0
    return made


def inconsistent_offsets() -> Story:
    made = story([(0, b"a", "committed")])
    polled(made, (0, b"b"))
    return made


def duplicate() -> Story:
    made = story([(0, b"a", "committed"), (1, b"a", "committed")])
    sent(made, b"a", 0)
    return made


def unseen() -> Story:
    made = story([(0, b"a", "committed"), (1, b"b", "committed")])
    made.readers["r"] = {(T0, 0)}
    return made


def poll_skip() -> Story:
    made = story([(0, b"a", "committed"), (1, b"b", "committed"), (2, b"c", "committed")])
    polled(made, (0, b"a"))
    polled(made, (2, b"c"))
    return made


def nonmonotonic_poll() -> Story:
    made = story([(0, b"a", "committed"), (1, b"b", "committed")])
    polled(made, (1, b"b"))
    polled(made, (0, b"a"))
    return made


def int_poll_skip() -> Story:
    made = story([(0, b"a", "committed"), (1, b"b", "committed"), (2, b"c", "committed")])
    polled(made, (0, b"a"), (2, b"c"))
    return made


def int_nonmonotonic_poll() -> Story:
    made = story([(0, b"a", "committed"), (1, b"b", "committed")])
    polled(made, (1, b"b"), (0, b"a"))
    return made


def nonmonotonic_send(transaction: int = 0) -> Story:
    made = story([(0, b"b", "committed"), (1, b"a", "committed")])
    sent(made, b"a", 1, transaction=transaction)
    sent(made, b"b", 0, transaction=transaction)
    return made


def int_nonmonotonic_send() -> Story:
    return nonmonotonic_send(transaction=1)


def int_send_skip() -> Story:
    made = story([(0, b"a", "committed"), (1, b"x", "committed"), (2, b"b", "committed")])
    made.transactions.append(Transaction("x", [(T0, b"a"), (T0, b"b")], committing_s=0, is_committed=True))
    return made


def hanging_transaction() -> Story:
    return story([(0, b"a", "open")])


def divided_transaction() -> Story:
    made = story([(0, b"a", "committed")], [(0, b"b", "aborted")])
    made.transactions.append(Transaction("x", [(T0, b"a"), (T1, b"b")], committing_s=0))
    return made


def g1c() -> Story:
    made = story([(0, b"a", "committed")], [(0, b"b", "committed")])
    made.transactions.append(Transaction("x", [(T0, b"a")], [(T1, 0)], 0, True))
    made.transactions.append(Transaction("y", [(T1, b"b")], [(T0, 0)], 0, True))
    return made


def g0() -> Story:
    made = story(
        [(0, b"a", "committed"), (1, b"b", "committed")], [(0, b"c", "committed"), (1, b"d", "committed")]
    )
    made.transactions.append(Transaction("x", [(T0, b"a"), (T1, b"d")], committing_s=0, is_committed=True))
    made.transactions.append(Transaction("y", [(T1, b"c"), (T0, b"b")], committing_s=0, is_committed=True))
    return made


BROKEN: dict[str, Callable[[], Story]] = {
    "lost-write": lost_write,
    "aborted-read": aborted_read,
    "precommitted-read": precommitted_read,
    "inconsistent-offsets": inconsistent_offsets,
    "duplicate": duplicate,
    "unseen": unseen,
    "poll-skip": poll_skip,
    "nonmonotonic-poll": nonmonotonic_poll,
    "int-poll-skip": int_poll_skip,
    "int-nonmonotonic-poll": int_nonmonotonic_poll,
    "nonmonotonic-send": nonmonotonic_send,
    "int-nonmonotonic-send": int_nonmonotonic_send,
    "int-send-skip": int_send_skip,
    "hanging-transaction": hanging_transaction,
    "divided-transaction": divided_transaction,
    "G1c": g1c,
    "G0": g0,
}


@for_each(BROKEN)
def test_the_smallest_story_that_breaks_a_rule_breaks_that_one(name: str) -> None:
    assert set(anomalies(BROKEN[name]())) == {name}


def test_a_right_story_has_nothing() -> None:
    made = story([(0, b"a", "committed"), (2, b"b", "aborted"), (4, b"c", "committed")])
    sent(made, b"a", 0)
    sent(made, b"c", 4)
    polled(made, (0, b"a"), (4, b"c"))
    made.readers["r"] = {(T0, 0), (T0, 4)}
    made.transactions.append(Transaction("x", [(T0, b"b")], is_committed=False))
    made.transactions.append(Transaction("y", [(T0, b"c")], [(T0, 0)], 1.0, True))
    made.seen_s[T0, 4] = 2.0
    assert anomalies(made) == {}


def test_what_was_deleted_need_not_be_read_at_the_end() -> None:
    made = story([(0, b"a", "committed"), (1, b"b", "committed"), (2, b"c", "committed")])
    sent(made, b"a", 0)
    made.starts[T0] = 1
    made.readers["r"] = {(T0, 1), (T0, 2)}
    assert anomalies(made) == {}
    made.readers["r"] = {(T0, 2)}
    assert set(anomalies(made)) == {"unseen"}


def test_every_check_has_a_story_and_words() -> None:
    names = {*CHECKS, *MORE_CHECKS, *ALLOWED}
    assert len(CHECKS) == 13
    assert set(BROKEN) == names == set(CHECK_TEXTS)


def test_the_page_is_what_the_ledger_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(entries())


def test_every_anomaly_was_looked_into() -> None:
    found = {(each.target, each.seed, name) for each in entries() for name in each.anomalies}
    assert found == set(LOOKED_INTO)
