"""Tests of compaction of transactional records against a model that is never compacted.

They compare what read_committed consumers read, the state of producers, and which markers are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log.log_laws import T0, add
from penstock.broker.partitions.producers.producer_recovery import read_producers
from penstock.broker.partitions.producers.producer_state import Producers
from penstock.broker.partitions.producers.transactions import AbortedTransaction
from penstock.log.compaction.compactor import Compaction, CompactionPolicy, Kept, compact, find_dirt, plan
from penstock.log.compaction.transactions import Aborted, BatchFate, TransactionsOfPass
from penstock.log.contract import LogConfig
from penstock.log.memory import MemoryLog
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, encode_batch, encode_marker
from penstock.records.format.batch_header import read_header, split_batches
from penstock.records.rows import decode_rows

RETENTION_MS = 1000
ALWAYS = CompactionPolicy(min_dirty_ratio=0, delete_retention_ms=RETENTION_MS)
COMMIT, ABORT = True, False


class Written(NamedTuple):
    """A record as a producer wrote it, with its offset."""

    offset: int
    key: bytes
    value: bytes | None


class World:
    """A log, its producers, and a model of the records that the log would contain without compaction."""

    def __init__(self) -> None:
        self.log = MemoryLog(LogConfig(segment_bytes=1 << 20), now_ms=T0)
        self.now_ms = T0
        self.open: dict[int, tuple[int, list[Written]]] = {}
        self.committed: list[Written] = []
        self.aborted: list[AbortedTransaction] = []
        self.epochs: dict[int, int] = {}
        self.sequences: dict[int, int] = {}
        self.forgotten: set[int] = set()

    def put(self, rows: Sequence[tuple[bytes, bytes | None]], producer_id: int = -1) -> None:
        first = self.log.end_offset
        numbers: dict[str, Any] = {}
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(rows)
            epoch = self.epochs.setdefault(producer_id, 0)
            numbers = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
            self.forgotten.discard(producer_id)
        data = encode_batch(
            [(key, value, (), self.now_ms) for key, value in rows],
            base_offset=first,
            partition_leader_epoch=0,
            is_transactional=producer_id >= 0,
            **numbers,
        )
        last = first + len(rows) - 1
        add(self.log, data, first=first, last=last, timestamp=self.now_ms, now_ms=self.now_ms)
        written = [Written(first + n, key, value) for n, (key, value) in enumerate(rows)]
        if producer_id < 0:
            self.committed += written
        else:
            self.open.setdefault(producer_id, (first, []))[1].extend(written)

    def end(self, producer_id: int, commit: bool, raises_epoch: bool) -> None:
        self.forgotten.discard(producer_id)
        if raises_epoch:
            self.epochs[producer_id] = self.epochs.get(producer_id, 0) + 1
            self.sequences[producer_id] = 0
        offset = self.log.end_offset
        marker = encode_marker(
            COMMIT_MARKER if commit else ABORT_MARKER,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=self.epochs.setdefault(producer_id, 0),
            coordinator_epoch=0,
            timestamp=self.now_ms,
            partition_leader_epoch=0,
        )
        add(self.log, marker, first=offset, last=offset, timestamp=self.now_ms, now_ms=self.now_ms)
        first, written = self.open.pop(producer_id, (None, []))
        if commit:
            self.committed = sorted([*self.committed, *written])
        elif first is not None:
            self.aborted.append(AbortedTransaction(producer_id, first, offset, self.stable_offset))

    @property
    def stable_offset(self) -> int:
        return min((first for first, _ in self.open.values()), default=self.log.end_offset)

    def producers(self) -> dict[int, tuple[int, int]]:
        """Return the epoch and last sequence number (-1 without one) of each producer.

        They are read from the log, as when a broker starts.
        """
        producers = Producers(10**12)
        assert read_producers(self.log, producers, 0, 0) is not None
        return {
            number: (state.epoch, state.batches[-1].last_sequence if state.batches else -1)
            for number, state in producers.items()
        }

    def compact(self) -> None:
        self.log._roll(self.log.end_offset, self.now_ms)
        producers = Producers(10**12)
        assert read_producers(self.log, producers, 0, 0) is not None
        kept = Kept(
            {n: at for n, at in producers.last_offsets().items() if n not in self.forgotten},
            {n: epoch for n, epoch in producers.marker_epochs().items() if n not in self.forgotten},
            [Aborted(*entry[:3]) for entry in self.aborted],
            self.stable_offset,
        )
        before = self.producers()
        work = plan(self.log, ALWAYS, self.now_ms, kept=kept)
        if work is not None:
            work.run()
            assert work.finish()
            spent = work.spent_markers
            self.aborted = [entry for entry in self.aborted if entry.marker_offset not in spent]
        after = self.producers()
        for number, known in before.items():
            if number not in self.forgotten:
                assert after[number] == known
        self.check()

    def data(self, start: int) -> bytes:
        return bytes(self.log.read(start, 1 << 30, up_to_offset=self.stable_offset).to_bytes())

    def seen(self, start: int = 0) -> list[Written]:
        """Return the records that a read_committed consumer returns from `start` on."""
        listed = [(one.producer_id, one.first_offset) for one in self.aborted if one.marker_offset >= start]
        if start >= self.stable_offset:
            return []
        rows, _ = decode_rows(self.data(start), "t", 0, aborted=listed, start_offset=start)
        return [Written(row.offset, row.key or b"", row.value) for row in rows]

    def check(self) -> None:
        stable = [one for one in self.committed if one.offset < self.stable_offset]
        latest = {one.key: one for one in stable}
        seen = self.seen()
        assert set(seen) <= set(stable), "something is seen that was not committed"
        last_seen = {one.key: one for one in seen}
        for key, one in latest.items():
            if one.value is not None:
                assert last_seen.get(key) == one, f"{key!r} is not what was committed last"
            else:
                assert key not in last_seen or last_seen[key] == one
        for start in range(0, self.stable_offset, 3):
            assert self.seen(start) == [one for one in seen if one.offset >= start]

    def batches(self) -> list[Any]:
        data = self.log.read(0, 1 << 30).to_bytes()
        return [read_header(data, begin) for begin, _, _ in split_batches(data)]


KEYS = [b"a", b"b", b"c"]
ROWS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from([b"1", b"2", b"3", None])), min_size=1, max_size=3
)
PRODUCERS = st.integers(1, 3)
STEPS = st.one_of(
    st.tuples(st.just("plain"), ROWS),
    st.tuples(st.just("write"), PRODUCERS, ROWS),
    st.tuples(st.just("write"), PRODUCERS, ROWS),
    st.tuples(st.just("end"), PRODUCERS, st.booleans(), st.booleans()),
    st.tuples(st.just("end"), PRODUCERS, st.booleans(), st.booleans()),
    st.tuples(st.just("compact")),
    st.tuples(st.just("compact")),
    st.tuples(st.just("later"), st.sampled_from([1, RETENTION_MS + 1])),
    st.tuples(st.just("roll")),
    st.tuples(st.just("forget"), PRODUCERS),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_readers_see_what_was_committed_last_whatever_is_compacted(steps: list[tuple[Any, ...]]) -> None:
    live(steps)


def live(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in steps:
        match step:
            case ("plain", rows):
                world.put(rows)
            case ("write", producer_id, rows):
                world.put(rows, producer_id)
            case ("end", producer_id, commit, raises_epoch):
                world.end(producer_id, commit, raises_epoch)
            case ("compact",):
                world.compact()
            case ("later", milliseconds):
                world.now_ms += milliseconds
            case ("roll",):
                world.log._roll(world.log.end_offset, world.now_ms)
            case ("forget", producer_id):
                if producer_id not in world.open:
                    world.forgotten.add(producer_id)
    world.compact()
    for producer_id in list(world.open):
        world.end(producer_id, ABORT, True)
    world.forgotten |= set(world.epochs)
    for _ in range(6):
        world.put([(b"last", b"x")])
        world.compact()
        world.now_ms += RETENTION_MS + 1
    # One pass takes data, one stamps a marker, one removes it: what is left of transactions was committed.
    left = world.batches()[:-1]
    with_data = {one.producer_id for one in left if not one.is_control and one.record_count}
    emptied = [one for one in left if not one.record_count]
    assert all(one.producer_id in with_data for one in left if one.is_control and one.record_count)
    assert world.aborted == []
    assert len(emptied) <= 1, "of forgotten producers, only the end of a segment stays"


def random_steps(random: Random) -> list[tuple[Any, ...]]:
    def rows() -> list[tuple[bytes, bytes | None]]:
        return [
            (random.choice(KEYS), random.choice([b"1", b"2", b"3", None]))
            for _ in range(random.randint(1, 3))
        ]

    steps: list[Callable[[], tuple[Any, ...]]] = [
        lambda: ("plain", rows()),
        lambda: ("write", random.randint(1, 3), rows()),
        lambda: ("end", random.randint(1, 3), random.random() < 0.5, random.random() < 0.5),
        lambda: ("compact",),
        lambda: ("later", RETENTION_MS + 1),
    ]
    return [random.choice(steps)() for _ in range(40)]


def nothing_is_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionsOfPass, "abort_of", lambda self, producer_id, offset: None)


def every_marker_is_spent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionsOfPass, "_fate_of_marker", lambda self, batch, header: BatchFate.SPENT)


def every_entry_goes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Compaction, "spent_markers", property(lambda self: {one.marker_offset for one in self._kept.aborted})
    )


def producers_need_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Compaction, "_is_needed", lambda self, header: False)


def live_all(lives: list[list[tuple[Any, ...]]]) -> None:
    for steps in lives:
        live(steps)


@pytest.mark.parametrize(
    "mistake", [nothing_is_aborted, every_marker_is_spent, every_entry_goes, producers_need_nothing]
)
def test_mistakes_are_found(
    mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = [random_steps(Random(seed)) for seed in range(60)]
    for steps in lives[:10]:
        live(steps)
    mistake(monkeypatch)
    with pytest.raises((AssertionError, KeyError)):
        live_all(lives)


def test_an_aborted_value_replaces_nothing() -> None:
    world = World()
    world.put([(b"a", b"1")])
    world.put([(b"a", b"2")], 7)
    world.end(7, ABORT, True)
    world.compact()
    assert world.seen() == [(0, b"a", b"1")]
    assert [one.record_count for one in world.batches()] == [1, 1]  # and the marker


def test_a_committed_tombstone_removes_and_goes() -> None:
    world = World()
    world.put([(b"a", b"1")])
    world.put([(b"a", None)], 7)
    world.end(7, COMMIT, True)
    world.compact()
    assert world.seen() == [(1, b"a", None)]
    world.forgotten.add(7)
    for _ in range(6):
        world.now_ms += RETENTION_MS + 1
        world.put([(b"z", b"1")])
        world.compact()
    assert {one.key for one in world.seen()} == {b"z"}
    assert not any(one.is_control for one in world.batches())


def test_the_passes_of_kafka() -> None:
    """Successive compactions first remove the aborted records, then set the marker's delete horizon.

    Later ones empty the marker's batch, and remove it once its producer has expired.
    """
    world = World()
    world.put([(b"a", b"1")], 7)
    world.end(7, ABORT, True)

    def once_more() -> tuple[int, int, bool] | None:
        world.put([(b"z", b"1")])
        world.compact()
        found = [one for one in world.batches() if one.producer_id == 7]
        if not found:
            return None
        [marker] = found
        return marker.record_count, marker.size, marker.has_delete_horizon

    assert once_more() == (1, 78, False)
    assert [one.first_offset for one in world.aborted] == [0]
    _, size, stamped = once_more() or (0, 0, False)
    assert stamped
    assert world.aborted == []
    assert once_more() == (1, size, True)
    world.now_ms += RETENTION_MS + 1
    assert once_more() == (0, 61, False)
    assert once_more() == (0, 61, False)
    world.forgotten.add(7)
    assert once_more() is None


def test_a_marker_that_was_emptied_stands_in_no_readers_way() -> None:
    """Kafka 4.3 leaves an empty marker batch for a producer that has not expired.

    Reading past it also works among other aborted transactions.
    """
    world = World()
    for _ in range(3):
        world.put([(b"a", b"1")], 7)
        world.end(7, ABORT, True)
    for _ in range(3):
        world.put([(b"z", b"1")])
        world.compact()
        world.now_ms += RETENTION_MS + 1
    assert [one.record_count for one in world.batches() if one.is_control] == [0]
    world.put([(b"z", b"2")], 8)
    world.end(8, ABORT, True)
    assert world.seen() == [(8, b"z", b"1")]


def test_what_is_behind_an_open_transaction_waits() -> None:
    world = World()
    world.put([(b"a", b"1")])
    world.put([(b"a", b"2")])
    world.log._roll(world.log.end_offset, T0)
    world.put([(b"b", b"1")], 7)
    world.put([(b"a", b"3")])
    world.log._roll(world.log.end_offset, T0)
    dirt = find_dirt(world.log, ALWAYS, T0, world.stable_offset)
    assert dirt is not None
    assert dirt.end_offset == 2
    assert compact(world.log, ALWAYS, now_ms=T0, kept=Kept(stable_offset=world.stable_offset))
    assert [one.offset for one in world.seen()] == [1]
