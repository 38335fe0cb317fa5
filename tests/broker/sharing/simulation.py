"""A simulation of one share partition and its members, with one clock, driven by one seed.

Members fetch, acknowledge, renew, stall and die. The log grows, is compacted, loses its start, and has
aborted transactions. Writes of state are delayed, fail, or take effect although they are answered with an
error. Leaders change: the next one has only the stored state. `World(seed).run()` raises AssertionError if an
invariant is broken.

At any time: a record has one owner; a record whose acknowledgement was confirmed is not delivered again; the
start offset passes only records that were acknowledged, rejected, delivered up to the limit, aborted, or
deleted from the log; the start offset never goes back; the limit of records in flight is exceeded by one
batch at most. In half of the runs the group has dead letters: a record that was rejected, or delivered up to
the limit, has at least one before the start offset passes it, and no other record has one. After a quiet
period: every record is finished, and the start offset is the end of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from penstock.broker.groups.share_state.batches import StateBatch
from penstock.broker.groups.share_state.coordinator import ShareCoordinator, WrittenShareState
from penstock.broker.groups.share_state.keys import ShareKey
from penstock.broker.groups.share_state.state import ShareStates
from penstock.broker.sharing.acknowledgements import Acknowledged, AckType
from penstock.broker.sharing.dead_records import REJECTED, DeadRange
from penstock.broker.sharing.runs import RecordState
from penstock.broker.sharing.settings import SharingSettings
from penstock.broker.sharing.share_partition import FoundBatch, SharePartition, Stored, Write
from penstock.errors import KafkaError

LOCK_MS = 1000
BATCH_MAX = 12

MakePartition = Callable[[int, list[Stored]], SharePartition]


KEY = ShareKey("g", b"t" * 16, 0)


class Coordinator:
    """The stored state of the share partition, changed by the real rules of the share coordinator."""

    def __init__(self) -> None:
        self._states = ShareStates()
        self._rules = ShareCoordinator(lambda: 3, lambda topic_id, index: True)
        self._states.apply(self._rules.initialize(self._states, KEY, 0, 0, 0), 0)

    @property
    def start(self) -> int:
        return self._states.entries[KEY].state.start_offset

    def write(self, write: Write) -> None:
        batches = tuple(StateBatch(*each) for each in write.states if each.last >= write.start_offset)
        written = WrittenShareState(0, 0, write.start_offset, write.done_count, batches)
        self._states.apply(self._rules.write(self._states, KEY, written, 0), 0)

    def read(self) -> tuple[int, list[Stored]]:
        state = self._states.entries[KEY].state
        return state.start_offset, [
            Stored(first, last, RecordState(each), deliveries)
            for first, last, each, deliveries in state.batches
        ]


class World:
    """One simulated run of a share partition, from a seed."""

    def __init__(self, seed: int, make: MakePartition = SharePartition) -> None:
        self.random = Random(seed)
        self.make = make
        self.now = 0.0
        self.settings = SharingSettings(
            lock_duration_ms=LOCK_MS,
            delivery_count_limit=self.random.choice((2, 3, 5)),
            max_record_locks=self.random.choice((5, 30, 200)),
            dead_letter_topic=self.random.choice(("", "dlq.t")),
        )
        self.batches: list[FoundBatch] = []
        self.end = 0
        self.log_start = 0
        self.stored = Coordinator()
        self.partition = make(*self.stored.read())
        self.members = [f"m{index}" for index in range(self.random.randint(1, 4))]
        self.owners: dict[int, tuple[str, float]] = {}
        self.acknowledged: set[int] = set()
        self.unsure: set[int] = set()
        """Offsets whose final acknowledgement got an error, but may have been stored."""
        self.delivered: dict[int, int] = {}
        self.gone: set[int] = set()
        """Offsets without a record for the group, such as compacted or aborted ones."""
        self.flying: list[tuple[Write, int]] = []
        self.accepted: set[int] = set()
        """Offsets that members accepted, or acknowledged as gaps."""
        self.dying: list[DeadRange] = []
        """Ranges of records for which the leader still has to write dead letters."""
        self.letters: set[int] = set()
        """Offsets of records that have dead letters."""
        self.asked: list[tuple[object, list[Acknowledged]]] = []
        self.lowest = self.judged = 0
        self.log: list[str] = []

    # --- what happens ------------------------------------------------------------------------------------

    def run(self, steps: int = 300) -> None:
        """Run random steps, then a quiet period, and check the final state."""
        actions = [
            self.append,
            self.append,
            self.fetch,
            self.fetch,
            self.fetch,
            self.acknowledge,
            self.acknowledge,
            self.acknowledge,
            self.store,
            self.store,
            self.pass_time,
            self.close_session,
            self.change_leader,
            self.delete_records,
            self.bury,
        ]
        weights = [4, 4, 6, 6, 6, 6, 6, 6, 8, 8, 3, 1, 1, 1, 5]
        for _ in range(steps):
            self.random.choices(actions, weights)[0]()
            self.check()
        self.settle()

    def settle(self) -> None:
        """Let all members and the coordinator work without faults until every record is finished."""
        for _ in range(self.end * 6 + 50):
            self.store(fails=False)
            self.fetch()
            self.acknowledge(AckType.ACCEPT)
            self.store(fails=False)
            self.bury()
            self.now += LOCK_MS / 2000
            self.expire()
            self.check()
            if self.partition.start_offset == self.end and not self.partition.is_held():
                return
        raise AssertionError(f"records are left: {self.partition.window.runs}, end {self.end}")

    def append(self) -> None:
        if self.random.random() < 0.15:  # compacted
            gap = self.random.randint(1, 5)
            self.gone.update(range(self.end, self.end + gap))
            self.end += gap
        size = self.random.choice((1, 1, 3, BATCH_MAX))
        dropped = self.random.random() < 0.1
        self.batches.append(FoundBatch(self.end, self.end + size - 1, dropped))
        if dropped:
            self.gone.update(range(self.end, self.end + size))
        self.end += size

    def fetch(self) -> None:
        member, partition = self.random.choice(self.members), self.partition
        if not partition.has_room(self.settings):
            return
        read_from = partition.next_offset
        found = [batch for batch in self.batches if batch.last >= max(read_from, self.log_start)]
        found = found[: self.random.randint(1, 6)]
        most, exact = self.random.choice((1, 3, 500)), self.random.random() < 0.5
        acquired = partition.acquire(
            member,
            read_from,
            found,
            self.settings,
            self.now,
            most=most,
            batch_size=self.random.choice((1, 5, 500)),
            is_exact=exact,
        )
        self.log.append(f"{member} {acquired}")
        if exact:
            assert sum(each.last - each.first + 1 for each in acquired) <= most
        for first, last, deliveries in acquired:
            assert deliveries <= self.settings.delivery_count_limit
            for offset in range(first, last + 1):
                self.deliver(offset, member, deliveries)

    def deliver(self, offset: int, member: str, deliveries: int) -> None:
        owner, until = self.owners.get(offset, ("", 0.0))
        assert until <= self.now, f"{offset} has two owners: {owner} and {member}"
        assert offset not in self.acknowledged, f"{offset} was acknowledged, and is delivered again"
        assert offset not in self.gone, f"{offset} is no record"
        self.owners[offset] = member, self.now + LOCK_MS / 1000
        self.delivered[offset] = max(self.delivered.get(offset, 0), deliveries)

    def acknowledge(self, always: AckType | None = None) -> None:
        member = self.random.choice(self.members)
        held = sorted(o for o, (owner, until) in self.owners.items() if owner == member and until > self.now)
        if not held:
            return
        if always is None:
            begin = self.random.randrange(len(held))
            held = held[begin : begin + self.random.randint(1, 8)]
        ranges = [
            Acknowledged(offset, offset, self.random.choice(list(AckType)) if always is None else always)
            for offset in held
        ]
        try:
            change = self.partition.acknowledge(member, ranges, self.settings, self.now)
        except KafkaError as error:
            self.log.append(f"{member} {error.code}")
            return  # being changed already
        for first, _, type_ in ranges:
            if type_ is AckType.RENEW:
                self.owners[first] = member, self.now + LOCK_MS / 1000
        if change is not None:
            self.asked.append((change, [each for each in ranges if each.type is not AckType.RENEW]))

    def store(self, fails: bool = True) -> None:
        write = self.partition.next_write()
        if write is not None:
            self.flying.append((write, id(self.partition)))
        if not self.flying or (fails and self.random.random() < 0.3):
            return
        write, of = self.flying.pop(0)
        error = 15 if fails and self.random.random() < 0.15 else 0
        if not error or self.random.random() < 0.5:
            self.stored.write(write)
        if of == id(self.partition):
            self.partition.written(write, error)
            self.dying += self.partition.take_dead()
            self.answer()

    def answer(self) -> None:
        """Deliver the results of settled acknowledgements to members, and record them for the checks."""
        left = []
        for change, ranges in self.asked:
            if not change.settled:  # type: ignore[attr-defined]
                left.append((change, ranges))
                continue
            for first, _, type_ in ranges:
                final = type_ is not AckType.RELEASE
                if change.error_code:  # type: ignore[attr-defined]
                    self.unsure.add(first)
                elif final:
                    self.acknowledged.add(first)
                    if type_ is not AckType.REJECT:
                        self.accepted.add(first)
                    self.owners.pop(first, None)
                else:
                    self.owners.pop(first, None)
        self.asked = left

    def bury(self) -> None:
        """Write dead letters for some of the waiting records, and archive these records."""
        count = self.random.randint(0, len(self.dying))
        written, self.dying = self.dying[:count], self.dying[count:]
        for dead in written:
            for offset in range(dead.first, dead.last + 1):
                was_often = dead.deliveries >= self.settings.delivery_count_limit
                assert dead.reason == REJECTED or was_often, f"{offset} was delivered {dead.deliveries} times"
                is_accepted = offset in self.accepted and offset not in self.unsure
                assert not is_accepted, f"{offset} was accepted, and has a dead letter"
                self.letters.add(offset)
        self.partition.archive_dead(written)

    def pass_time(self) -> None:
        self.now += self.random.choice((0.01, 0.2, 0.7, 2.0))
        self.expire()

    def expire(self) -> None:
        self.partition.expire(self.settings, self.now)

    def close_session(self) -> None:
        member = self.random.choice(self.members)
        self.partition.release(member, self.settings)
        asked = {each.first for _, ranges in self.asked for each in ranges}
        for offset, (owner, _) in list(self.owners.items()):
            if owner == member and offset not in asked:
                del self.owners[offset]

    def change_leader(self) -> None:
        """Replace the leader with one that has only the stored state; the old one's writes are fenced."""
        for _, ranges in self.asked:
            self.unsure.update(each.first for each in ranges)
        self.flying.clear()
        self.asked.clear()
        self.owners.clear()
        self.partition = self.make(*self.stored.read())
        self.partition.archive_below(self.log_start)
        self.partition.resume_dead(self.settings)
        self.dying = self.partition.take_dead()
        self.lowest = self.stored.start
        self.log.append(f"leader {self.partition.window.runs}")

    def delete_records(self) -> None:
        offset = self.random.randint(self.log_start, self.end)
        if self.random.random() < 0.3:
            self.log_start = offset
            self.gone.update(range(offset))
            self.partition.archive_below(offset)
            self.owners = {key: each for key, each in self.owners.items() if key >= offset}

    # --- what must hold ----------------------------------------------------------------------------------

    def check(self) -> None:
        partition = self.partition
        window = partition.window
        assert partition.start_offset >= self.lowest, "the start offset went back"
        for offset in range(self.judged, partition.start_offset):
            is_sure = offset not in self.gone and offset not in self.unsure and offset not in self.accepted
            if is_sure and self.settings.dead_letter_topic:
                assert offset in self.letters, f"{offset} has no dead letter"
            if offset in self.acknowledged or offset in self.gone or offset in self.unsure:
                continue
            assert self.delivered.get(offset, 0) >= self.settings.delivery_count_limit, f"{offset} is lost"
        self.lowest = partition.start_offset
        self.judged = max(self.judged, self.lowest)
        expected = window.start
        for run in window:
            assert run.first == expected, f"a hole or an overlap at {run}"
            assert run.last >= run.first
            expected = run.last + 1
        assert len(window) <= self.settings.max_record_locks + BATCH_MAX + 6
        assert not window.runs or not window.runs[0].is_done
        assert not self.letters or self.settings.dead_letter_topic
