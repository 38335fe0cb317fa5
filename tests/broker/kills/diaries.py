"""What members have written down, and the laws that hold for all of it together."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

LIMIT = 5
"""Deliveries of a record: `share.delivery.count.limit`."""

Place = tuple[int, int]
"""A partition and an offset."""


class Diaries:
    """The lines of all members of a group. `ended` has, by file, when its member was killed.

    `given` is a file in which the brokers themselves note what members acquire, where there is one.
    """

    def __init__(self, files: list[Path], ended: dict[Path, float], given: Path | None = None) -> None:
        self.acquired: dict[Place, list[tuple[float, int]]] = defaultdict(list)
        """When a broker has given a record to a member, and the delivery count."""
        self.deliveries: dict[Place, list[tuple[float, int]]] = defaultdict(list)
        """When the poll began, and the delivery count."""
        self.said: dict[Place, list[tuple[str, int]]] = defaultdict(list)
        """The types that were sent, and the delivery count with which the record had come."""
        self.taken: dict[Place, list[tuple[float, str, int]]] = defaultdict(list)
        """When the broker's answer was there, the type and the delivery count."""
        self.tried: dict[int, set[int]] = defaultdict(set)
        self.commits: dict[int, list[tuple[float, int]]] = defaultdict(list)
        """By partition: when a commit was answered, and its offset."""
        self.owned: dict[int, list[tuple[float, float, str]]] = defaultdict(list)
        """By partition: from when until when a member had it that gave it up, or was killed.

        One that has lost it hears of that late: another may have it by then.
        """
        self.epochs: dict[str, int] = {}
        """The last epoch that the broker has answered each member of a streams group."""
        self.counted: set[Place] = set()
        """What has come out of the last task of a streams group."""
        self.faults: list[str] = []
        if given is not None:
            self._read_given(given)
        self._is_given = given is not None
        for file in files:
            self._read(file, ended.get(file, float("inf")))

    def _read(self, file: Path, end: float) -> None:
        said: dict[Place, tuple[str, int]] = {}
        since: dict[int, float] = {}
        for line in file.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            word, *values = line.split()
            match word:
                case "D":
                    place = int(values[2]), int(values[3])
                    self.deliveries[place].append((float(values[0]), int(values[4])))
                case "S":
                    place = int(values[1]), int(values[2])
                    said[place] = values[3], int(values[4])
                    self.said[place].append(said[place])
                case "A":
                    for offset in range(int(values[2]), int(values[3]) + 1):
                        place = int(values[1]), offset
                        self.taken[place].append((float(values[0]), *said[place]))
                case "T":
                    self.tried[int(values[1])].add(int(values[2]))
                case "C":
                    self.commits[int(values[1])].append((float(values[0]), int(values[2])))
                case "E":
                    self.epochs[values[0]] = int(values[1])
                case "N":
                    self.counted.add((int(values[0]), int(values[1])))
                case "F":
                    self.faults.append(line)
                case "O":
                    since[int(values[1])] = float(values[0])
                case "X":
                    since.pop(int(values[1]), None)
                case "L":
                    begin = since.pop(int(values[1]), None)
                    if begin is not None:
                        self.owned[int(values[1])].append((begin, float(values[0]), file.name))
        for partition, begin in since.items():
            self.owned[partition].append((begin, end, file.name))

    def _read_given(self, file: Path) -> None:
        for line in file.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                when, partition, first, last, count = line.split()
                for offset in range(int(first), int(last) + 1):
                    self.acquired[int(partition), offset].append((float(when), int(count)))

    # --- share groups ------------------------------------------------------------------------------------

    def is_done(self, place: Place) -> bool:
        """Return whether a record may be finished: accepted, rejected, or delivered as often as allowed.

        What was said and not answered may have happened.
        """
        if any(type_ != "release" for type_, _ in self.said[place]):
            return True
        return any(count >= LIMIT for _, count in self.deliveries[place])

    def is_accepted(self, place: Place) -> bool:
        """Return whether the broker has answered that a record is finished."""
        return any(type_ != "release" for _, type_, _ in self.taken[place])

    def share_faults(self) -> list[str]:
        """Return what must not have happened in a share group.

        A delivery counts from when a broker gave the record, where brokers note that, else from when the poll
        began. A poll may return what an earlier one has fetched: when its leader moves meanwhile another
        member may be given the record, and finish it. An answer that it is finished may come twice as well:
        brokers have nothing against late acknowledgements of what lies before the start offset (KIP-932).
        """
        faults = []
        for place, answers in self.taken.items():
            finished = sorted(when for when, type_, _ in answers if type_ != "release")
            for began, count in self.acquired[place] if self._is_given else self.deliveries[place]:
                if finished and began > finished[0]:
                    faults.append(f"{place} came again, {began - finished[0]:.3f} s after it was finished")
                for when, type_, before in answers:
                    if type_ == "release" and began > when and count <= before:
                        faults.append(f"{place} came with count {count} after {before} was released")
        for place, found in self.deliveries.items():
            faults += [f"{place} was delivered {count} times" for _, count in found if count > LIMIT]
        return faults

    # --- consumer groups ---------------------------------------------------------------------------------

    def consumer_faults(self) -> list[str]:
        """Return what must not have happened in a consumer group."""
        faults = []
        for partition, commits in self.commits.items():
            highest = 0
            for _, offset in sorted(commits):
                if offset < highest:
                    faults.append(f"partition {partition}: {offset} was committed after {highest}")
                highest = max(highest, offset)
        for (partition, offset), found in self.deliveries.items():
            committed = [when for when, end in self.commits[partition] if end > offset]
            if committed:
                late = max(began for began, _ in found) - min(committed)
                if late > 0:
                    faults.append(f"{(partition, offset)} came again, {late:.3f} s after its commit")
        for partition, intervals in self.owned.items():
            intervals.sort()
            for first, second in pairwise(intervals):
                if second[0] < first[1]:
                    faults.append(
                        f"partition {partition} had two owners for {first[1] - second[0]:.3f} s: "
                        f"{first[2]} and {second[2]}"
                    )
        return faults
