"""Rules about work: lost, doubled or reordered work, work after its offset's commit, or after a rebalance.

No I/O. The work on a record of a flow's source is a committed record in a sink, or a call of `History.work`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from penstock.model import TopicPartition
from penstock.printable import printable
from penstock.testing.chaos.events import CommitRefused, Committed, LogRecord, Moved, Polled, Sent, Worked
from penstock.testing.chaos.evidence import Done, Evidence, FlowView
from penstock.testing.chaos.findings import (
    DoubledWork,
    Finding,
    LostWork,
    OffsetAheadOfWork,
    OffsetsOutsideTransaction,
    RecordPlace,
    ReorderedWork,
    UndoneWork,
    WorkAfterRebalance,
)
from penstock.testing.chaos.write_rules import shown


def work_findings(
    evidence: Evidence, *, at_least_once: bool, exactly_once: bool, ordered: bool
) -> Iterator[Finding]:
    """Yield findings for work on records that breaks one of the given guarantees."""
    for view in evidence.flows:
        if at_least_once or exactly_once:
            yield from _commits(evidence, view, exactly_once)
            yield from _missing(evidence, view)
            yield from _after_rebalance(evidence, view)
        if exactly_once:
            yield from _doubled(view)
        if ordered:
            yield from _order(view)


def _of_flow(evidence: Evidence, view: FlowView) -> Iterator[Committed]:
    for event in evidence.of(Committed):
        if view.flow.group in (None, event.group):
            yield event


def _commits(evidence: Evidence, view: FlowView, exactly_once: bool) -> Iterator[Finding]:
    """Yield findings for offsets committed before the work, or outside of the transaction of the work."""
    reached: dict[TopicPartition, int] = {}
    for event in _of_flow(evidence, view):
        for tp, offset in event.offsets.items():
            if tp not in view.inputs:
                continue
            log = evidence.logs[tp]
            start, reached[tp] = reached.get(tp, log.start), offset
            covered = [each for each in log.between(start, offset) if each.place in view.identities]
            ahead = [record for record in covered if not _was_done(view, record, event)]
            where = f"group {printable(event.group)} committed {tp} at {offset}"
            if ahead:
                text = f"{where} before the work on {ahead[0].place} {shown(ahead[0])} was done"
                yield OffsetAheadOfWork(text, tuple(record.place for record in ahead))
            elif exactly_once and not event.in_transaction:
                outside = [record for record in covered if _in_transactions(view, record)]
                if outside:
                    text = f"{where} by itself; the work on {outside[0].place} was in a transaction"
                    yield OffsetsOutsideTransaction(text, tuple(record.place for record in outside))


def _was_done(view: FlowView, record: LogRecord, event: Committed) -> bool:
    done = view.done.get(view.identities[record.place], [])
    return any(_is_before(each, event) for each in done)


def _is_before(done: Done, event: Committed) -> bool:
    if done.place is None:
        return done.number < event.number
    if event.ends is None:
        return True
    end = event.ends.get(TopicPartition(done.place.topic, done.place.partition))
    return end is not None and done.place.offset < end


def _in_transactions(view: FlowView, record: LogRecord) -> bool:
    return any(each.is_transactional for each in view.done.get(view.identities[record.place], []))


def _missing(evidence: Evidence, view: FlowView) -> Iterator[Finding]:
    """Yield findings for records without work: LostWork if a committed offset passed it, else UndoneWork."""
    final: dict[TopicPartition, int] = {}
    for event in _of_flow(evidence, view):
        final.update(event.offsets)
    left = Counter({identity: len(done) for identity, done in view.done.items()})
    for tp, records in view.inputs.items():
        for record in records:
            identity = view.identities[record.place]
            left[identity] -= 1
            if left[identity] >= 0:
                continue
            offset = final.get(tp)
            what = f"no work was done on {record.place} {shown(record)}"
            if offset is not None and record.offset < offset:
                yield LostWork(f"{what}, and the offset {offset} is committed", (record.place,))
            else:
                text = "nothing" if offset is None else f"offset {offset}"
                yield UndoneWork(f"{what} by the end, and {text} is committed of {tp}", (record.place,))


def _doubled(view: FlowView) -> Iterator[Finding]:
    inputs = Counter(view.identities.values())
    places: dict[object, RecordPlace] = {}
    for place, identity in view.identities.items():
        places.setdefault(identity, place)
    for identity, done in view.done.items():
        if identity in places and len(done) > inputs[identity]:
            outcomes = [each.place for each in done if each.place is not None]
            listed = f": {', '.join(map(str, outcomes[:5]))}" if outcomes else ""
            text = f"the work on {places[identity]} was done {len(done)} times{listed}"
            yield DoubledWork(text, (places[identity], *outcomes))


def _order(view: FlowView) -> Iterator[Finding]:
    """Yield findings for records of one partition whose results in a sink partition have another order."""
    for records in view.inputs.values():
        rows: dict[TopicPartition | None, list[tuple[LogRecord, Done]]] = {}
        for record in records:
            done = view.done.get(view.identities[record.place])
            if done:
                first = done[0]
                sink = first.place and TopicPartition(first.place.topic, first.place.partition)
                rows.setdefault(sink, []).append((record, first))
        for row in rows.values():
            for (one, before), (other, behind) in pairwise(row):
                if _rank(behind) < _rank(before):
                    text = f"the work on {other.place} was done before that on {one.place}"
                    yield ReorderedWork(text, (one.place, other.place))


def _rank(done: Done) -> int:
    return done.number if done.place is None else done.place.offset


def _after_rebalance(evidence: Evidence, view: FlowView) -> Iterator[Finding]:
    """Yield findings for work that a consumer does between a refused commit and its next poll."""
    by_identity: dict[object, RecordPlace] = {identity: place for place, identity in view.identities.items()}
    holders: dict[RecordPlace, set[int]] = {}
    refused: dict[int, set[RecordPlace]] = {}
    """A dict from consumer to the records that it had polled before its commit was refused. An entry is
    removed when the consumer polls again, or its position is moved."""
    for event in evidence.events:
        if isinstance(event, (Polled, Moved)):
            refused.pop(event.client, None)
        if isinstance(event, Polled):
            for record in event.records:
                holders.setdefault(record.place, set()).add(event.client)
        elif isinstance(event, CommitRefused):
            refused[event.client] = {place for place, clients in holders.items() if event.client in clients}
        elif isinstance(event, (Sent, Worked)) and refused:
            place = _place_of_work(view, by_identity, event)
            clients = holders.get(place, set()) if place is not None else set()
            if place is not None and clients and all(place in refused.get(client, ()) for client in clients):
                text = f"the group had gone on without a consumer, which still worked on {place}"
                yield WorkAfterRebalance(text, (place,))


def _place_of_work(
    view: FlowView, by_identity: Mapping[object, RecordPlace], event: Sent | Worked
) -> RecordPlace | None:
    if isinstance(event, Worked):
        return event.place if event.place in view.identities and not view.flow.sinks else None
    if event.topic not in view.flow.sinks:
        return None
    sent: object = event
    return by_identity.get(view.flow.sink_of(sent))
