"""A batch of records to columns of attributes.

Compiled loops read the rows that are regular, however many extensions they have and in whichever
content mode they are. A row with anything unusual about it goes through `from_record`, alone, so that
both paths give the same answer in the same words. A bad row never fails the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.cloudevents.binding import Profile, from_record
from penstock.cloudevents.columnar import spans as table
from penstock.cloudevents.columnar.arrays import (
    HeaderLists,
    Texts,
    header_lists,
    read_only,
    text_array,
    text_at,
    texts_of,
    zeros,
)
from penstock.cloudevents.columnar.data_decode_kernels import gather_data
from penstock.cloudevents.columnar.declared import ARROW_TYPES, TIMESTAMP, declared_table
from penstock.cloudevents.columnar.envelopes import IMPLIED, SHAPE_MEMBERS, read_envelopes
from penstock.cloudevents.columnar.headers import (
    ASSUME_STRUCTURED,
    ENTRIES,
    ENVELOPES,
    LENIENT,
    find_attributes,
)
from penstock.cloudevents.columnar.memory import Bytes, Int32s
from penstock.cloudevents.columnar.texts import KNOWN_TEXTS, TIME_EXACT, TIME_ONLY_TEXT, TIME_WITH_TEXT
from penstock.cloudevents.event import JSON_TYPE, Event
from penstock.cloudevents.outcome import NO_CLAIM, InvalidEventError, NotAnEvent
from penstock.cloudevents.timestamps import format_timestamp
from penstock.cloudevents.types import (
    WELL_KNOWN_EXTENSIONS,
    AttributeType,
    Timestamp,
    canonical_text,
    read_text,
)
from penstock.errors import ConfigError
from penstock.records.kernels.jit import COMPILED
from penstock.records.kernels.memory import empty

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
"""Every column that `decode_events` can make."""

EVENT_COLUMNS = tuple(name for name in EVENT_SCHEMA.names if name not in ("outcome", "rule"))
"""The columns that it makes unless told otherwise. Enough to write the same events again."""

_BLOCK_ROWS = 4096
_ENTRIES_EXPECTED = 8
"""Extensions of a structured event on average; where a batch has more, rows at its end are asked about."""

USE_KERNELS = COMPILED
"""Uncompiled, the functions for one event are the faster way through a row."""

_SLOTS = {
    "id": table.ID,
    "source": table.SOURCE,
    "specversion": table.SPECVERSION,
    "type": table.TYPE,
    "subject": table.SUBJECT,
    "datacontenttype": table.CONTENT_TYPE,
    "dataschema": table.DATASCHEMA,
}
_PLACES = np.array([table.IN_SIDE, table.IN_HEADERS, table.IN_VALUES, table.IN_SIDE], np.uint8)
_OUTCOMES = pa.array(["event", "not an event", "invalid event"])
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def decode_events(
    batch: Any,
    *,
    columns: Collection[str] = EVENT_COLUMNS,
    profile: Profile = "strict",
    assume_structured: bool = False,
    partitionkey_from_key: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> Any:
    """The batch with columns of attributes added; its own columns pass through as they are.

    `batch` is a `pyarrow.RecordBatch` (or `Table`) with the columns `value` and `headers`, and `key`
    for `partitionkey_from_key`. `columns` says which to add: names of `EVENT_SCHEMA`, or
    ``ce_<name>`` for one extension in a column of its declared type. What is not asked for is not
    built, but every rule is checked. The other options are those of `from_record`.

    `error` is null for a valid event and otherwise says what `from_record` would, rule first; the
    other added columns are null then. `time_text` is filled where the text does not follow from
    `time`; `content_type` is `datacontenttype`, or JSON where the format implied it.

    Raises:
        ConfigError: a column is missing, of the wrong type, unknown or there already.
    """
    options = _Options(profile, assume_structured, partitionkey_from_key, extension_types)
    _check_columns(batch.schema.names, columns)
    if isinstance(batch, pa.Table):
        parts = [_decode(part, columns, options) for part in batch.to_batches()]
        return pa.Table.from_batches(parts, schema_for(columns, batch.schema, extension_types))
    return _decode(batch, columns, options)


def schema_for(
    columns: Collection[str] = EVENT_COLUMNS,
    schema: Any = None,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> Any:
    """The schema of what `decode_events` returns for batches of `schema`."""
    fields = [] if schema is None else list(schema)
    for name in columns:
        if name.startswith("ce_"):
            fields.append(pa.field(name, ARROW_TYPES[extension_types.get(name[3:], AttributeType.STRING)]))
        else:
            fields.append(EVENT_SCHEMA.field(name))
    return pa.schema(fields)


def _check_columns(present: Collection[str], wanted: Collection[str]) -> None:
    for name in ("value", "headers"):
        if name not in present:
            raise ConfigError(f"decode_events needs a column {name!r}; there are {', '.join(present)}")
    for name in wanted:
        if name not in EVENT_SCHEMA.names and not name.startswith("ce_"):
            raise ConfigError(
                f"no event column is called {name!r}; there are {', '.join(EVENT_SCHEMA.names)}"
            )
        if name in present:
            raise ConfigError(f"the batch has a column {name!r} already")


class _Options:
    """The options of `decode_events`, for the kernels and for `from_record`."""

    def __init__(
        self,
        profile: Profile,
        assume_structured: bool,
        partitionkey_from_key: bool,
        extension_types: Mapping[str, AttributeType],
    ) -> None:
        if profile not in ("strict", "lenient"):
            raise ConfigError(f"profile must be 'strict' or 'lenient', not {profile!r}")
        lenient = profile == "lenient"
        self.extension_types = extension_types
        self.ask_all = partitionkey_from_key or not USE_KERNELS
        self.with_keys = partitionkey_from_key
        self.bits = LENIENT * lenient + ASSUME_STRUCTURED * assume_structured
        self.for_record: dict[str, Any] = {
            "profile": profile,
            "assume_structured": assume_structured,
            "partitionkey_from_key": partitionkey_from_key,
            "extension_types": extension_types,
        }
        self.declared = declared_table(extension_types, strict=not lenient)


def _decode(batch: Any, columns: Collection[str], options: _Options) -> Any:
    decoding = Decoding(batch, options)
    arrays = decoding.columns(columns)
    schema = schema_for(columns, batch.schema, options.extension_types)
    return pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=schema)


class Decoding:
    """One batch on its way from records to columns: every row judged, every part located."""

    def __init__(self, batch: Any, options: _Options) -> None:
        self.size: int = batch.num_rows
        self.options = options
        self.records: Texts = texts_of(batch.column("value"), pa.binary())
        self.headers: HeaderLists = header_lists(batch.column("headers"))
        self.rows = zeros(self.size, np.uint8)
        flat_spans = empty(self.size * table.SLOTS * 2, np.int32)
        self.spans = flat_spans.reshape(table.SLOTS, 2, self.size)
        self.times = zeros(self.size, np.int64)
        self.time_states = zeros(self.size, np.uint8)
        self.data_flags = zeros(self.size, np.uint8)
        self.entry_firsts = zeros(self.size, np.int64)
        self.entry_counts = zeros(self.size, np.int32)
        self.entries = empty((len(self.headers.names.ends) - 1) * 4, np.int32).reshape(-1, 4)
        self.side = bytearray(JSON_TYPE.encode())
        self.errors: dict[int, tuple[str, str, int]] = {}
        if options.ask_all:
            self.spans[:, 1] = -1
        else:
            self._run_kernels()
        asked = np.flatnonzero(self.rows == table.ASK)
        if len(asked):
            self._ask(asked, batch)
        self.side_bytes: Bytes = read_only(np.frombuffer(bytes(self.side), np.uint8))
        self.places = _PLACES[self.rows]

    def _run_kernels(self) -> None:
        headers, records, options = self.headers, self.records, self.options
        state = np.zeros(2, np.int64)
        find_attributes(
            headers.firsts,
            headers.lasts,
            headers.names.ends,
            headers.names.data,
            headers.values.ends,
            headers.values.data,
            headers.values.nulls,
            records.ends,
            records.nulls,
            *options.declared,
            options.bits,
            _no_known_texts(),
            self.rows,
            self.spans,
            self.times,
            self.time_states,
            self.entry_firsts,
            self.entry_counts,
            self.entries,
            state,
        )
        if state[ENVELOPES]:
            self._make_room(int(state[ENTRIES]), int(state[ENVELOPES]) * _ENTRIES_EXPECTED)
            read_envelopes(
                records.ends,
                records.data,
                *options.declared,
                _no_known_texts(),
                np.full(SHAPE_MEMBERS * 3, -1, np.int32),
                self.rows,
                self.spans,
                self.times,
                self.time_states,
                self.data_flags,
                self.entry_firsts,
                self.entry_counts,
                self.entries,
                state,
            )
        self.entries = self.entries[: state[ENTRIES]]

    def _make_room(self, used: int, more: int) -> None:
        """Keep `used` entries, with room for `more`; pages that stay empty cost nothing."""
        entries = empty((used + more) * table.ENTRY_FIELDS, np.int32).reshape(-1, table.ENTRY_FIELDS)
        entries[:used] = self.entries[:used]
        self.entries = entries

    def _ask(self, asked: Any, batch: Any) -> None:
        """Let `from_record` judge these rows, and write their events to the side buffer."""
        keys = batch.column("key") if self.options.with_keys and "key" in batch.schema.names else None
        more: list[tuple[int, int, int, int]] = []
        for row in asked.tolist():
            key = None if keys is None else keys[row].as_py()
            outcome = from_record(
                key, text_at(self.records, row), self._headers(row), **self.options.for_record
            )
            if isinstance(outcome, Event):
                self._keep(row, outcome, more)
            else:
                kind = 1 if isinstance(outcome, NotAnEvent) else 2
                self.errors[row] = (str(outcome), outcome.rule, kind)
        if more:
            self.entries = np.concatenate([self.entries, np.array(more, np.int32)])

    def _headers(self, row: int) -> list[tuple[str, bytes | None]]:
        names, values = self.headers.names, self.headers.values
        pairs: list[tuple[str, bytes | None]] = []
        for header in range(self.headers.firsts[row], self.headers.lasts[row]):
            name = text_at(names, header) or b""
            pairs.append((name.decode(errors="replace"), text_at(values, header)))
        return pairs

    def _keep(self, row: int, event: Event, more: list[tuple[int, int, int, int]]) -> None:
        for name, slot in _SLOTS.items():
            self._write(row, slot, getattr(event, name))
        if event.time_text is not None:
            self._write(row, table.TIME, event.time_text)
            self.times[row], self.time_states[row] = _time_cell(event.time, event.time_text)
        if event.data is not None:
            self._write(row, table.DATA, event.data)
        self.data_flags[row] = IMPLIED * event.json_implied
        self.entry_firsts[row] = len(self.entries) + len(more)
        self.entry_counts[row] = len(event.extensions)
        for name, value in event.extensions.items():
            start = len(self.side)
            text = canonical_text(value).encode()
            self.side += name.encode() + text
            more.append((start, len(name), start + len(name), len(text)))

    def _write(self, row: int, slot: int, value: str | bytes | None) -> None:
        if value is not None:
            data = value if isinstance(value, bytes) else value.encode()
            self.spans[slot, :, row] = len(self.side), len(data)
            self.side += data

    def columns(self, names: Collection[str]) -> list[Any]:
        """Columns of `EVENT_SCHEMA`, or of one extension each, as Arrow arrays."""
        made = [self._column(name) for name in names]
        self._gather([column for column in made if isinstance(column, _Texts)])
        return [column.array() if isinstance(column, _Texts) else column for column in made]

    def _column(self, name: str) -> Any:
        slot = _SLOTS.get(name)
        if slot is not None:
            return _Texts(self.spans[slot, 0], self.spans[slot, 1], self.places)
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

    def _gather(self, columns: list[_Texts]) -> None:
        """Copy the texts together, some rows of every column at a time while their bytes are at hand."""
        buffers = (self.headers.values.data, self.records.data, self.side_bytes)
        for first in range(0, self.size, _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, self.size)
            for column in columns:
                if column.nulls < self.size:
                    places, starts = column.places[first:last], column.starts[first:last]
                    table.gather(*buffers, places, starts, column.ends[first : last + 1], column.target)

    def _times(self) -> Any:
        missing = (self.time_states != TIME_EXACT) & (self.time_states != TIME_WITH_TEXT)
        if not missing.any():
            return pa.Array.from_buffers(TIMESTAMP, self.size, [None, pa.py_buffer(self.times)], 0)
        return pa.array(self.times, mask=missing).cast(TIMESTAMP)

    def _time_texts(self) -> Any:
        sizes = np.where(self.time_states >= TIME_WITH_TEXT, self.spans[table.TIME, 1], np.int32(-1))
        return _Texts(self.spans[table.TIME, 0], sizes, self.places)

    def _content_types(self) -> Any:
        starts, sizes = self.spans[table.CONTENT_TYPE, 0], self.spans[table.CONTENT_TYPE, 1]
        implied = self.data_flags & IMPLIED > 0
        if not implied.any():
            return _Texts(starts, sizes, self.places)
        # The side buffer begins with the implied type.
        starts = np.where(implied, np.int32(0), starts)
        sizes = np.where(implied, np.int32(len(JSON_TYPE)), sizes)
        return _Texts(starts, sizes, np.where(implied, np.uint8(table.IN_SIDE), self.places))

    def _extensions(self) -> Any:
        events = self._are_events()
        total = int(self.entry_counts.sum())
        ends = zeros(self.size + 1, np.int32)
        name_ends, value_ends = zeros(total + 1, np.int32), zeros(total + 1, np.int32)
        located = (self.entry_firsts, self.entry_counts, self.entries)
        table.lay_out_entries(*located, ends, name_ends, value_ends)
        names = empty(int(name_ends[-1]), np.uint8)
        values = empty(int(value_ends[-1]), np.uint8)
        if total:
            buffers = (self.headers.names.data, self.headers.values.data, self.records.data, self.side_bytes)
            table.gather_entries(*buffers, self.places, *located, names, values)
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
        return pa.Array.from_buffers(kind, self.size, [bits, pa.py_buffer(ends)], -1, 0, [entries])

    def _extension(self, name: str) -> Any:
        wanted = read_only(np.frombuffer(name.encode() or b"\0", np.uint8))
        starts, sizes = zeros(self.size, np.int32), np.full(self.size, -1, np.int32)
        buffers = (self.headers.names.data, self.records.data, self.side_bytes)
        located = (self.entry_firsts, self.entry_counts, self.entries)
        table.find_entries(*buffers, self.places, *located, wanted, starts, sizes)
        declared = self.options.extension_types.get(name, AttributeType.STRING)
        texts = _Texts(starts, sizes, self.places)
        self._gather([texts])
        return _typed(texts.array(), name, declared)

    def _data(self) -> Any:
        if np.all(self.places[self._are_events()] == table.IN_HEADERS):
            # Binary mode throughout: the data are the values, less those of rows that are no events.
            valid = self.rows == table.BINARY
            if len(self.records.nulls):
                valid &= self.records.nulls == 0
            bits = np.packbits(valid, bitorder="little")
            nulls = self.size - int(np.count_nonzero(valid))
            return text_array(pa.binary(), self.records.ends, self.records.data, bits, nulls)
        data = _Texts(self.spans[table.DATA, 0], self.spans[table.DATA, 1], self.places, pa.binary())
        if data.nulls < self.size:
            source = (self.records.data, self.side_bytes, self.places, self.data_flags)
            gather_data(*source, data.starts, data.ends, data.target)
        return data.array()

    def _are_events(self) -> Any:
        events = self.rows != table.NO_CLAIM
        events[list(self.errors)] = False
        return events

    def _texts_by_row(self, column: int, no_claim: str) -> Any:
        """A column of the texts about rows that are no events."""
        others = self.rows == table.NO_CLAIM
        texts = sorted({no_claim, *(str(error[column]) for error in self.errors.values())})
        if not self.errors and not others.any():
            return pa.nulls(self.size, pa.string())
        number = {text: index for index, text in enumerate(texts)}
        indices = np.full(self.size, -1, np.int32)
        indices[others] = number[no_claim]
        for row, error in self.errors.items():
            indices[row] = number[str(error[column])]
        return pa.array(texts, pa.string()).take(pa.array(indices, mask=indices < 0))

    def _errors(self) -> Any:
        return self._texts_by_row(0, str(NO_CLAIM))

    def _rules(self) -> Any:
        return self._texts_by_row(1, NO_CLAIM.rule)

    def _outcomes(self) -> Any:
        indices = (self.rows == table.NO_CLAIM).astype(np.int8)
        for row, (_, _, kind) in self.errors.items():
            indices[row] = kind
        return _OUTCOMES.take(pa.array(indices))


class _Texts:
    """A column of texts that are still where they were found, with room for them side by side."""

    def __init__(self, starts: Int32s, sizes: Int32s, places: Bytes, kind: Any = None) -> None:
        self.starts = starts
        self.places = places
        self.ends = zeros(len(sizes) + 1, np.int32)
        self._valid = zeros((len(sizes) + 7) // 8, np.uint8)
        self._kind = kind or pa.string()
        self.nulls: int = table.lay_out(sizes, self.ends, self._valid)
        self.target: Bytes = empty(int(self.ends[-1]), np.uint8)

    def array(self) -> Any:
        """As an Arrow array, once the texts are in `target`."""
        if self.nulls == len(self.starts):
            return pa.nulls(len(self.starts), self._kind)
        return text_array(self._kind, self.ends, self.target, self._valid, self.nulls)


def _no_known_texts() -> Int32s:
    """Room for the texts that a kernel has found to be valid: of two kinds, a position and a size each."""
    return np.full(2 * KNOWN_TEXTS * 2, -1, np.int32)


def _time_cell(moment: datetime | None, text: str) -> tuple[int, int]:
    """Microseconds since 1970, and how they relate to the text."""
    if moment is None:
        return 0, TIME_ONLY_TEXT
    utc = moment.astimezone(UTC)
    exact = format_timestamp("time", utc) == text
    return (utc - _EPOCH) // _MICROSECOND, TIME_EXACT if exact else TIME_WITH_TEXT


def _typed(texts: Any, name: str, declared: AttributeType) -> Any:
    """A column of canonical texts as a column of the declared type; null where a text is none of it."""
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
