"""Rules about writes: lost, duplicate, reordered and failed sends, and transactions left open.

No I/O: each rule gets the events of a history and the final logs, and yields findings. The rules are those of
Jepsen's Kafka workload, applied to one application and to the logs themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from penstock.model import TopicPartition
from penstock.printable import printable
from penstock.testing.chaos.events import Content, Sent, TransactionEnded
from penstock.testing.chaos.evidence import Evidence
from penstock.testing.chaos.findings import (
    DuplicateWrite,
    Finding,
    InconsistentOffsets,
    LostWrite,
    RecordPlace,
    ReorderedWrite,
    UnendedTransaction,
    UnheededFailure,
)

SHOWN_MAX = 40
"""The greatest number of characters of a key or value in the text of a finding."""


def write_findings(evidence: Evidence, *, writes_once: bool) -> Iterator[Finding]:
    """Yield the mistakes in the writes; with `writes_once`, duplicates of one send are mistakes, too."""
    yield from _acknowledged(evidence)
    yield from _failed(evidence)
    if writes_once:
        yield from _copies(evidence)
    yield from _order(evidence)
    yield from _open(evidence)


def _acknowledged(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each acknowledged record that the log does not hold at the acknowledged offset."""
    for sent in evidence.of(Sent):
        outcome, offset, _ = sent.delivery()
        log = evidence.logs.get(TopicPartition(sent.topic, sent.partition))
        if outcome != "acknowledged" or offset < 0 or log is None or offset < log.start:
            continue
        place = RecordPlace(sent.topic, sent.partition, offset)
        found = log.at(offset)
        if found is None:
            yield LostWrite(f"{shown(sent)} was acknowledged at {place}; the log does not hold it", (place,))
        elif (found.key, found.value) != (sent.key, sent.value):
            text = f"{shown(sent)} was acknowledged at {place}; the log has {shown(found)} there"
            yield InconsistentOffsets(text, (place,))


def _failed(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each failed send that never reached the log, unless its transaction was aborted."""
    there = Counter(
        (record.topic, record.key, record.value)
        for log in evidence.logs.values()
        for record in log.records
        if record.state != "aborted"
    )
    ended = {(each.client, each.transaction): each.is_committed for each in evidence.of(TransactionEnded)}
    for sent in evidence.of(Sent):
        outcome, _, reason = sent.delivery()
        if outcome == "acknowledged" or TopicPartition(sent.topic, sent.partition) not in evidence.logs:
            continue
        if sent.transaction and not ended.get((sent.client, sent.transaction)):
            continue
        if there[sent.topic, sent.key, sent.value] or evidence.is_done(sent):
            continue
        what = f"failed ({reason})" if outcome == "failed" else "was never known to have arrived"
        text = f"{shown(sent)} to {printable(sent.topic)}-{sent.partition} {what}, and it is in no log"
        yield UnheededFailure(text)


def _copies(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each record that the logs hold more often than it was sent."""
    sends = Counter(sent.content for sent in evidence.of(Sent))
    copies: defaultdict[Content, list[RecordPlace]] = defaultdict(list)
    for log in evidence.logs.values():
        for record in log.records:
            if record.state != "aborted" and record.content in sends:
                copies[record.content].append(record.place)
    for content, count in sends.items():
        places = copies[content]
        if len(places) > count:
            times = "once" if count == 1 else f"{count} times"
            listed = ", ".join(map(str, places[:5]))
            text = (
                f"{_pair(content[2], content[3])} was sent {times}, and stored {len(places)} times: {listed}"
            )
            yield DuplicateWrite(text, tuple(places))


def _order(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for two records of one producer that are stored in a partition in reverse order."""
    runs: defaultdict[tuple[int, str, int], list[tuple[Sent, int]]] = defaultdict(list)
    for sent in evidence.of(Sent):
        outcome, offset, _ = sent.delivery()
        if outcome == "acknowledged" and offset >= 0:
            runs[sent.client, sent.topic, sent.partition].append((sent, offset))
    for (_, topic, partition), run in runs.items():
        for (first, one), (second, other) in pairwise(run):
            if other < one:
                text = f"{shown(first)} was sent before {shown(second)}, and stored behind it"
                yield ReorderedWrite(
                    text, (RecordPlace(topic, partition, one), RecordPlace(topic, partition, other))
                )


def _open(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each transaction that is open when the application has ended."""
    for log in evidence.logs.values():
        seen = set()
        for record in log.records:
            if record.state == "open" and record.producer_id not in seen:
                seen.add(record.producer_id)
                text = f"a transaction of producer id {record.producer_id} is open from {record.place} on"
                yield UnendedTransaction(f"{text}; committed records behind it are not read", (record.place,))


def shown(record: object) -> str:
    """Return the key and value of a record as short text."""
    return _pair(getattr(record, "key", None), getattr(record, "value", None))


def _pair(key: object, value: object) -> str:
    return f"(key {_short(key)}, value {_short(value)})"


def _short(value: object) -> str:
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    text = "null" if value is None else printable(text)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
