"""The leader epochs of a log, each with the offset at which it began.

A leader writes its epoch into every batch, so the list can always be rebuilt from the log; the file
`leader-epoch-checkpoint` only makes reading the log unnecessary (`penstock.log.directory.epoch_checkpoint`).
The list gives the end offset of an epoch (OffsetForLeaderEpoch, KIP-101).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Entries = Sequence[tuple[int, int]]
"""Pairs of (epoch, first offset); both ascend."""


class LeaderEpochs:
    """The leader epochs of a log in ascending order, each with its first offset."""

    __slots__ = ("_save", "entries")

    def __init__(self, entries: Entries = (), save: Callable[[Entries], None] | None = None) -> None:
        """Create the object with `entries`, pairs of (epoch, first offset) in ascending order.

        `save` is called with the new entries before each change; if it raises, the entries do not change.
        """
        self._save = save
        self.entries: list[tuple[int, int]] = list(entries)

    @property
    def latest(self) -> int:
        """The latest leader epoch, or -1 if there is none."""
        return self.entries[-1][0] if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add `epoch`, which begins at `start_offset`; remove entries with a higher epoch or offset."""
        if epoch < 0 or epoch == self.latest:
            return
        entries = self.entries[:]
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        self._become(entries)

    def end_of(self, epoch: int, log_end_offset: int) -> tuple[int, int] | None:
        """Return (epoch, end offset) of the highest epoch up to `epoch`, or None if there is none.

        The latest epoch ends at `log_end_offset`.
        """
        found = None
        for number, (known, _) in enumerate(self.entries):
            if known <= epoch:
                found = number
        if found is None:
            return None
        after = self.entries[found + 1 :]
        return self.entries[found][0], after[0][1] if after else log_end_offset

    def epoch_of(self, offset: int) -> int:
        """Return the epoch in which a record at `offset` was written, or -1 if that is unknown."""
        found = -1
        for epoch, first_offset in self.entries:
            if first_offset > offset:
                break
            found = epoch
        return found

    def truncate_end(self, end_offset: int) -> None:
        """Remove the epochs that began at `end_offset` or later, because their batches are gone."""
        kept = [entry for entry in self.entries if entry[1] < end_offset]
        if len(kept) < len(self.entries):
            self._become(kept)

    def truncate_start(self, start_offset: int) -> None:
        """Remove the epochs that ended by `start_offset`; let the epoch of that offset begin there."""
        entries = self.entries[:]
        if not entries or entries[0][1] >= start_offset:
            return
        while len(entries) > 1 and entries[1][1] <= start_offset:
            del entries[0]
        entries[0] = (entries[0][0], start_offset)
        self._become(entries)

    def _become(self, entries: list[tuple[int, int]]) -> None:
        """Save `entries` and use them from now on; if saving fails, nothing changes."""
        if self._save is not None:
            self._save(entries)
        self.entries = entries
