"""Encodes columns of attributes to records.

The columns are first validated one by one, and the constructor of `Event` checks the rows that the kernels
cannot judge. Then the records are written, again column by column. Every row goes through `to_record` instead
if no kernels are compiled, for structured mode in Avro or Protobuf, and if a valid extension has a text that
is not canonical. The resulting records are equal in all cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.cloudevents.columnar.arrays import (
    Texts,
    constant_texts,
    read_only,
    text_array,
    text_at,
    zeros,
)
from penstock.cloudevents.columnar.attributes import SLOTS, Attributes
from penstock.cloudevents.columnar.event_columns import EVENT_SCHEMA
from penstock.cloudevents.columnar.kernels import envelope_write_kernels, header_write_kernels
from penstock.cloudevents.columnar.kernels.validate_kernels import (
    BASE64,
    QUOTED,
    UNSURE,
    VERBATIM,
    as_null_flags,
    judge_data,
)
from penstock.cloudevents.formats.json_format import MEDIA_TYPE, is_text_in_utf8
from penstock.cloudevents.formats.json_scan import json_text
from penstock.cloudevents.formats.registry import FormatName, format_named
from penstock.cloudevents.headers import CONTENT_TYPE, Mode
from penstock.cloudevents.mediatype import is_json
from penstock.cloudevents.outcome import InvalidEventError
from penstock.cloudevents.types import WELL_KNOWN_EXTENSIONS, AttributeType
from penstock.cloudevents.write_record import KeyMapper, partitionkey_mapper, to_record
from penstock.errors import ConfigError, EncodeError
from penstock.records.arrow import HEADER_TYPE, HEADERS_TYPE
from penstock.records.columns import cut, empty
from penstock.records.kernels.compiled import COMPILED, Bytes, Int32s

USE_KERNELS = COMPILED
"""True if kernels are compiled. Without compilation, the functions for single events are faster than the
kernels.
"""

_BYTES_MAX = 2**31 - 1
_OPENING = '{"specversion":"1.0","id":"'
"""The beginning of every JSON envelope; `specversion` "1.0" is the only valid version."""

_HEADER_NAMES = {name: CONTENT_TYPE if name == "datacontenttype" else f"ce_{name}" for name in SLOTS}
_REPLACED = {*EVENT_SCHEMA.names, "key", "value", "headers"}


def encode_events(
    batch: Any,
    *,
    mode: Mode = "binary",
    key_mapper: KeyMapper | None = None,
    event_format: FormatName = "json",
    text_data: bool = False,
    binary_headers: bool = False,
    errors: Literal["raise", "column"] = "raise",
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> Any:
    """Return the records that carry the events of a batch: columns `key`, `value` and `headers`.

    `batch` is a `pyarrow.RecordBatch` (or `Table`) with the columns that `decode_events` makes; `id`,
    `source` and `type` are required. A null cell is an attribute that is not set; null `data` is an event
    without data. `time` is a timestamp with a zone, or text; `time_text` overrides it if not null. Extensions
    are in the map `extensions`, or each in a column ``ce_<name>``: boolean, integer, binary, timestamp or
    text. `content_type` only marks data as JSON where `datacontenttype` is null.

    `key` is the column of that name, or null; `key_mapper` may be `partitionkey_mapper`. The other options
    are those of `to_record`. Columns that belong to no event (`topic`, `partition`, ...) follow unchanged
    after these three columns.

    Raises:
        EncodeError: a row is not a valid event; the message has the row and the reason. With
            ``errors="column"``, a last column `error` has the reason instead, and the row's value and
            headers are null.
        ConfigError: a column is missing or of the wrong type, or the options are invalid.
    """
    if isinstance(batch, pa.Table):
        parts = [
            encode_events(
                part,
                mode=mode,
                key_mapper=key_mapper,
                event_format=event_format,
                text_data=text_data,
                binary_headers=binary_headers,
                errors=errors,
                extension_types=extension_types,
            )
            for part in batch.to_batches() or [pa.RecordBatch.from_pylist([], schema=batch.schema)]
        ]
        return pa.Table.from_batches(parts)
    if mode not in ("binary", "structured"):
        raise ConfigError(f"mode must be 'binary' or 'structured', not {mode!r}")
    if format_named(event_format) is None:
        raise ConfigError(f"no event format is called {event_format!r}")
    if errors not in ("raise", "column"):
        raise ConfigError(f"errors must be 'raise' or 'column', not {errors!r}")
    if key_mapper not in (None, partitionkey_mapper):
        raise ConfigError("a batch takes partitionkey_mapper only; make other keys a column 'key'")
    attributes = Attributes(batch, extension_types)
    verbatim = attributes.judge(mode)
    if attributes.errors and errors == "raise":
        row = min(attributes.errors)
        raise EncodeError(f"row {row}: {attributes.errors[row]}")
    if verbatim and USE_KERNELS and (mode == "binary" or event_format == "json"):
        value, headers = _Writing(attributes, mode, text_data, binary_headers).records()
    else:
        options = {"text_data": text_data, "binary_headers": binary_headers, "event_format": event_format}
        value, headers = _write_rows(attributes, mode, options)
    key = _keys(batch, attributes, key_mapper)
    others = [name for name in batch.schema.names if name not in _REPLACED and not name.startswith("ce_")]
    columns = {"key": key, "value": value, "headers": headers}
    columns |= {name: batch.column(name) for name in others}
    if errors == "column":
        texts = {row: str(error) for row, error in attributes.errors.items()}
        columns["error"] = pa.array([texts.get(row) for row in range(batch.num_rows)], pa.string())
    return pa.RecordBatch.from_pydict(columns)


def _keys(batch: Any, attributes: Attributes, key_mapper: KeyMapper | None) -> Any:
    if "key" in batch.schema.names:
        keys = batch.column("key")
        keys = keys.cast(pa.binary()) if keys.type != pa.binary() else keys
    else:
        keys = pa.nulls(batch.num_rows, pa.binary())
    if key_mapper is None:
        return keys
    return pc.coalesce(attributes.extension("partitionkey").cast(pa.binary()), keys)


def _write_rows(attributes: Attributes, mode: Mode, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the columns `value` and `headers`, made row by row with `to_record`."""
    values: list[bytes | None] = []
    headers: list[list[tuple[str, bytes]] | None] = []
    for row in range(attributes.size):
        try:
            event = attributes.event(row)
        except InvalidEventError:
            values.append(None)
            headers.append(None)
            continue
        _, value, written = to_record(event, mode=mode, **options)
        values.append(value)
        headers.append(written)
    return pa.array(values, pa.binary()), pa.array(headers, HEADERS_TYPE)


class _Writing:
    """Writes one batch of attribute columns as records. Invalid rows get neither value nor headers."""

    def __init__(self, attributes: Attributes, mode: Mode, text_data: bool, binary_headers: bool) -> None:
        self.attributes = attributes
        self.size = attributes.size
        self.mode = mode
        self.text_data = text_data
        self.binary_headers = binary_headers
        self.wrong: Bytes = zeros(self.size, np.uint8)
        self.wrong[list(attributes.errors)] = 1
        self.has_wrong = bool(attributes.errors)
        self.has_entries = len(attributes.order) > 0

    def records(self) -> tuple[Any, Any]:
        """Return the columns `value` and `headers`."""
        texts = {name: self._without_wrong(texts) for name, texts in self.attributes.texts.items()}
        if self.mode == "binary":
            texts["datacontenttype"] = self._without_wrong(self.attributes.content_types)
            columns = {_HEADER_NAMES[name]: column for name, column in texts.items()}
            return self._data(), self._headers(columns, self.has_entries)
        value = self._envelopes(texts)
        if not self.binary_headers:
            return value, self._only_header(CONTENT_TYPE, MEDIA_TYPE)
        columns = {CONTENT_TYPE: self._without_wrong(constant_texts(MEDIA_TYPE.encode(), self.size))}
        del texts["datacontenttype"]
        columns |= {_HEADER_NAMES[name]: column for name, column in texts.items()}
        return value, self._headers(columns, self.has_entries)

    def _without_wrong(self, texts: Texts) -> Texts:
        if not self.has_wrong:
            return texts
        nulls = empty(self.size, np.uint8)
        as_null_flags(self.wrong, texts.nulls, nulls)
        return Texts(texts.ends, texts.data, read_only(nulls))

    def _data(self) -> Any:
        """Return the data column with nulls in the invalid rows, otherwise unchanged."""
        ends, data, nulls = self._without_wrong(self.attributes.data)
        count = int(np.count_nonzero(nulls))
        return text_array(pa.binary(), ends, data, np.packbits(nulls == 0, bitorder="little"), count)

    def _headers(self, columns: Mapping[str, Texts], with_entries: bool) -> Any:
        """Return a headers column with a header for each attribute text, and for each extension."""
        entries, order = self.attributes.entries, self.attributes.order
        columns = {name: texts for name, texts in columns.items() if not _is_empty(texts)}
        names = [name.encode() for name in columns]
        facts = np.zeros((len(columns), envelope_write_kernels.FACTS), np.int32)
        total = name_bytes = value_bytes = 0  # at most
        for number, texts in enumerate(columns.values()):
            count = self.size - int(np.count_nonzero(texts.nulls))
            total += count
            name_bytes += count * len(names[number])
            value_bytes += _size(texts)
            facts[number] = len(texts.data), len(names[number]), len(texts.nulls) > 0, True
        if with_entries:
            total += len(order)
            name_bytes += _size(entries.names) + len("ce_") * len(order)
            value_bytes += _size(entries.values)
        room = [_room(size + envelope_write_kernels.SLACK_BYTES) for size in (name_bytes, value_bytes)]
        list_ends, name_ends, value_ends = (zeros(size + 1, np.int32) for size in (self.size, total, total))
        names_at = _side_by_side(names, header_write_kernels.NAME_BYTES)
        source: tuple[Any, ...] = (names_at, *_arrays(columns), facts.reshape(-1), entries.ends)
        source += (*entries.names[:2], *entries.values, order if with_entries else order[:0], self.wrong)
        target: tuple[Any, ...] = (list_ends, name_ends, room[0], value_ends, room[1])
        header_write_kernels.write_headers(*source, *target)
        name_ends, value_ends = name_ends[: list_ends[-1] + 1], value_ends[: list_ends[-1] + 1]
        parts = (cut(room[0], int(name_ends[-1])), value_ends, cut(room[1], int(value_ends[-1])))
        return self._header_lists(list_ends, name_ends, *parts)

    def _only_header(self, name: str, value: str) -> Any:
        """Return a headers column in which every row has the same single header."""
        ends = zeros(self.size + 1, np.int32)
        np.cumsum(self.wrong == 0, out=ends[1:])
        parts = [constant_texts(text.encode(), int(ends[-1]))[:2] for text in (name, value)]
        return self._header_lists(ends, *parts[0], *parts[1])

    def _header_lists(
        self, ends: Int32s, name_ends: Int32s, names: Bytes, value_ends: Int32s, values: Bytes
    ) -> Any:
        nothing = np.zeros(0, np.uint8)
        structs = pa.StructArray.from_arrays(
            [
                text_array(pa.string(), name_ends, names, nothing, 0),
                text_array(pa.binary(), value_ends, values, nothing, 0),
            ],
            fields=list(HEADER_TYPE),
        )
        bits = pa.py_buffer(np.packbits(self.wrong == 0, bitorder="little")) if self.has_wrong else None
        return pa.Array.from_buffers(HEADERS_TYPE, self.size, [bits, pa.py_buffer(ends)], -1, 0, [structs])

    def _envelopes(self, columns: Mapping[str, Texts]) -> Any:
        """Return the events in the JSON format: first compute the total size, then write row by row."""
        attributes, entries = self.attributes, self.attributes.entries
        present = {
            name: texts for name, texts in columns.items() if name != "specversion" and not _is_empty(texts)
        }
        members, size = _members(present, attributes.ordinary)
        bare = np.zeros(len(attributes.order), np.uint8)
        flat: tuple[Any, ...] = (entries.ends, *entries.names[:2], *entries.values)
        if self.has_entries:
            judged: tuple[Any, ...] = (self.wrong, *attributes.declared, bare)
            size += envelope_write_kernels.entries_size(*flat, *judged)
        data: tuple[Any, ...] = (self._choices(), *attributes.data[:2])
        size += envelope_write_kernels.data_size(*data)
        size += 2 * self.size  # the quote after the attributes and the closing brace
        target, ends = _room(size + envelope_write_kernels.SLACK_BYTES), zeros(self.size + 1, np.int32)
        more: tuple[Any, ...] = (*flat, attributes.order, bare, *data, self.wrong, target, ends)
        envelope_write_kernels.write_envelopes(*members, *more)
        bits = np.packbits(self.wrong == 0, bitorder="little")
        return text_array(pa.binary(), ends, cut(target, int(ends[-1])), bits, len(attributes.errors))

    def _choices(self) -> Bytes:
        """Return for each row the form of its data in the JSON envelope: unchanged, a string, or base64."""
        attributes = self.attributes
        data = self._without_wrong(attributes.data)
        types = attributes.content_types
        choices = empty(self.size, np.uint8)
        judge_data(*data, *types, self.text_data, choices)
        for row in np.flatnonzero(choices == UNSURE).tolist():
            content_type = (text_at(types, row) or b"").decode()
            if is_json(content_type):
                verbatim = json_text(text_at(data, row) or b"") is not None
                choices[row] = VERBATIM if verbatim else BASE64
            else:
                choices[row] = QUOTED if is_text_in_utf8(content_type) else BASE64
        return choices


def _is_empty(texts: Texts) -> bool:
    return len(texts.nulls) > 0 and bool(texts.nulls.all())


def _members(columns: Mapping[str, Texts], ordinary: Mapping[str, bool]) -> tuple[tuple[Any, ...], int]:
    """Return attribute columns as arrays for `write_envelopes`, and the maximum size of their JSON."""
    prefixes = [(_OPENING if name == "id" else f'","{name}":"').encode() for name in columns]
    facts = np.zeros((len(columns), envelope_write_kernels.FACTS), np.int32)
    total = 0
    for number, (name, texts) in enumerate(columns.items()):
        size = quoted = _size(texts)
        if not ordinary.get(name):
            quoted = envelope_write_kernels.quoted_column_size(*texts[:2])
        facts[number] = len(texts.data), len(prefixes[number]), len(texts.nulls) > 0, quoted == size
        total += len(prefixes[number]) * (len(texts.ends) - 1 - int(np.count_nonzero(texts.nulls))) + quoted
    shown = _side_by_side(prefixes, envelope_write_kernels.PREFIX_BYTES)
    return (shown, *_arrays(columns), facts.reshape(-1)), total


def _size(texts: Texts) -> int:
    return int(texts.ends[-1] - texts.ends[0])


def _side_by_side(texts: list[bytes], width: int) -> Bytes:
    """Return texts in one array, each padded with zero bytes to `width` bytes."""
    return np.frombuffer(b"".join(text.ljust(width, b"\0") for text in texts), np.uint8)


def _arrays(columns: Mapping[str, Texts]) -> list[Any]:
    """Split columns into three lists for kernels: the bytes, text ends and null flags of each column."""
    return [[texts[part] for texts in columns.values()] for part in (1, 0, 2)]


def _room(size: int) -> Bytes:
    if size > _BYTES_MAX:
        raise EncodeError(f"the batch makes a column of {size} bytes; give smaller batches")
    room: Bytes = empty(size, np.uint8)
    return room
