"""The input of the rules that find mistakes of an application: events, final logs, and work on records."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from penstock.model import TopicPartition
from penstock.testing.chaos.events import Event, Flow, LogRecord, Sent, Worked
from penstock.testing.chaos.findings import RecordPlace

E = TypeVar("E", bound="Event")


@dataclass
class FinalLog:
    """The final log of one partition. `records` are in the order of offsets, without transaction markers."""

    records: Sequence[LogRecord] = ()
    start: int = 0
    end: int = 0
    _offsets: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._offsets = [record.offset for record in self.records]
        if self.records:
            self.end = max(self.end, self._offsets[-1] + 1)

    def at(self, offset: int) -> LogRecord | None:
        """Return the record at an offset, or None if the log has no record at that offset."""
        index = bisect_left(self._offsets, offset)
        if index < len(self._offsets) and self._offsets[index] == offset:
            return self.records[index]
        return None

    def between(self, start: int, end: int) -> Sequence[LogRecord]:
        """Return the records from `start` (inclusive) to `end` (exclusive)."""
        return self.records[bisect_left(self._offsets, start) : bisect_left(self._offsets, end)]


@dataclass(frozen=True)
class Done:
    """A completed work on a source record: event `number` of a history, or the result at `place`."""

    number: int = -1
    place: RecordPlace | None = None
    is_transactional: bool = False


class FlowView:
    """The data of one `Flow` for the rules: the source's records, and the work done for each identity."""

    def __init__(self, flow: Flow, logs: Mapping[TopicPartition, FinalLog], worked: Sequence[Worked]) -> None:
        self.flow = flow
        self.inputs: dict[TopicPartition, list[LogRecord]] = {}
        """A dict from partition to the committed records of the source, without those whose identity is None.
        """
        self.identities: dict[RecordPlace, object] = {}
        self.done: defaultdict[object, list[Done]] = defaultdict(list)
        """A dict from identity to the work: committed records in the sinks, or calls of `History.work` if
        there are no sinks."""
        for tp, log in sorted(logs.items()):
            if tp.topic == flow.source:
                visible = [record for record in log.records if record.state == "committed"]
                concerned = [record for record in visible if self._identify(record) is not None]
                self.inputs[tp] = concerned
        for tp, log in sorted(logs.items()):
            if tp.topic in flow.sinks:
                for record in log.records:
                    identity = flow.sink_of(record) if record.state == "committed" else None
                    if identity is not None:
                        self.done[identity].append(Done(-1, record.place, record.settled_at >= 0))
        if not flow.sinks:
            for each in worked:
                found = self.identities.get(each.place)
                if found is not None:
                    self.done[found].append(Done(each.number))

    def _identify(self, record: LogRecord) -> object:
        identity = self.flow.of(record)
        if identity is not None:
            self.identities[record.place] = identity
        return identity


class Evidence:
    """The input of the rules: the events of a history, the final logs, and the flows to check."""

    def __init__(
        self, events: Sequence[Event], logs: Mapping[TopicPartition, FinalLog], flows: Sequence[Flow]
    ) -> None:
        self.events = sorted(events, key=lambda event: event.number)
        self.logs = logs
        self.flows = [FlowView(flow, logs, list(self.of(Worked))) for flow in flows]

    def of(self, kind: type[E]) -> Iterator[E]:
        """Yield the events of one class, in order."""
        return (event for event in self.events if isinstance(event, kind))

    def is_done(self, sent: Sent) -> bool:
        """Return True if a sink has another record with the identity of `sent`, such as a dead letter."""
        for view in self.flows:
            if sent.topic in view.flow.sinks:
                record: Any = sent
                identity = view.flow.sink_of(record)
                if identity is not None and view.done.get(identity):
                    return True
        return False
