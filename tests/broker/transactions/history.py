"""Histories of transactional clients, and a search for anomalies that transactions must not have.

`anomalies` looks only at the history: what clients have written, how their transactions ended, and what
readers saw. The history may come from a simulation or from real processes. Anomalies are named as in Jepsen's
tests of Kafka, where these have a name.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from typing import NamedTuple

Partition = str


class Fate(Enum):
    """The outcome of a transaction as its client knows it."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    """The transaction was certainly not committed: it was aborted, or a commit was never requested."""
    UNKNOWN = "unknown"


class Unit:
    """One transaction: its values in each partition, in the order of sending, and its outcome."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[Partition, list[str]] = {}
        self.fate = Fate.ABORTED

    def write(self, partition: Partition, value: str) -> None:
        self.values.setdefault(partition, []).append(value)


class Read(NamedTuple):
    """The offsets and values that one reader got from one partition, in order.

    With `is_complete` the reader has read the whole partition.
    """

    partition: Partition
    committed_only: bool
    rows: tuple[tuple[int, str], ...]
    is_complete: bool = False


class History:
    """All transactions and reads of one run, as the clients observed them."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.reads: list[Read] = []

    def begin(self, name: str) -> Unit:
        unit = Unit(name)
        self.units.append(unit)
        return unit


def anomalies(history: History) -> list[str]:
    """Return a line for each violation of transactional guarantees in a history."""
    found = [*_of_single_reads(history), *_of_offsets(history)]
    owners = {value: unit for unit in history.units for values in unit.values.values() for value in values}
    visible: dict[Partition, dict[str, int]] = defaultdict(dict)
    complete = set()
    for read in history.reads:
        for offset, value in read.rows:
            unit = owners.get(value)
            if unit is None or value not in unit.values.get(read.partition, ()):
                found.append(f"phantom: nobody wrote {value} to {read.partition}")
            elif read.committed_only and unit.fate is Fate.ABORTED:
                found.append(f"aborted read: {value} of {unit.name} at offset {offset} of {read.partition}")
        if read.committed_only and read.is_complete:
            complete.add(read.partition)
            visible[read.partition].update({value: offset for offset, value in read.rows})
    for read in history.reads:
        if read.committed_only and read.partition in complete:
            missing = [value for _, value in read.rows if value not in visible[read.partition]]
            found += [f"vanished: {value} was read from {read.partition} once" for value in missing]
    for unit in history.units:
        found += _of_unit(unit, visible, complete)
    return found


def _of_single_reads(history: History) -> list[str]:
    found = []
    for read in history.reads:
        offsets = [offset for offset, _ in read.rows]
        if offsets != sorted(set(offsets)):
            found.append(f"non-monotonic poll: offsets of {read.partition} go back")
        values = [value for _, value in read.rows]
        found += [
            f"duplicate: {value} is in {read.partition} twice"
            for value in dict.fromkeys(values)
            if values.count(value) > 1
        ]
    return found


def _of_offsets(history: History) -> list[str]:
    found = []
    seen: dict[tuple[Partition, int], str] = {}
    for read in history.reads:
        for offset, value in read.rows:
            first = seen.setdefault((read.partition, offset), value)
            if first != value:
                found.append(f"inconsistent offsets: {first} and {value} at {offset} of {read.partition}")
    return found


def _of_unit(unit: Unit, visible: dict[Partition, dict[str, int]], complete: set[Partition]) -> list[str]:
    found = []
    there, missing = [], []
    for partition, values in unit.values.items():
        if partition in complete:
            there += [value for value in values if value in visible[partition]]
            missing += [value for value in values if value not in visible[partition]]
            offsets = [visible[partition][value] for value in values if value in visible[partition]]
            if offsets != sorted(offsets):
                found.append(f"non-monotonic send: {unit.name} in {partition}")
    if unit.fate is Fate.COMMITTED:
        found += [f"lost write: {value} of {unit.name}, which was committed" for value in missing]
    elif there and missing:
        found.append(f"torn transaction: {unit.name} shows {there[0]} and not {missing[0]}")
    return found
