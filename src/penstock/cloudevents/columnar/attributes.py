"""Converts the attribute columns of a batch of events to columns of text, and validates them.

The input may have columns of many types: strings with offsets of 32 or 64 bits, typed extension columns
beside the map `extensions`, times with or without `time_text`. The output is one column of text for each core
attribute, one list of extensions for each row, and the error of each invalid row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.cloudevents.columnar.arrays import (
    Entries,
    Texts,
    constant_texts,
    map_entries,
    no_texts,
    null_flags,
    read_only,
    text_at,
    texts_of,
    zeros,
)
from penstock.cloudevents.columnar.declared import TIMESTAMP, declared_table, type_of_column
from penstock.cloudevents.columnar.kernels.header_write_kernels import MICROS_MAX, MICROS_MIN, write_times
from penstock.cloudevents.columnar.kernels.spans import (
    CONTENT_TYPE,
    DATASCHEMA,
    ID,
    SOURCE,
    SPECVERSION,
    SUBJECT,
    TIME,
    TYPE,
)
from penstock.cloudevents.columnar.kernels.texts import KNOWN_TEXTS
from penstock.cloudevents.columnar.kernels.validate_kernels import check_entries, check_texts, is_ordinary
from penstock.cloudevents.event import JSON_TYPE, REQUIRED, Event, imply_json
from penstock.cloudevents.event import SPECVERSION as SPECVERSION_TEXT
from penstock.cloudevents.headers import Mode
from penstock.cloudevents.outcome import InvalidEventError
from penstock.cloudevents.types import AttributeType, AttributeValue, canonical_text
from penstock.cloudevents.write_record import content_type_header
from penstock.errors import ConfigError
from penstock.records.columns import empty
from penstock.records.kernels.compiled import Bytes, Int32s

SLOTS = {
    "specversion": SPECVERSION,
    "id": ID,
    "source": SOURCE,
    "type": TYPE,
    "datacontenttype": CONTENT_TYPE,
    "dataschema": DATASCHEMA,
    "subject": SUBJECT,
    "time": TIME,
}
"""A dict from each core attribute, in the order of writing, to the number that the compiled kernels use for
it.
"""

_TIME_TEXT_BYTES_MAX = 27


class Attributes:
    """The attributes of a batch of events as columns of text, and the errors of invalid rows."""

    def __init__(self, batch: Any, extension_types: Mapping[str, AttributeType]) -> None:
        self.size: int = batch.num_rows
        self._columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name in ("id", "source", "type"):
            if name not in self._columns:
                raise ConfigError(f"encode_events needs a column {name!r}")
        self.extension_types = {**extension_types, **self._column_types(extension_types)}
        self.declared = declared_table(self.extension_types, strict=True)
        self.errors: dict[int, InvalidEventError] = {}
        self.texts: dict[str, Texts] = {name: self._texts(name) for name in SLOTS if name != "time"}
        if "specversion" not in self._columns:
            self.texts["specversion"] = constant_texts(SPECVERSION_TEXT.encode(), self.size)
        self.texts["time"] = self._time_texts()
        self.content_types = self._content_types()
        self.data = self._texts("data", pa.binary())
        self.names, self.values, self.entries = self._entries()
        self.order: Int32s = empty(len(self.entries.names.ends) - 1, np.int32)
        self.ordinary: dict[str, bool] = {"time": True}
        """A dict from column to a flag: True if JSON needs no escapes for any of the column's texts."""

    def _column_types(self, declared: Mapping[str, AttributeType]) -> dict[str, AttributeType]:
        """Return the declared types of the extensions in typed columns ``ce_<name>``, by extension name."""
        found: dict[str, AttributeType] = {}
        for name, array in self._columns.items():
            kind = type_of_column(array.type) if name.startswith("ce_") else None
            if kind is None:
                continue
            if declared.get(name[3:], kind) is not kind:
                raise ConfigError(
                    f"column {name}: a {declared[name[3:]].value} is declared, this is {array.type}"
                )
            found[name[3:]] = kind
        return found

    def _texts(self, name: str, kind: Any = None) -> Texts:
        array = self._columns.get(name)
        return no_texts(self.size) if array is None else texts_of(array, kind or pa.string())

    def _content_types(self) -> Texts:
        """Return each row's media type of the data: `datacontenttype`, or JSON if `content_type` is JSON."""
        given = self._columns.get("datacontenttype")
        effective = self._columns.get("content_type")
        if effective is None or (given is not None and given.null_count == 0):
            return self.texts["datacontenttype"]
        implied = pc.if_else(pc.equal(effective.cast(pa.string()), JSON_TYPE), JSON_TYPE, None)
        if "data" in self._columns:
            implied = pc.if_else(self._columns["data"].is_valid(), implied, None)
        return texts_of(
            implied if given is None else pc.coalesce(given.cast(pa.string()), implied), pa.string()
        )

    def _time_texts(self) -> Texts:
        self.given_times = texts = self._texts("time_text")
        times = self._columns.get("time")
        if times is None or pa.types.is_null(times.type):
            return texts
        if not pa.types.is_timestamp(times.type):
            if "time_text" in self._columns:
                times = pc.coalesce(self._columns["time_text"].cast(pa.string()), times.cast(pa.string()))
            self.given_times = texts_of(times, pa.string())
            return self.given_times
        micros = times_in_micros(times)
        nulls = null_flags(times)
        wrong = (micros < MICROS_MIN) | (micros > MICROS_MAX)
        if len(nulls):
            wrong &= nulls == 0
        if wrong.any():
            for row in np.flatnonzero(wrong).tolist():
                self.errors[row] = InvalidEventError("T7", "time is not within the years 1 to 9999")
            nulls = read_only((wrong | (nulls == 1 if len(nulls) else False)).view(np.uint8))
        ends, missing = zeros(self.size + 1, np.int32), zeros(self.size, np.uint8)
        target = empty(self.size * _TIME_TEXT_BYTES_MAX + len(texts.data), np.uint8)
        write_times(micros, nulls, *texts, ends, target, missing)
        return Texts(read_only(ends), read_only(target[: ends[-1]]), read_only(missing))

    def _entries(self) -> tuple[Any, Any, Entries]:
        """Return the names and values of all extensions as Arrow arrays, and as `Entries` for the kernels."""
        columns = {name[3:]: array for name, array in self._columns.items() if name.startswith("ce_")}
        array = self._columns.get("extensions")
        if array is None or pa.types.is_null(array.type):
            names, values = pa.array([], pa.string()), pa.array([], pa.string())
            entries = Entries(read_only(zeros(self.size + 1, np.int32)), *(no_texts(0), no_texts(0)))
        else:
            entries = map_entries(array)
            names, values = array.keys.cast(pa.string()), array.items.cast(pa.string())
        if columns:
            names, values, ends = _merge(names, values, entries.ends, columns)
            entries = Entries(read_only(ends), texts_of(names, pa.string()), texts_of(values, pa.string()))
        return names, values, entries

    def judge(self, mode: Mode) -> bool:
        """Validate all rows and fill `errors`; return True if all valid extensions have canonical text."""
        doubts = zeros(self.size, np.uint8)
        for name, slot in SLOTS.items():
            texts = self.texts[name]
            given = self.given_times if slot == TIME else texts  # what was made of a time is a timestamp
            if not len(given.nulls) or not given.nulls.all():
                known = np.full(KNOWN_TEXTS * 2, -1, np.int32)
                self.ordinary[name] = is_ordinary(*given[:2])
                check_texts(slot, *given, self.ordinary[name], known, doubts)
            if name in REQUIRED and len(texts.nulls):
                doubts |= texts.nulls
        if len(self.order):
            names, values = self.entries.names[:2], self.entries.values
            arguments: tuple[Any, ...] = (*names, *values, *self.declared, self.order, doubts)
            check_entries(self.entries.ends, *arguments)
        verbatim = True
        for row in np.flatnonzero(doubts).tolist():
            if row not in self.errors:
                verbatim &= self._judge_row(row, mode)
        return verbatim

    def _judge_row(self, row: int, mode: Mode) -> bool:
        try:
            event = self.event(row)
            if mode == "binary" and event.content_type is not None:
                content_type_header(event.content_type)
        except InvalidEventError as error:
            self.errors[row] = error
            return True
        return all(canonical_text(event.extensions[name]) == text for name, text in self._extensions(row))

    def event(self, row: int) -> Event:
        """Return one row as an event.

        Raises:
            InvalidEventError: the row is not a valid event.
        """
        if row in self.errors:
            raise self.errors[row]
        values: dict[str, Any] = {name: self._text(name, self.texts[name], row) for name in SLOTS}
        for name in REQUIRED:
            if values[name] is None:
                raise InvalidEventError("C1", f"the required attribute {name} is null")
        extensions: dict[str, AttributeValue | None] = {}
        for name, text in self._extensions(row):
            if name in extensions:
                raise InvalidEventError("C2", f"the extension {name} is there twice")
            extensions[name] = text
        data = text_at(self.data, row)
        event = Event(**values, extensions=extensions, extension_types=self.extension_types, data=data)
        return imply_json(event) if text_at(self.content_types, row) is not None else event

    def _extensions(self, row: int) -> list[tuple[str, str]]:
        ends, names, values = self.entries
        found: list[tuple[str, str]] = []
        for entry in range(ends[row], ends[row + 1]):
            name = self._text("an extension's name", names, entry) or ""
            text = self._text(name, values, entry)
            if text is not None:
                found.append((name, text))
        return found

    def _text(self, name: str, texts: Texts, row: int) -> str | None:
        raw = text_at(texts, row)
        try:
            return None if raw is None else raw.decode()
        except UnicodeDecodeError:
            raise InvalidEventError("K27", f"{name} is not UTF-8 text") from None

    def extension(self, name: str) -> Any:
        """Return the value of the extension `name` in every row, as an Arrow array of strings with nulls."""
        entries = np.flatnonzero(pc.equal(self.names, name).to_numpy(zero_copy_only=False))
        rows = np.searchsorted(self.entries.ends, entries, "right") - 1
        indices = np.full(self.size, -1, np.int64)
        inside = (rows >= 0) & (rows < self.size)  # a slice of a map has the entries of other rows
        indices[rows[inside]] = entries[inside]
        return self.values.take(pa.array(indices, mask=indices < 0))


def times_in_micros(times: Any) -> Any:
    """Return the times of a timestamp column in microseconds since 1970.

    Raises:
        ConfigError: the times have no time zone, or are not whole microseconds.
    """
    if times.type.tz is None:
        raise ConfigError(
            "column time: timestamps without a time zone are no moments; give them one, such as UTC"
        )
    try:
        return times.cast(TIMESTAMP).cast(pa.int64()).fill_null(0).to_numpy()
    except pa.ArrowInvalid:
        raise ConfigError(
            "column time: digits beyond the microsecond would be lost; give time_text"
        ) from None


def _merge(names: Any, values: Any, ends: Int32s, columns: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Combine the extensions of the map and of ``ce_<name>`` columns; return names, values, row ends."""
    size = len(ends) - 1
    first, count = int(ends[0]), int(ends[-1] - ends[0])
    all_names, all_values = [names.slice(first, count)], [values.slice(first, count)]
    rows = [np.repeat(np.arange(size), np.diff(ends))]
    for name, array in columns.items():
        texts = _canonical(array).drop_null()
        all_names.append(pa.array([name]).take(pa.array(np.zeros(len(texts), np.int64))))
        all_values.append(texts)
        rows.append(np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False)))
    every_row = np.concatenate(rows)
    order = pa.array(np.argsort(every_row, kind="stable"))
    merged_ends = zeros(size + 1, np.int32)
    np.cumsum(np.bincount(every_row, minlength=size), out=merged_ends[1:])
    return pa.concat_arrays(all_names).take(order), pa.concat_arrays(all_values).take(order), merged_ends


def _canonical(array: Any) -> Any:
    """Return the values of a column ``ce_<name>`` as strings, in CloudEvents' canonical text form."""
    kind = type_of_column(array.type)
    if kind is AttributeType.BOOLEAN:
        return pc.if_else(array, "true", "false")
    if kind is AttributeType.BINARY:
        return pa.array(
            [None if value is None else canonical_text(value) for value in array.to_pylist()], pa.string()
        )
    if kind is AttributeType.TIMESTAMP:
        micros, nulls = times_in_micros(array), null_flags(array)
        if ((micros < MICROS_MIN) | (micros > MICROS_MAX)).any():
            raise ConfigError("an extension has times outside of the years 1 to 9999")
        ends, missing = zeros(len(array) + 1, np.int32), zeros(len(array), np.uint8)
        target = empty(len(array) * _TIME_TEXT_BYTES_MAX, np.uint8)
        write_times(micros, nulls, *no_texts(len(array)), ends, target, missing)
        bits: Bytes | None = np.packbits(missing == 0, bitorder="little")
        return pa.Array.from_buffers(pa.string(), len(array), [*map(pa.py_buffer, (bits, ends, target))])
    if kind is None and not pa.types.is_string(array.type) and not pa.types.is_large_string(array.type):
        raise ConfigError(f"no extension can be a column of {array.type}")
    return array.cast(pa.string())
