"""Histories of concurrent clients, and what may not be in them.

A history is what clients believe: writes with their outcome, reads with what was found, and at the end
the whole of every partition. `violations` compares them; it knows nothing of how the history came about.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

Place = tuple[str, int]
"""Topic and partition."""


@dataclass
class Write:
    """One record that a producer was asked to send. Values are unique in a history.

    `offset` is what was acknowledged, None where the producer gave up or never heard. `refused` says that
    the broker said no for good, so that the record must not be there.
    """

    producer: str
    place: Place
    value: bytes
    offset: int | None = None
    refused: bool = False


@dataclass
class Read:
    """One record that a reader was given; a reader's reads are in the order it got them."""

    reader: str
    place: Place
    offset: int
    value: bytes


@dataclass
class History:
    """What happened. `writes` are in the order of each producer's calls."""

    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    logs: dict[Place, list[tuple[int, bytes]]] = field(default_factory=dict)
    """Every partition at the end: offsets and values, as read from its beginning."""


def violations(history: History, *, once: bool = True) -> list[str]:
    """Everything in a history that a log may not do. `once` says that producers were idempotent."""
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
    """A reader that reads on gets every record, in order; it may begin again at an earlier one."""
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
    """What one producer sent to one partition is there in the order of sending."""
    order = {write.value: (write.producer, number) for number, write in enumerate(history.writes)}
    for place, log in history.logs.items():
        last: dict[str, int] = {}
        for offset, value in log:
            if value in order:
                producer, number = order[value]
                if number < last.get(producer, -1):
                    yield f"out of order: {value!r} of {producer} at {offset} of {place}"
                last[producer] = max(number, last.get(producer, -1))
