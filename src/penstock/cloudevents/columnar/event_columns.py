"""Builds Arrow columns from the events that `LocatedRows` has found in a batch of records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.cloudevents.columnar.arrays import read_only, text_array, zeros
from penstock.cloudevents.columnar.declared import ARROW_TYPES, TIMESTAMP
from penstock.cloudevents.columnar.kernels import spans as table
from penstock.cloudevents.columnar.kernels.data_decode_kernels import gather_data
from penstock.cloudevents.columnar.kernels.envelope_read_kernels import IMPLIED
from penstock.cloudevents.columnar.kernels.timestamp_kernels import TIME_EXACT, TIME_WITH_TEXT
from penstock.cloudevents.columnar.located_rows import CORE_SLOTS, LocatedRows
from penstock.cloudevents.event import JSON_TYPE
from penstock.cloudevents.outcome import NO_CLAIM, InvalidEventError
from penstock.cloudevents.types import AttributeType, Timestamp, read_text
from penstock.records.columns import empty
from penstock.records.kernels.compiled import Bytes, Int32s

EVENT_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("specversion", pa.string()),
        ("type", pa.string()),
        ("subject", pa.string()),
        ("time", TIMESTAMP),
        ("time_text", pa.string()),
        ("datacontenttype", pa.string()),
        ("content_type", pa.string()),
        ("dataschema", pa.string()),
        ("extensions", pa.map_(pa.string(), pa.string())),
        ("data", pa.binary()),
        ("error", pa.string()),
        ("outcome", pa.string()),
        ("rule", pa.string()),
    ]
)
"""The Arrow schema of all columns that `decode_events` can make, except those of single extensions."""

_BLOCK_ROWS = 4096
_OUTCOMES = pa.array(["event", "not an event", "invalid event"])


class EventColumns:
    """Builds the Arrow columns of the events that `LocatedRows` has found in a batch of records."""

    def __init__(self, rows: LocatedRows) -> None:
        self._rows = rows

    def columns(self, names: Collection[str]) -> list[Any]:
        """Return one Arrow array for each of `names`: a column of `EVENT_SCHEMA`, or ``ce_<name>``."""
        made = [self._column(name) for name in names]
        self._gather([column for column in made if isinstance(column, LocatedTexts)])
        return [column.array() if isinstance(column, LocatedTexts) else column for column in made]

    def _column(self, name: str) -> Any:
        slot = CORE_SLOTS.get(name)
        if slot is not None:
            return LocatedTexts(self._rows.spans[slot, 0], self._rows.spans[slot, 1], self._rows.places)
        if name.startswith("ce_"):
            return self._extension(name[3:])
        builders = {
            "time": self._times,
            "time_text": self._time_texts,
            "content_type": self._content_types,
            "extensions": self._extensions,
            "data": self._data,
            "error": self._errors,
            "outcome": self._outcomes,
            "rule": self._rules,
        }
        return builders[name]()

    def _gather(self, columns: list[LocatedTexts]) -> None:
        """Copy the texts of all columns by blocks of rows, whose bytes stay in the CPU's cache."""
        buffers = (self._rows.headers.values.data, self._rows.records.data, self._rows.side_bytes)
        for first in range(0, self._rows.size, _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, self._rows.size)
            for column in columns:
                if column.nulls < self._rows.size:
                    places, starts = column.places[first:last], column.starts[first:last]
                    table.gather(*buffers, places, starts, column.ends[first : last + 1], column.target)

    def _times(self) -> Any:
        missing = (self._rows.time_states != TIME_EXACT) & (self._rows.time_states != TIME_WITH_TEXT)
        if not missing.any():
            return pa.Array.from_buffers(
                TIMESTAMP, self._rows.size, [None, pa.py_buffer(self._rows.times)], 0
            )
        return pa.array(self._rows.times, mask=missing).cast(TIMESTAMP)

    def _time_texts(self) -> Any:
        sizes = np.where(
            self._rows.time_states >= TIME_WITH_TEXT, self._rows.spans[table.TIME, 1], np.int32(-1)
        )
        return LocatedTexts(self._rows.spans[table.TIME, 0], sizes, self._rows.places)

    def _content_types(self) -> Any:
        starts, sizes = self._rows.spans[table.CONTENT_TYPE, 0], self._rows.spans[table.CONTENT_TYPE, 1]
        implied = self._rows.data_flags & IMPLIED > 0
        if not implied.any():
            return LocatedTexts(starts, sizes, self._rows.places)
        # The side buffer begins with the implied type.
        starts = np.where(implied, np.int32(0), starts)
        sizes = np.where(implied, np.int32(len(JSON_TYPE)), sizes)
        return LocatedTexts(starts, sizes, np.where(implied, np.uint8(table.IN_SIDE), self._rows.places))

    def _extensions(self) -> Any:
        events = self._are_events()
        total = int(self._rows.entry_counts.sum())
        ends = zeros(self._rows.size + 1, np.int32)
        name_ends, value_ends = zeros(total + 1, np.int32), zeros(total + 1, np.int32)
        located = (self._rows.entry_firsts, self._rows.entry_counts, self._rows.entries)
        table.lay_out_entries(*located, ends, name_ends, value_ends)
        names = empty(int(name_ends[-1]), np.uint8)
        values = empty(int(value_ends[-1]), np.uint8)
        if total:
            buffers = (
                self._rows.headers.names.data,
                self._rows.headers.values.data,
                self._rows.records.data,
                self._rows.side_bytes,
            )
            table.gather_entries(*buffers, self._rows.places, *located, names, values)
        nothing = np.zeros(0, np.uint8)
        entries = pa.StructArray.from_arrays(
            [
                text_array(pa.string(), name_ends, names, nothing, 0),
                text_array(pa.string(), value_ends, values, nothing, 0),
            ],
            fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())],
        )
        bits = None if events.all() else pa.py_buffer(np.packbits(events, bitorder="little"))
        kind = pa.map_(pa.string(), pa.string())
        return pa.Array.from_buffers(kind, self._rows.size, [bits, pa.py_buffer(ends)], -1, 0, [entries])

    def _extension(self, name: str) -> Any:
        wanted = read_only(np.frombuffer(name.encode() or b"\0", np.uint8))
        starts, sizes = zeros(self._rows.size, np.int32), np.full(self._rows.size, -1, np.int32)
        buffers = (self._rows.headers.names.data, self._rows.records.data, self._rows.side_bytes)
        located = (self._rows.entry_firsts, self._rows.entry_counts, self._rows.entries)
        table.find_entries(*buffers, self._rows.places, *located, wanted, starts, sizes)
        declared = self._rows.options.extension_types.get(name, AttributeType.STRING)
        texts = LocatedTexts(starts, sizes, self._rows.places)
        self._gather([texts])
        return _typed(texts.array(), name, declared)

    def _data(self) -> Any:
        if np.all(self._rows.places[self._are_events()] == table.IN_HEADERS):
            # Binary mode throughout: the data are the values, less those of rows that are no events.
            valid = self._rows.rows == table.BINARY
            if len(self._rows.records.nulls):
                valid &= self._rows.records.nulls == 0
            bits = np.packbits(valid, bitorder="little")
            nulls = self._rows.size - int(np.count_nonzero(valid))
            return text_array(pa.binary(), self._rows.records.ends, self._rows.records.data, bits, nulls)
        data = LocatedTexts(
            self._rows.spans[table.DATA, 0], self._rows.spans[table.DATA, 1], self._rows.places, pa.binary()
        )
        if data.nulls < self._rows.size:
            source = (
                self._rows.records.data,
                self._rows.side_bytes,
                self._rows.places,
                self._rows.data_flags,
            )
            gather_data(*source, data.starts, data.ends, data.target)
        return data.array()

    def _are_events(self) -> Any:
        events = self._rows.rows != table.NO_CLAIM
        events[list(self._rows.errors)] = False
        return events

    def _texts_by_row(self, column: int, no_claim: str) -> Any:
        """Return a text per row: null for an event, `no_claim` for an ordinary record, else from the error.

        `column` selects the item of the error.
        """
        others = self._rows.rows == table.NO_CLAIM
        texts = sorted({no_claim, *(str(error[column]) for error in self._rows.errors.values())})
        if not self._rows.errors and not others.any():
            return pa.nulls(self._rows.size, pa.string())
        number = {text: index for index, text in enumerate(texts)}
        indices = np.full(self._rows.size, -1, np.int32)
        indices[others] = number[no_claim]
        for row, error in self._rows.errors.items():
            indices[row] = number[str(error[column])]
        return pa.array(texts, pa.string()).take(pa.array(indices, mask=indices < 0))

    def _errors(self) -> Any:
        return self._texts_by_row(0, str(NO_CLAIM))

    def _rules(self) -> Any:
        return self._texts_by_row(1, NO_CLAIM.rule)

    def _outcomes(self) -> Any:
        indices = (self._rows.rows == table.NO_CLAIM).astype(np.int8)
        for row, (_, _, kind) in self._rows.errors.items():
            indices[row] = kind
        return _OUTCOMES.take(pa.array(indices))


class LocatedTexts:
    """A column of texts that are not copied yet: where each of them is, and the target buffer."""

    def __init__(self, starts: Int32s, sizes: Int32s, places: Bytes, kind: Any = None) -> None:
        self.starts = starts
        self.places = places
        self.ends = zeros(len(sizes) + 1, np.int32)
        self._valid = zeros((len(sizes) + 7) // 8, np.uint8)
        self._kind = kind or pa.string()
        self.nulls: int = table.lay_out(sizes, self.ends, self._valid)
        self.target: Bytes = empty(int(self.ends[-1]), np.uint8)

    def array(self) -> Any:
        """Return the texts as an Arrow array; they must have been copied to `target` before."""
        if self.nulls == len(self.starts):
            return pa.nulls(len(self.starts), self._kind)
        return text_array(self._kind, self.ends, self.target, self._valid, self.nulls)


def _typed(texts: Any, name: str, declared: AttributeType) -> Any:
    """Return a column of canonical texts in the declared type; a text that does not fit becomes null."""
    kind = ARROW_TYPES[declared]
    if kind == pa.string():
        return texts
    return pa.array([_typed_value(text, name, declared) for text in texts.to_pylist()], kind)


def _typed_value(text: str | None, name: str, declared: AttributeType) -> object:
    if text is None:
        return None
    try:
        value = read_text(name, declared, text)
    except InvalidEventError:  # the lenient profile keeps such a text
        return None
    return value.moment if isinstance(value, Timestamp) else value
