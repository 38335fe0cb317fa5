"""Classifies each row of a batch of records as event or not, and locates the parts of each event.

Compiled loops read the regular rows, in any content mode and with any number of extensions. Each row with
anything unusual goes through `from_record` alone, so that both paths give the same results with the same
messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.cloudevents.columnar.arrays import (
    HeaderLists,
    Texts,
    header_lists,
    read_only,
    text_at,
    texts_of,
    zeros,
)
from penstock.cloudevents.columnar.declared import declared_table
from penstock.cloudevents.columnar.kernels import spans as table
from penstock.cloudevents.columnar.kernels.envelope_read_kernels import IMPLIED, SHAPE_MEMBERS, read_envelopes
from penstock.cloudevents.columnar.kernels.header_read_kernels import (
    ASSUME_STRUCTURED,
    ENTRIES,
    ENVELOPES,
    LENIENT,
    find_attributes,
)
from penstock.cloudevents.columnar.kernels.texts import KNOWN_TEXTS
from penstock.cloudevents.columnar.kernels.timestamp_kernels import TIME_EXACT, TIME_ONLY_TEXT, TIME_WITH_TEXT
from penstock.cloudevents.event import JSON_TYPE, Event
from penstock.cloudevents.outcome import NotAnEvent
from penstock.cloudevents.read_record import Profile, from_record
from penstock.cloudevents.timestamps import format_timestamp
from penstock.cloudevents.types import AttributeType, canonical_text
from penstock.errors import ConfigError
from penstock.records.columns import empty
from penstock.records.kernels.compiled import COMPILED, Bytes, Int32s

_ENTRIES_EXPECTED = 8
"""The number of extensions per structured event for which memory is reserved; rows beyond it go to
`from_record`.
"""

USE_KERNELS = COMPILED
"""True if kernels are compiled. Without compilation, the functions for single events are faster than the
kernels.
"""

CORE_SLOTS = {
    "id": table.ID,
    "source": table.SOURCE,
    "specversion": table.SPECVERSION,
    "type": table.TYPE,
    "subject": table.SUBJECT,
    "datacontenttype": table.CONTENT_TYPE,
    "dataschema": table.DATASCHEMA,
}
_PLACES = np.array([table.IN_SIDE, table.IN_HEADERS, table.IN_VALUES, table.IN_SIDE], np.uint8)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class DecodeOptions:
    """The options of `decode_events`, in the forms for the kernels and for `from_record`."""

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


class LocatedRows:
    """Classifies each row of a batch of records, and stores position and size of every part of its event."""

    def __init__(self, batch: Any, options: DecodeOptions) -> None:
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
        """Enlarge the table of extensions to hold `used` + `more` entries, keeping the first `used`."""
        entries = empty((used + more) * table.ENTRY_FIELDS, np.int32).reshape(-1, table.ENTRY_FIELDS)
        entries[:used] = self.entries[:used]
        self.entries = entries

    def _ask(self, asked: Any, batch: Any) -> None:
        """Decode the rows `asked` with `from_record`, and copy their events' texts to the side buffer."""
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
        for name, slot in CORE_SLOTS.items():
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


def _no_known_texts() -> Int32s:
    """Return an empty table in which kernels store sources and media types that they have found valid."""
    return np.full(2 * KNOWN_TEXTS * 2, -1, np.int32)


def _time_cell(moment: datetime | None, text: str) -> tuple[int, int]:
    """Return a time in microseconds since 1970, and a state: TIME_EXACT if formatting restores its text."""
    if moment is None:
        return 0, TIME_ONLY_TEXT
    utc = moment.astimezone(UTC)
    exact = format_timestamp("time", utc) == text
    return (utc - _EPOCH) // _MICROSECOND, TIME_EXACT if exact else TIME_WITH_TEXT
