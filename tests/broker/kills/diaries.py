"""A reader of the event files of killed group members, which checks the events of all members together."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

LIMIT = 5
"""The maximum number of deliveries of a record: `share.delivery.count.limit`."""

Place = tuple[int, int]
"""A record's partition and offset."""


class Diaries:
    """The events from the files of all members of a group.

    `ended` is a dict from file to the time at which its member was killed. `given` is a file in which the
    brokers record the acquisitions of members, or None.
    """

    def __init__(self, files: list[Path], ended: dict[Path, float], given: Path | None = None) -> None:
        self.acquired: dict[Place, list[tuple[float, int]]] = defaultdict(list)
        """For each record: the times at which a broker gave it to a member, with the delivery counts."""
        self.deliveries: dict[Place, list[tuple[float, int]]] = defaultdict(list)
        """For each record: the start times of the polls that returned it, with the delivery counts."""
        self.said: dict[Place, list[tuple[str, int]]] = defaultdict(list)
        """For each record: the acknowledgement types that were sent, with the delivery count at delivery."""
        self.taken: dict[Place, list[tuple[float, str, int]]] = defaultdict(list)
        """For each record: the times of confirmed acknowledgements, their types and delivery counts."""
        self.tried: dict[int, set[int]] = defaultdict(set)
        self.commits: dict[int, list[tuple[float, int]]] = defaultdict(list)
        """A dict from partition to the commits: the time of the answer, and the committed offset."""
        self.owned: dict[int, list[tuple[float, float, str]]] = defaultdict(list)
        """A dict from partition to the intervals in which a member owned it, until revoked or killed.

        Partitions that were lost without a revocation are not listed: the member notices it late, when
        another one may already own the partition.
        """
        self.epochs: dict[str, int] = {}
        """A dict from each member of a streams group to the last epoch that the broker answered."""
        self.counted: set[Place] = set()
        """The input records that the last subtopology of a streams group has counted."""
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
        """Return True if a record may be finished: accepted, rejected, or at the delivery limit.

        An acknowledgement that was sent but not answered may have taken effect.
        """
        if any(type_ != "release" for type_, _ in self.said[place]):
            return True
        return any(count >= LIMIT for _, count in self.deliveries[place])

    def is_accepted(self, place: Place) -> bool:
        """Return True if the broker has confirmed a final acknowledgement of the record."""
        return any(type_ != "release" for _, type_, _ in self.taken[place])

    def share_faults(self) -> list[str]:
        """Return a line for each violation in a share group, such as a redelivered finished record.

        A delivery counts from the time at which a broker gave the record, if brokers record it, else from the
        start of the poll. A poll may return records of an earlier fetch: if the leader has moved meanwhile,
        another member may get a record and finish it. A final acknowledgement may also succeed twice: brokers
        accept late acknowledgements of records below the start offset (KIP-932).
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
        """Return a line for each violation in a consumer group.

        Violations are lower commits after higher ones, records delivered after their commit, and two owners
        at a time.
        """
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
