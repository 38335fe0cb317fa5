"""Rules about polls: records that differ from the log, were aborted, were returned again, or were skipped.

No I/O. Each poll is compared with the final log, and with the consumer's previous poll.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model import TopicPartition
from penstock.testing.chaos.events import LogRecord, Moved, Polled
from penstock.testing.chaos.evidence import Evidence
from penstock.testing.chaos.findings import (
    AbortedRead,
    Finding,
    InconsistentOffsets,
    NonMonotonicPoll,
    PollSkip,
    PrecommittedRead,
    RecordPlace,
)
from penstock.testing.chaos.write_rules import shown


def poll_findings(evidence: Evidence) -> Iterator[Finding]:
    """Yield the mistakes in the polls of all consumers."""
    last: dict[tuple[int, TopicPartition], int] = {}
    first_seen: dict[RecordPlace, LogRecord] = {}
    for event in evidence.events:
        if isinstance(event, Moved):
            for tp in event.partitions:
                last.pop((event.client, tp), None)
        elif isinstance(event, Polled):
            for record in event.records:
                tp = TopicPartition(record.topic, record.partition)
                yield from _agrees(evidence, first_seen, record)
                yield from _is_settled(evidence, record, event.ends.get(tp))
                before = last.get((event.client, tp))
                if before is not None:
                    yield from _follows(evidence, event.client, tp, before, record)
                last[event.client, tp] = record.offset


def _agrees(
    evidence: Evidence, first_seen: dict[RecordPlace, LogRecord], record: LogRecord
) -> Iterator[Finding]:
    """Yield a finding if a polled record is of an aborted transaction, or differs from the log or a poll."""
    log = evidence.logs.get(TopicPartition(record.topic, record.partition))
    stored = None if log is None else log.at(record.offset)
    other = first_seen.setdefault(record.place, record)
    for found, where in ((stored, "the log has"), (other, "another poll had")):
        if found is not None and _differ(found.key, record.key) | _differ(found.value, record.value):
            text = f"{shown(record)} was read at {record.place}; {where} {shown(found)} there"
            yield InconsistentOffsets(text, (record.place,))
    if stored is not None and stored.state == "aborted":
        text = f"{shown(record)} was read at {record.place}, and its transaction was aborted"
        yield AbortedRead(f"{text}: set isolation.level=read_committed", (record.place,))


def _is_settled(evidence: Evidence, record: LogRecord, end: int | None) -> Iterator[Finding]:
    """Yield a finding if a record was polled before the commit marker of its transaction was in the log."""
    log = evidence.logs.get(TopicPartition(record.topic, record.partition))
    stored = None if log is None else log.at(record.offset)
    if stored is None or end is None or stored.state == "aborted":
        return
    if stored.state == "open" or stored.settled_at >= end:
        text = f"{shown(record)} was read at {record.place} before its transaction was committed"
        yield PrecommittedRead(f"{text}: set isolation.level=read_committed", (record.place,))


def _differ(one: object, other: object) -> bool:
    """Return True if two values of the same type differ.

    A deserialized value is never compared with bytes.
    """
    return type(one) is type(other) and one != other


def _follows(
    evidence: Evidence, client: int, tp: TopicPartition, before: int, record: LogRecord
) -> Iterator[Finding]:
    """Yield a finding if a polled record is not after offset `before`, or a committed record was skipped."""
    text = f"consumer {client} was handed {record.place} after offset {before}"
    if record.offset <= before:
        yield NonMonotonicPoll(f"{text}, with no seek or rebalance between", (record.place,))
        return
    log = evidence.logs.get(tp)
    if log is None:
        return
    skipped = [each for each in log.between(before + 1, record.offset) if each.state == "committed"]
    if skipped:
        yield PollSkip(f"{text}, and never {skipped[0].place} between", tuple(each.place for each in skipped))
