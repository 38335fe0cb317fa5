"""Queries that continue with new records: they return rows as they are written, and windows as they close.

A window is closed when the watermark has passed it: the greatest timestamp that has been read, less
`max_lateness`. Partitions that are not yet read up to the end that they had at the start of the query hold
the watermark back, so that old records do not count as late. Rows that arrive after their window was closed
are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.client.background_loop import finish, run
from penstock.common.logs import logger_named
from penstock.errors import ConfigError
from penstock.model import TopicPartition
from penstock.queries.plans import NotingDataset
from penstock.queries.pushdown.wanted import EVERYTHING
from penstock.queries.sources import Ask, TopicSource
from penstock.queries.windows import TO_SPARK, window_of
from penstock.tables.following import TopicFollower
from penstock.tables.reading import CheckedRead
from penstock.tables.spec import ReadSpec

if TYPE_CHECKING:
    from penstock.client.fetch.cursors import FetchedPart
    from penstock.queries.session import SqlSession

OPEN_ROWS_MAX = 5_000_000
"""The most rows that open windows may have in total; more are an error."""

OPEN_BYTES_MAX = 1 << 30
BATCH_BYTES = 1 << 20
WINDOW = "__window"

log = logger_named("penstock.queries")


class LiveQuery:
    """A query that follows one topic: an iterator of batches, which any thread can end by `close`."""

    def __init__(self, session: SqlSession, query: str) -> None:
        """Check that the query can be followed, and derive the columns and ranges to read.

        Raises:
            ConfigError: the query cannot be followed; the message has the reason.
        """
        self._session = session
        self._query = query
        self._name, dataset = session.followed(query)
        if not isinstance(dataset.source, TopicSource):
            raise ConfigError("a topic can be followed, and no log directory")
        self._source, self._dataset = dataset.source, dataset
        noting = NotingDataset(dataset)
        connection = session.connection
        session.put(self._name, noting)
        self.schema: pa.Schema = connection.sql(query).to_arrow_table().schema
        self._window = window_of(connection, query)
        self._ask = noting.asks[0] if noting.asks else Ask(EVERYTHING, ("partition", "timestamp"))
        self._columns = self._needed(noting)
        self.late_rows = 0
        """Number of rows that were left out, because their window was closed before they arrived."""
        self._follower: TopicFollower | None = None
        self._batches = self._rows()

    def _needed(self, noting: NotingDataset) -> list[str]:
        """Return the columns that the query uses; these include `timestamp` if the query has windows."""
        columns = list(noting.columns[0]) if noting.columns else ["partition"]
        if self._window is not None and "timestamp" not in columns:
            columns.append("timestamp")
        return columns

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return self._session.translated(lambda: next(self._batches))

    def close(self) -> None:
        """End the query; another thread that waits for the next batch then stops waiting."""
        if self._follower is not None:
            self._follower.stop()
        with suppress(ValueError):  # it runs in another thread, and ends by itself
            self._batches.close()
            self._session.close()

    def __enter__(self) -> LiveQuery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self) -> Generator[pa.RecordBatch, None, None]:
        starts, ends = self._places()
        source = self._source
        needed = self._dataset.shape.needs(self._columns)
        spec = ReadSpec.checked(
            source.topic, start=starts, columns=needed, isolation=source.isolation, follow=True
        )
        reading = CheckedRead(spec, "", source.config, "kafka")
        follower = self._follower = TopicFollower(reading)
        windows = None
        if self._window is not None:
            lateness = timedelta(milliseconds=source.max_lateness_ms or 0)
            windows = OpenWindows(ends, lateness)
        try:
            run(follower.start())
            while parts := run(follower.next_parts()):
                yield from self._answers(follower, parts, windows)
        finally:
            finish(follower.close())

    def _answers(
        self, follower: TopicFollower, parts: list[FetchedPart], windows: OpenWindows | None
    ) -> Iterator[pa.RecordBatch]:
        for part in parts:
            for decoded in follower.decoded(part, BATCH_BYTES):
                rows = pa.Table.from_batches([self._dataset.shape.made(decoded, self._columns)])
                if windows is None:
                    yield from self._asked(rows)
                else:
                    self._collect(windows, part.tp, rows)
            if windows is not None:
                windows.reached(part.tp, part.next_offset)
        if windows is not None and (moment := windows.watermark()) is not None:
            yield from self._asked(windows.closed(self._window_at(moment)))

    def _collect(self, windows: OpenWindows, tp: TopicPartition, rows: pa.Table) -> None:
        self._session.put(self._name, rows)
        found = self._session.connection.sql(f"select ({self._window}) from {_quoted(self._name)}")
        late = windows.add(tp, rows.append_column(WINDOW, found.to_arrow_table().column(0)))
        if late:
            if not self.late_rows:
                log.warning(
                    "%d records of %s came after their window was closed, and are left out: max_lateness "
                    "keeps windows open for longer", late, self._source.topic,
                )  # fmt: skip
            self.late_rows += late

    def _window_at(self, moment: datetime) -> Any:
        """Return the window that contains `moment`, computed with the query's window expression."""
        micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        asked = f"select ({self._window}) from (select make_timestamptz({micros}) as timestamp)"
        return self._session.connection.sql(asked).to_arrow_table().column(0)[0]

    def _asked(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        if not rows.num_rows:
            return
        self._session.put(self._name, rows)
        found = self._session.connection.sql(self._query).to_arrow_table()
        yield from (batch for batch in found.to_batches() if batch.num_rows)

    def _places(self) -> tuple[dict[int, int], dict[TopicPartition, int]]:
        """Return (start offset per partition, current end offset per partition that has records to read).

        The start offsets follow from the query's conditions on offsets and times.
        """
        whole = self._source.plan(Ask(EVERYTHING, ()))
        wanted = {one.partition: one.start for one in self._source.plan(self._ask)}
        ends = {TopicPartition(one.topic, one.partition): one.end for one in whole}
        starts = {tp.partition: wanted.get(tp.partition, end) for tp, end in ends.items()}
        open_ends = {tp: end for tp, end in ends.items() if starts[tp.partition] < end}
        return starts, open_ends


class OpenWindows:
    """Holds the rows of a live query's open windows, and the watermark that closes windows. Does no I/O."""

    def __init__(self, ends: dict[TopicPartition, int], lateness: timedelta) -> None:
        """Create the object without rows. `lateness` is the `max_lateness` of the query.

        `ends` are the end offsets at the start of the query, of the partitions that had records to read.
        """
        self._left = dict(ends)
        self._lateness = lateness
        self._greatest: dict[TopicPartition, datetime] = {}
        self._rows: list[pa.Table] = []
        self._count = self._bytes = 0
        self._closed_before: Any = None
        """The start of the earliest open window: all windows before it are closed. None before any window
        has been closed.
        """

    def add(self, tp: TopicPartition, rows: pa.Table) -> int:
        """Add rows of a partition to their windows; leave out late rows, and return the number of these.

        Raises:
            ConfigError: too many rows are in open windows.
        """
        late = 0
        newest = pc.max(rows.column("timestamp")).as_py()
        if newest is not None:
            self._greatest[tp] = max(newest, self._greatest.get(tp, newest))
        if self._closed_before is not None:
            kept = rows.filter(pc.greater_equal(rows.column(WINDOW), self._closed_before))
            late, rows = rows.num_rows - kept.num_rows, kept
        if rows.num_rows:
            self._rows.append(rows)
            self._count += rows.num_rows
            self._bytes += rows.nbytes
        if self._count > OPEN_ROWS_MAX or self._bytes > OPEN_BYTES_MAX:
            raise ConfigError(f"more than {OPEN_ROWS_MAX:,} rows or 1 GiB are in open windows: {TO_SPARK}")
        return late

    def reached(self, tp: TopicPartition, next_offset: int) -> None:
        """Record that all offsets of a partition before `next_offset` have been read."""
        if next_offset >= self._left.get(tp, next_offset):
            self._left.pop(tp, None)

    def watermark(self) -> datetime | None:
        """Return the time before which all records have been read, or None if it cannot be computed yet."""
        if not self._greatest:
            return None
        if self._left:
            behind = [self._greatest.get(tp) for tp in self._left]
            known = [one for one in behind if one is not None]
            return min(known) - self._lateness if len(known) == len(behind) else None
        return max(self._greatest.values()) - self._lateness

    def closed(self, window: Any) -> pa.Table:
        """Close the windows that start before `window`; remove their rows and return them."""
        if self._closed_before is not None and window.as_py() <= self._closed_before.as_py():
            window = self._closed_before
        self._closed_before = window
        if not self._rows:
            return pa.table({})
        rows = pa.concat_tables(self._rows)
        is_closed = pc.less(rows.column(WINDOW), window)
        done = rows.filter(is_closed)
        if done.num_rows:
            rest = rows.filter(pc.invert(is_closed))
            self._rows = [rest] if rest.num_rows else []
            self._count, self._bytes = rest.num_rows, rest.nbytes
        return done.drop_columns([WINDOW])


def _quoted(name: str) -> str:
    from penstock.queries.statements import quoted

    return quoted(name)
