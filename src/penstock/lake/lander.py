"""`Lander`: copies the records of a topic to a table, with commits that also store the topic's offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ConfigError, StorageError
from penstock.lake.contract import (
    LakeTable,
    OtherWriterError,
    OvertakenError,
    Positions,
    Written,
    on_top,
    other_writer,
)
from penstock.lake.envelopes import unwrapped
from penstock.lake.keyed_rows import with_deletions
from penstock.lake.reading import TopicReader
from penstock.lake.shapes import DEAD_SCHEMA, RowShape, ShapeSettings, shape_for
from penstock.queries.columns.json_values import SAMPLE_ROWS

COMMIT_EVERY_S = 60.0
"""The default for the longest time in seconds between reading a record and committing it."""

PENDING_BYTES_MAX = 1 << 30
"""The size in bytes of uncommitted rows at which they are committed at once."""


SHARED_ATTEMPTS_MAX = 20
"""The number of attempts to commit, when other workers of the group commit first."""


class LanderSource(Protocol):
    """A topic from which a lander reads. The records may be polled by the lander, or by another object."""

    topic_id: str | None

    @property
    def ends(self) -> Mapping[int, int]:
        """The end offsets of the partitions when they were last looked up."""

    def begin(self, positions: Positions | None) -> None:
        """Begin to read at the offsets that a table has stored, or at the start if `positions` is None."""

    def begins(self) -> dict[int, int]:
        """Return a dict from partition, also those of other workers, to the offset where reading began."""

    def offsets(self) -> dict[int, int]:
        """Return the next offset to read of each partition that this process reads."""

    def close(self) -> None:
        """Close the connections that this source has opened."""


@runtime_checkable
class PolledSource(LanderSource, Protocol):
    """A topic that a lander polls itself, up to its end."""

    def poll(self, timeout_ms: float) -> pa.RecordBatch | None:
        """Return the next records of one partition, or None if none arrive within `timeout_ms`."""

    @property
    def is_at_end(self) -> bool:
        """True if all partitions are read up to their last known ends."""


@dataclass(frozen=True, slots=True)
class LandSettings:
    """Settings for copying a topic to a table: topic, brokers, shape of rows, and how often to commit.

    `commit_every_s` is the longest time, in seconds, between a record's arrival and its commit: larger values
    make larger files. `start` is the offset at which reading begins for a table without positions:
    ``earliest`` or ``latest``.
    """

    topic: str
    bootstrap_servers: str | Sequence[str]
    shape: ShapeSettings = field(default_factory=ShapeSettings)
    isolation: str = "read_committed"
    start: str = "earliest"
    takes_losses: bool = False
    upserts: bool = False
    """True if rows are upserted by key: the last record of a key is its row, a tombstone deletes the row."""
    unwraps: bool = False
    """True if values are Debezium's change events; the table then gets the row after each change."""
    commit_every_s: float = COMMIT_EVERY_S
    pending_bytes_max: int = PENDING_BYTES_MAX
    config: Mapping[str, object] = field(default_factory=dict)
    shares: bool = False
    """True if other workers of a group write into the same table under the same name."""


class _Side:
    """One of a lander's two tables (rows or dead letters), with the positions of its last commit."""

    def __init__(self, table: LakeTable, settings: LandSettings) -> None:
        self.table = table
        self._settings = settings
        self.before: Positions | None = None
        self.written = Written()
        self._has_rows = False

    def read_back(self) -> Positions | None:
        """Read the positions of the last commit from the table; store them in this object and return them."""
        self.before = self.table.positions()
        return self.before

    def begin(self, offsets: Mapping[int, int], topic_id: str | None) -> None:
        """Set the positions at which to begin if the table has no committed positions."""
        if self.before is None:
            self.before = Positions(self._settings.topic, topic_id, dict(offsets), -1, begins=dict(offsets))

    def note_begin(self) -> None:
        """Commit the positions at which reading begins, without rows, if the table has no positions yet.

        Raises:
            OtherWriterError: another process has begun under this name.
            StorageError: the store refuses.
        """
        assert self.before is not None
        if self.before.batch >= 0:
            return
        after = Positions(
            self.before.topic, self.before.topic_id, self.before.offsets, 0, begins=self.before.begins
        )
        try:
            self.table.commit(self.before, after)
        except OvertakenError:
            raise other_writer(self.table.title, self._settings.topic) from None
        self.before = after

    def write(self, rows: pa.RecordBatch, partition: int, offsets: pa.Array) -> None:
        """Write the rows whose offsets the table does not have yet; drop the others."""
        assert self.before is not None
        known = self.before.offsets.get(partition, 0)
        if len(offsets) and offsets[0].as_py() < known:
            rows = rows.filter(pc.greater_equal(offsets, known))
        if rows.num_rows:
            self.table.write(rows)
            self._has_rows = True

    def commit(self, offsets: Mapping[int, int], topic_id: str | None) -> None:
        """Commit the rows since the last commit, if there are any.

        If the outcome of a commit is unknown, the positions in the table show if it has succeeded.

        Raises:
            OtherWriterError: another process has committed to the table under this name.
            StorageError: the commit has failed; another process may continue from the previous positions.
        """
        assert self.before is not None
        if not self._has_rows:
            return
        merged = {
            **self.before.offsets,
            **{p: max(at, self.before.offsets.get(p, 0)) for p, at in offsets.items()},
        }
        after = Positions(
            self._settings.topic, topic_id, merged, self.before.batch + 1, begins=self.before.begins
        )
        if self._settings.shares:
            written, after = self._commit_beside_others(self.before, after)
        else:
            written = self.table.commit(self.before, after)
        self.before, self._has_rows = after, False
        self.written.add(written)

    def _commit_beside_others(self, before: Positions, after: Positions) -> tuple[Written, Positions]:
        """Commit in addition to the commits of other workers of the group; return (totals, positions)."""
        base, target = before, after
        for _ in range(SHARED_ATTEMPTS_MAX):
            try:
                return self.table.commit(base, target), target
            except OvertakenError as error:
                if error.found is not None and error.found.token == target.token:
                    return Written(), error.found
                merged = on_top(error.found, before, after)
                if merged is None or error.found is None:
                    self.table.abandon()
                    raise other_writer(self.table.title, self._settings.topic) from None
                base, target = error.found, merged
        self.table.abandon()
        raise StorageError(
            f"cannot commit to {self.table.title}: other workers were faster {SHARED_ATTEMPTS_MAX} times"
        )

    def drop(self) -> None:
        """Drop the rows that are not committed."""
        self.table.abandon()
        self._has_rows = False


class Lander:
    """Copies one topic to a table, and its dead letters (records that do not fit) to another table.

    >>> with Lander(settings, table, dead) as lander:
    ...     lander.run(follow=False)

    A landing that begins at the end of the topic commits that position before any row, as soon as the columns
    are known: at once, or with the first records if fields are inferred from them.

    Raises:
        ConfigError: a setting is wrong, or the positions in the table do not fit the topic.
        OtherWriterError: another process begins under this name at the same moment.
        StorageError: the table cannot be read, or the positions to begin at cannot be committed.
        KafkaError: the topic does not exist.
        NetworkError, RequestTimeoutError: no broker or registry answers.
    """

    def __init__(
        self,
        settings: LandSettings,
        table: LakeTable,
        dead_letters: Callable[[], LakeTable] | None = None,
        source: LanderSource | None = None,
    ) -> None:
        self._settings = settings
        self._rows = _Side(table, settings)
        self._make_dead = dead_letters
        self._dead: _Side | None = None
        self._shape: RowShape | None = None
        self.records = 0
        """The number of records read."""
        self.dead = 0
        """The number of records that do not fit the table."""
        self.committed_s = 0.0
        """The time of the last commit in seconds since 1970; 0 before the first one."""
        self.lag = 0
        """The number of offsets between the last commit and the ends of the partitions, when it was made."""
        self.due: float | None = None
        """The `time.monotonic` reading when the next commit is due; None if no record waits for one."""
        self._reader = source or TopicReader(
            settings.topic,
            settings.bootstrap_servers,
            settings.config,
            isolation=settings.isolation,
            start=settings.start,
            takes_losses=settings.takes_losses,
        )
        try:
            self._begin()
        except BaseException:
            self._reader.close()
            raise

    def _begin(self) -> None:
        self._go_back()
        if self._is_begun:
            return
        shape = self._shape or self._shape_before_records()
        if shape is None:
            return
        try:
            self._use(shape)
        except OtherWriterError:
            if not self._settings.shares:
                raise
            self._go_back()  # another worker has begun: where, stands in the table by now

    def _go_back(self) -> None:
        self._reader.begin(self._rows.read_back())
        self._rows.begin(self._reader.begins(), self._reader.topic_id)

    @property
    def _is_begun(self) -> bool:
        """True if the offsets to begin at are fixed: either the earliest, or those that the table has."""
        return self._settings.start != "latest" or self.positions.batch >= 0

    def _shape_before_records(self) -> RowShape | None:
        """Return the conversion to rows if it needs no records to infer columns from, else None."""
        from penstock.registry.client import RegistryError

        kept = self._rows.table.schema()
        asked = self._settings.shape
        if asked.value_format == "json" and asked.registry is None and asked.fields is None and kept is None:
            return None
        try:
            return shape_for(self._settings.topic, asked, (), kept)
        except RegistryError:
            return None  # the first producer may register its schema later

    def __enter__(self) -> Lander:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop rows that are not committed, and close the connections."""
        self._reader.close()
        for side in (self._rows, self._dead):
            if side is not None:
                side.table.abandon()

    @property
    def written(self) -> Written:
        """The totals of all commits so far."""
        return self._rows.written

    @property
    def positions(self) -> Positions:
        """The positions of the last commit; before a commit, those at which this lander began."""
        assert self._rows.before is not None
        return self._rows.before

    @property
    def ends(self) -> Mapping[int, int]:
        """The end offset of each partition when it was last looked up."""
        return self._reader.ends

    @property
    def table(self) -> LakeTable:
        """The table of the rows; dead letters are in another one."""
        return self._rows.table

    def run(
        self,
        *,
        follow: bool,
        stopped: Callable[[], bool] = lambda: False,
        committed: Callable[[Lander], None] = lambda lander: None,
    ) -> Written:
        """Copy records to the topic's end, or with `follow` until `stopped` returns True; return totals.

        `committed` is called after each commit.

        Raises:
            OtherWriterError: another process has committed to the table under this name.
            StorageError: the store refuses.
            ConfigError: the topic was deleted and created anew, or a newer schema contradicts the table.
            KafkaError: a broker refuses, or records were removed before they were read.
        """
        assert isinstance(self._reader, PolledSource)
        while not stopped():
            now = time.monotonic()
            wait_s = 0.5 if self.due is None else min(0.5, max(0.0, self.due - now))
            records = self._reader.poll(1000 * wait_s)
            if records is not None and records.num_rows:
                self.take(records)
            if self.is_due(time.monotonic()):
                self.commit(committed)
            if records is None and not follow and self._reader.is_at_end:
                break
        self.commit(committed)
        return self.written

    def take(self, records: pa.RecordBatch) -> None:
        """Convert records of one partition to rows, and write these for the next commit. Raises as `run`."""
        self._take(records)
        self.due = self.due or time.monotonic() + self._settings.commit_every_s

    def is_due(self, now: float) -> bool:
        """Return True if a commit is due at `now`, a `time.monotonic` reading in seconds."""
        is_full = self._rows.table.pending_bytes >= self._settings.pending_bytes_max
        return self.due is not None and (is_full or now >= self.due)

    def commit(self, committed: Callable[[Lander], None] = lambda lander: None) -> None:
        """Commit the records taken so far, and call `committed` if there were any. Raises as `run`."""
        self._commit(committed)
        self.due = None

    def restart(self) -> None:
        """Drop uncommitted rows, and continue from the topic offsets that the table has committed.

        Raises:
            ConfigError: the topic has no such offsets.
            StorageError: the table cannot be read.
        """
        for side in (self._rows, self._dead):
            if side is not None:
                side.drop()
        self.due = None
        self._begin()
        if self._dead is not None:
            self._dead.read_back()
            self._dead.begin(self._reader.begins(), self._reader.topic_id)

    def _take(self, read: pa.RecordBatch) -> None:
        records = self._without_envelopes(read) if self._settings.unwraps else read
        if not records.num_rows:
            self.records += read.num_rows
            return
        if self._shape is None:
            sample = records.column("value").slice(0, SAMPLE_ROWS).to_pylist()
            self._use(
                shape_for(self._settings.topic, self._settings.shape, sample, self._rows.table.schema())
            )
        assert self._shape is not None
        if (newer := self._shape.renewed(records)) is not None:
            # What was read by the older schema counts before the table changes.
            self._commit(lambda lander: None, without=records)
            self._use(newer)
        self.records += read.num_rows
        partition = records.column("partition")[0].as_py()
        if self._settings.upserts and records.column("key").null_count:
            records = self._with_keys(records, partition)
        rows, dead = self._shape.split(records)
        if dead is not None:
            self._bury(_as_read(dead, read), partition)
            offsets = records.column("offset")
            records = records.filter(pc.invert(pc.is_in(offsets, dead.column("offset"))))
        if self._settings.upserts:
            rows = with_deletions(rows, records.column("value"))
        self._rows.write(rows, partition, records.column("offset"))

    def _without_envelopes(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return records with rows instead of Debezium's change events; write others as dead letters."""
        found, reasons = unwrapped(records)
        if not reasons:
            return found
        rows = pa.array(sorted(reasons), pa.int64())
        lost = records.take(rows)
        texts = pa.array([reasons[row] for row in sorted(reasons)], pa.string())
        arrays = [texts if name == "reason" else lost.column(name) for name in DEAD_SCHEMA.names]
        self._bury(
            pa.RecordBatch.from_arrays(arrays, schema=DEAD_SCHEMA), records.column("partition")[0].as_py()
        )
        return found.filter(pc.invert(pc.is_in(found.column("offset"), lost.column("offset"))))

    def _with_keys(self, records: pa.RecordBatch, partition: int) -> pa.RecordBatch:
        """Return the records with keys; write those without, which cannot be upserted, as dead letters."""
        lost = records.filter(records.column("key").is_null())
        reasons = pa.repeat(pa.scalar("the record has no key, and is to update a row"), lost.num_rows)
        arrays = [reasons if name == "reason" else lost.column(name) for name in DEAD_SCHEMA.names]
        self._bury(pa.RecordBatch.from_arrays(arrays, schema=DEAD_SCHEMA), partition)
        return records.filter(records.column("key").is_valid())

    def _use(self, shape: RowShape) -> None:
        if self._settings.upserts and "key" not in shape.schema.names:
            raise ConfigError("an upsert finds rows by the key of records: name key among the columns")
        self._shape = shape
        self._rows.table.prepare(shape.schema)
        if not self._is_begun:
            self._rows.note_begin()

    def _bury(self, dead: pa.RecordBatch, partition: int) -> None:
        if self._dead is None:
            if self._make_dead is None:
                first = dead.slice(0, 1).to_pylist()[0]
                raise StorageError(
                    f"offset {first['offset']} of {first['topic']}-{partition} does not fit the table: "
                    f"{first['reason']}. Have such records in a table of their own by --dead-letters"
                )
            self._dead = _Side(self._make_dead(), self._settings)
            self._dead.read_back()
            assert self._rows.before is not None
            self._dead.begin(self._rows.before.offsets, self._reader.topic_id)
            self._dead.table.prepare(DEAD_SCHEMA)
        self._dead.write(dead, partition, dead.column("offset"))
        self.dead += dead.num_rows

    def _commit(self, committed: Callable[[Lander], None], without: pa.RecordBatch | None = None) -> None:
        offsets = self._reader.offsets()
        if without is not None:
            offsets[without.column("partition")[0].as_py()] = without.column("offset")[0].as_py()
        before = self.written.commits
        # Dead letters first: a table is never behind the positions of the rows.
        if self._dead is not None:
            self._dead.commit(offsets, self._reader.topic_id)
        self._rows.commit(offsets, self._reader.topic_id)
        self.lag = sum(max(0, end - offsets.get(p, 0)) for p, end in self._reader.ends.items())
        if self.written.commits > before:
            self.committed_s = time.time()
            committed(self)


def _as_read(dead: pa.RecordBatch, read: pa.RecordBatch) -> pa.RecordBatch:
    """Return dead letters with their original values, from before change events were unwrapped."""
    values = read.filter(pc.is_in(read.column("offset"), dead.column("offset"))).column("value")
    return dead.set_column(dead.schema.get_field_index("value"), "value", values)
