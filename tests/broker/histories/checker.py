"""A checker for histories of concurrent clients, which finds what a correct log cannot have produced.

A history has the clients' view: writes with their outcome, reads with their result, and the final content of
every partition. `violations` compares these without regard to how the history was made.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

Place = tuple[str, int]
"""A partition: topic name and partition number."""


@dataclass
class Write:
    """One record that a producer was asked to send. Values are unique in a history.

    `offset` is the acknowledged offset, or None if the producer gave up or got no answer. `refused` is True
    if the broker refused the record with a final error: then the record must not be in the log.
    """

    producer: str
    place: Place
    value: bytes
    offset: int | None = None
    refused: bool = False


@dataclass
class Read:
    """One record that a reader received; the reads of one reader are listed in the order received."""

    reader: str
    place: Place
    offset: int
    value: bytes


@dataclass
class History:
    """The writes and reads of one run, and the final logs.

    `writes` are in the order of each producer's calls.
    """

    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    logs: dict[Place, list[tuple[int, bytes]]] = field(default_factory=dict)
    """The final content of every partition, read from its start: pairs of offset and value."""


def violations(history: History, *, once: bool = True) -> list[str]:
    """Return a line for everything in a history that a correct log cannot produce.

    With `once` the producers were idempotent, so that duplicates and reordering count, too.
    """
    found = list(_gaps(history))
    found += _lost(history)
    found += _diverging(history)
    found += _made_up(history)
    found += _skipped(history)
    if once:
        found += _duplicates(history)
        found += _disordered(history)
    return found


def _gaps(history: History) -> Iterator[str]:
    for place, log in history.logs.items():
        for (before, _), (after, _) in itertools.pairwise(log):
            if after != before + 1:
                yield f"gap: {place} goes on at {after} after {before}"


def _lost(history: History) -> Iterator[str]:
    held = {place: dict(log) for place, log in history.logs.items()}
    for write in history.writes:
        if write.offset is not None:
            value = held.get(write.place, {}).get(write.offset)
            if value != write.value:
                yield f"lost write: {write.value!r} was acknowledged at {write.offset} of {write.place}"


def _diverging(history: History) -> Iterator[str]:
    seen: dict[tuple[Place, int], bytes] = {
        (place, offset): value for place, log in history.logs.items() for offset, value in log
    }
    for read in history.reads:
        value = seen.setdefault((read.place, read.offset), read.value)
        if value != read.value:
            yield f"diverging offset: {read.offset} of {read.place} is {value!r} and {read.value!r}"


def _made_up(history: History) -> Iterator[str]:
    asked = {write.value for write in history.writes if not write.refused}
    for place, log in history.logs.items():
        for offset, value in log:
            if value not in asked:
                yield f"never written: {value!r} at {offset} of {place}"


def _skipped(history: History) -> Iterator[str]:
    """Yield a line for each record that a reader has skipped.

    A reader must get records in order without gaps, but may start again at an earlier offset.
    """
    last: dict[tuple[str, Place], int] = {}
    for read in history.reads:
        before = last.get((read.reader, read.place))
        if before is not None and read.offset > before + 1:
            yield f"gap: {read.reader} got {read.offset} of {read.place} after {before}"
        last[read.reader, read.place] = read.offset


def _duplicates(history: History) -> Iterator[str]:
    for place, log in history.logs.items():
        offsets: dict[bytes, list[int]] = defaultdict(list)
        for offset, value in log:
            offsets[value].append(offset)
        for value, where in offsets.items():
            if len(where) > 1:
                yield f"duplicate: {value!r} at {where} of {place}"


def _disordered(history: History) -> Iterator[str]:
    """Yield a line for each record that lies before an earlier one of its producer.

    The order of a producer's records in a partition must be the order of sending.
    """
    order = {write.value: (write.producer, number) for number, write in enumerate(history.writes)}
    for place, log in history.logs.items():
        last: dict[str, int] = {}
        for offset, value in log:
            if value in order:
                producer, number = order[value]
                if number < last.get(producer, -1):
                    yield f"out of order: {value!r} of {producer} at {offset} of {place}"
                last[producer] = max(number, last.get(producer, -1))
