"""Placement of replicas on brokers and racks, like Apache Kafka's StripedReplicaPlacer.

Brokers are assigned in turn, rack by rack, from random starting points. A partition has no broker twice and
as many racks as possible. A live broker is first, and leaders are spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol


class Shuffling(Protocol):
    """A source of random numbers for a placement; `random.Random` is one."""

    def randrange(self, stop: int, /) -> int:
        """Return a random number from 0 to `stop` - 1."""

    def shuffle(self, items: list[Any], /) -> None:
        """Put the items of a list into a random order."""


class Candidate(NamedTuple):
    """A broker that replicas can be placed on."""

    id: int
    rack: str | None
    fenced: bool = False


class _Deck:
    """Assigns brokers in turn: each broker once per partition. Each partition begins one broker later."""

    def __init__(self, ids: list[int], random: Shuffling) -> None:
        self._ids = sorted(ids)
        self._random = random
        self._epoch = 0
        self._index = 0
        self._offset = random.randrange(len(ids)) if ids else 0

    def __len__(self) -> int:
        return len(self._ids)

    def shuffle(self) -> None:
        self._random.shuffle(self._ids)

    def next(self, epoch: int) -> int | None:
        """Return the next broker for a partition, or None if the partition has all brokers."""
        if not self._ids:
            return None
        if self._epoch != epoch:
            self._epoch = epoch
            self._index = 0
            self._offset = (self._offset + 1) % len(self._ids)
        if self._index >= len(self._ids):
            return None
        found = self._ids[(self._index + self._offset) % len(self._ids)]
        self._index += 1
        return found


class _Rack:
    def __init__(self, brokers: list[Candidate], random: Shuffling) -> None:
        self.unfenced = _Deck([each.id for each in brokers if not each.fenced], random)
        self.fenced = _Deck([each.id for each in brokers if each.fenced], random)

    def shuffle(self) -> None:
        self.unfenced.shuffle()
        self.fenced.shuffle()

    def next(self, epoch: int) -> int | None:
        found = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if found is None else found


def place(
    brokers: Iterable[Candidate], partitions: int, replicas: int, random: Shuffling
) -> list[tuple[int, ...]]:
    """Return the brokers of each of `partitions` new partitions, the preferred leader first.

    Raises:
        ValueError: there are fewer brokers than `replicas`, or all of them are fenced.
    """
    candidates = sorted(brokers, key=lambda each: each.id)
    if replicas > len(candidates):
        raise ValueError(
            f"The target replication factor of {replicas} cannot be reached because only"
            f" {len(candidates)} broker(s) are registered."
        )
    living = sum(not each.fenced for each in candidates)
    if not living:
        raise ValueError("All brokers are currently fenced.")
    names = sorted({each.rack for each in candidates}, key=lambda rack: rack or "")
    racks = [_Rack([each for each in candidates if each.rack == name], random) for name in names]
    start = random.randrange(len(racks))
    epoch = 0
    placed = []
    for _ in range(partitions):
        if epoch == living and living > 1:
            random.shuffle(racks)
            for rack in racks:
                rack.shuffle()
            epoch = 0
        start %= len(racks)
        placed.append(_deal(racks, start, epoch, replicas))
        epoch += 1
        start += 1
    return placed


def _deal(racks: Sequence[_Rack], start: int, epoch: int, replicas: int) -> tuple[int, ...]:
    """Return the replicas of one partition: a live broker first, then brokers of the other racks in turn."""
    count = len(racks)
    first_rack, first = 0, -1
    for step in range(count):
        first_rack = (start + step) % count
        found = racks[first_rack].unfenced.next(epoch)
        if found is not None:
            first = found
            break
    chosen = [first]
    rack = start
    skips_first = True
    while len(chosen) < replicas:
        if rack == first_rack and skips_first:
            skips_first = False
        else:
            found = racks[rack].next(epoch)
            if found is not None:
                chosen.append(found)
        rack = (rack + 1) % count
    return tuple(chosen)
