"""`capture_dataset`: the records in a network capture as an Arrow data set."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.errors import ConfigError, DecodeError
from penstock.explorer.captured_records import CapturedBatches, captured_batches
from penstock.explorer.pcap import is_capture
from penstock.model import OffsetRange
from penstock.queries.pushdown.wanted import on_topic
from penstock.queries.sources import Ask
from penstock.queries.watching import StoppedError, Watch

if TYPE_CHECKING:
    from penstock.model import TopicPartition

CAPTURE_BYTES_MAX = 2 << 30
"""The largest capture file, in bytes, that can be read: its TCP connections are reassembled in memory."""


@dataclass(frozen=True)
class CaptureSource:
    """The records in a network capture, each once, ordered by topic, partition and offset."""

    path: str
    topic: str | None = None
    port: int | None = None

    @property
    def title(self) -> str:
        return f"{self.topic or 'the records'} in {self.path}"

    def plan(self, ask: Ask) -> list[OffsetRange]:
        """Return an empty list, since the offset ranges of a capture are known only after reading it."""
        return []

    def batches(self, ask: Ask, watch: Watch) -> Generator[pa.RecordBatch, None, None]:
        """Yield batches of the records that the request `ask` selects.

        Raises:
            OSError: the file cannot be read.
            DecodeError: the file is no capture.
            CorruptRecordError: a batch is damaged.
            StoppedError: `watch` was stopped.
        """
        if ask.wanted.is_nothing or ask.limit == 0 or ask.newest == 0:
            return
        left = ask.limit
        for table in self._partitions(ask):
            if watch.is_stopped:
                raise StoppedError(f"reading {self.title} was ended")
            rows = table.select(list(ask.columns))
            if ask.newest is not None:
                rows = rows.slice(max(0, rows.num_rows - ask.newest))
            if left is not None:
                rows = rows.slice(0, left)
                left -= rows.num_rows
            for batch in rows.combine_chunks().to_batches():
                watch.decoded(batch.num_rows)
                yield batch
            if left == 0:
                return

    def _partitions(self, ask: Ask) -> Iterator[pa.Table]:
        """Yield the records of each selected partition, one partition after the other, with their offsets."""
        columns = tuple(dict.fromkeys((*ask.columns, "offset")))
        found: dict[TopicPartition, list[CapturedBatches]] = {}
        for one in captured_batches(_read(self.path), self.port):
            if self.topic in (None, one.tp.topic) and on_topic(ask.wanted, one.tp.topic).partitions_among(
                [one.tp.partition]
            ):
                found.setdefault(one.tp, []).append(one)
        for _, batches in sorted(found.items()):
            rows = [_rows(one, columns) for one in batches]
            table = pa.concat_tables([pa.Table.from_batches([each]) for group in rows for each in group])
            yield _each_once(table)


def _read(path: str) -> bytes:
    size = os.stat(path).st_size
    if size > CAPTURE_BYTES_MAX:
        raise ConfigError(
            f"{path} has {size:,} bytes; {CAPTURE_BYTES_MAX:,} are the most: cut it, as by editcap -c"
        )
    data = Path(path).read_bytes()
    if not is_capture(data):
        raise DecodeError(f"{path} is no capture in the format pcap or pcapng")
    return data


def _rows(one: CapturedBatches, columns: Sequence[str]) -> list[pa.RecordBatch]:
    from penstock.records.arrow import to_arrow
    from penstock.records.decode import iter_columns

    made = []
    first = one.base_offset
    for piece in iter_columns(one.records, columns=columns):
        batch = to_arrow(piece, *one.tp, columns)
        if first is not None:  # a producer counts from 0; the broker has said where its first record stands
            numbers = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
            place = batch.schema.get_field_index("offset")
            batch = batch.set_column(place, batch.schema.field(place), numbers)
            first += batch.num_rows
        made.append(batch)
    return made


def _each_once(table: pa.Table) -> pa.Table:
    """Return the rows ordered by offset, without repetitions of an offset."""
    offsets = table["offset"].to_numpy()
    _, first = np.unique(offsets, return_index=True)
    if len(first) == len(offsets) and bool((np.diff(offsets) > 0).all()):
        return table
    return table.take(pa.array(first))
