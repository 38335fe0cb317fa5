"""Decodes columns of bytes to columns of values: each row with its writer's schema, into one reader's schema.

Rows that cannot be decoded are returned separately with a reason, and never become null. Each schema is
requested from the registry once. After `UNKNOWN_IDS_MAX` unknown schema ids, further ids are not requested
for a minute.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.clock import Clock, SystemClock
from penstock.errors import ConfigError, DecodeError
from penstock.records.kernels.compiled import Bytes, Ints
from penstock.registry.client import Finder, RegistryError, client_of
from penstock.registry.framing import (
    APICURIO_CONTENT_ID,
    APICURIO_GLOBAL_ID,
    GUID_BYTES,
    ID_SIZES,
    KEY_HEADER,
    NO_GLOBAL_IDS,
    VALUE_HEADER,
    SchemaId,
    apicurio_prefix,
    read_message_indexes,
    read_prefix,
)
from penstock.registry.schemas import AVRO, JSON, PROTOBUF, RegisteredSchema, Schema

FORMATS = {"avro": AVRO, "json": JSON, "protobuf": PROTOBUF}
UNKNOWN_IDS_MAX = 100
"""The number of schema ids missing in the registry after which further ids are not requested for a while."""

UNKNOWN_IDS_RETRY_S = 60.0
"""Seconds after the first missing schema id, until missing and further ids are requested again."""

INDEX_BYTES_MAX = 1024
"""The greatest size of the message indexes in front of a Protobuf value, in bytes."""

DEAD_TYPE = pa.schema([("row", pa.int64()), ("reason", pa.string()), ("data", pa.binary())])
_NOT_FOUND = (40403, 404)


@dataclass(frozen=True)
class Decoded:
    """The result of decoding a column of bytes.

    `values` are the decoded rows in order, nulls included; `rows` are their indices in the column. `dead` is
    a table of the undecodable rows: ``row`` (the index), ``reason``, and ``data`` (the undecoded bytes).
    """

    values: pa.Array
    rows: Ints
    dead: pa.Table

    @property
    def is_whole(self) -> bool:
        """Return True if every row was decoded."""
        return not self.dead.num_rows

    def whole(self) -> pa.Array:
        """Return the values of all rows.

        Raises:
            DecodeError: some rows were not decoded; the message has their count, and the first reason.
        """
        if self.dead.num_rows:
            first = self.dead.slice(0, 1).to_pylist()[0]
            raise DecodeError(
                f"{self.dead.num_rows:,} rows do not decode, the first is {first['row']}: {first['reason']}"
            )
        return self.values


Kind = tuple[SchemaId, tuple[int, ...]]
"""The schema of some rows, and the path of their Protobuf message type (empty for other formats). Rows of one
kind are decoded together.
"""


class SchemaReading(Protocol):
    """The interface for reading the values of one writer's schema into the reader's columns."""

    def read(self, data: Bytes, starts: Ints, ends: Ints) -> tuple[pa.Array, Ints, Mapping[int, str]]:
        """Return (decoded values as an array, indices of their rows, a reason for each undecodable row)."""


class ValueFormat(Protocol):
    """The interface of a value format (Avro, JSON or Protobuf) that decodes values to a reader's schema."""

    @property
    def type(self) -> pa.DataType | None:
        """Return the Arrow type of the values, or None if it will be inferred from values."""

    def reading(
        self, writer: Schema, referenced: Mapping[str, Schema], path: tuple[int, ...]
    ) -> SchemaReading:
        """Return a reader of a writer's schema; raise `DecodeError` if its values cannot be read.

        `path` is the path of a Protobuf message type; it is empty if a value does not name its type.
        """


class Decoder:
    """Decodes columns of one topic, batch after batch, into the columns of one reader's schema.

    >>> decoder = Decoder("avro", "http://localhost:8081", subject="orders-value")
    >>> decoder.decode(batch["value"]).values
    """

    def __init__(
        self,
        format: str,
        registry: str | Mapping[str, object] | Finder | None = None,
        *,
        schema: str | Schema | None = None,
        subject: str | None = None,
        is_key: bool = False,
        message: str | None = None,
        id_bytes: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Set up a decoder for a format (``avro``, ``json``, ``protobuf``).

        With a registry, each value contains the id of its schema. The reader's schema is `schema`, or the
        newest version of `subject`, or else the newest schema in the first decoded column. Without a
        registry, values have no prefix, and `schema` is both the writer's and the reader's schema; JSON works
        without one, and its types are inferred. `message` is the full name of a Protobuf message; the default
        is the file's first. Schema ids before values have `id_bytes` bytes: 4, or 8 if Apicurio's serializers
        write long ids; the default is the registry's setting ``id.bytes``.

        Raises:
            ConfigError: the arguments contradict each other.
            RegistryError, NetworkError, DecodeError: the registry has no reader's schema, or an invalid one.
        """
        if format not in FORMATS:
            raise ConfigError(f"the format is {format!r}: it is one of {', '.join(FORMATS)}")
        self._type = FORMATS[format]
        self._finder = None if registry is None else client_of(registry)
        self._message = message
        self._header = KEY_HEADER if is_key else VALUE_HEADER
        self._readings: dict[Kind, SchemaReading | str] = {}
        if id_bytes is None:
            id_bytes = getattr(self._finder, "id_bytes", 4)
        if id_bytes not in ID_SIZES:
            raise ConfigError(f"id_bytes is {id_bytes!r}: ids have 4 bytes, or 8")
        self._id_bytes = id_bytes
        self._clock = SystemClock() if clock is None else clock
        self._unknown = 0
        self._not_read: list[Kind] = []
        self._retry_at = 0.0
        self._format: ValueFormat | None = None
        given = Schema(schema, self._type) if isinstance(schema, str) else schema
        if given is not None and given.type != self._type:
            raise ConfigError(f"the schema is of type {given.type}, the format is {format!r}")
        if given is None and self._finder is not None and subject is not None:
            given = self._finder.version(subject).schema
        if given is not None:
            self._use(given)
        elif self._finder is None:
            if self._type != JSON:
                raise ConfigError(
                    f"values of format {format!r} need a registry, or schema: the text of theirs"
                )
            self._format = _format_of(JSON, None, {}, None)
        self._bare = given

    @property
    def type(self) -> pa.DataType | None:
        """Return the Arrow type of the values, or None if it is not known yet."""
        return None if self._format is None else self._format.type

    @property
    def unknown_ids(self) -> int:
        """Return the number of schema ids in decoded values that the registry lacks.

        The registry is asked for these ids again after a minute.
        """
        return self._unknown

    def decode(
        self, column: pa.Array | pa.ChunkedArray, headers: pa.Array | pa.ChunkedArray | None = None
    ) -> Decoded:
        """Decode a column of bytes.

        `headers` is the column of the records' headers, as in the tables of `read_topic`. Headers may contain
        schema ids.

        Raises:
            ConfigError: the column does not have bytes.
            NetworkError, RegistryError: the registry cannot be reached, or refuses the request.
        """
        column = _one_array(column)
        data, starts, ends = _spans(column)
        present = np.flatnonzero(_presence(column))
        if self._finder is None:
            assert self._format is not None
            bare = (0, ())
            self._readings.setdefault(bare, self._format.reading(self._bare or Schema("true", JSON), {}, ()))
            return self._decode_groups(column, data, starts, ends, {bare: present}, {}, present)
        self._forget_unknown()
        named = _header_ids(headers, self._header)
        reasons: dict[int, str] = {}
        if self._type != PROTOBUF:  # whose message Apicurio names in a header of its own
            foreign, reasons = _apicurio_ids(headers, self._header)
            reasons = {row: reason for row, reason in reasons.items() if row not in named}
            named = {**foreign, **dict.fromkeys(reasons, b""), **named}
        # A null stays a null, also where a header names a schema.
        there = set(present[np.isin(present, np.fromiter(named, dtype=np.int64))].tolist()) if named else ()
        named = {row: named[row] for row in there}
        found, begins, dead = _by_schema(data, starts, ends, present, named, self._id_bytes)
        dead.update((row, reasons[row]) for row in reasons if row in there)
        groups: dict[Kind, Ints]
        if self._type == PROTOBUF:
            groups = _by_message(found, data, begins, ends, named, dead)
        else:
            groups = {(schema_id, ()): rows for schema_id, rows in found.items()}
        if self._format is None and groups:
            self._use_newest(groups)
        return self._decode_groups(column, data, begins, ends, groups, dead, present)

    def _decode_groups(
        self,
        column: pa.Array,
        data: Bytes,
        starts: Ints,
        ends: Ints,
        groups: Mapping[Kind, Ints],
        dead: dict[int, str],
        present: Ints,
    ) -> Decoded:
        arrays, places = [], []
        for kind, rows in groups.items():
            reading = self._reading_of(kind)
            if isinstance(reading, str):
                dead.update(dict.fromkeys(rows.tolist(), reading))
                continue
            is_whole = len(rows) == len(starts)
            array, found, reasons = reading.read(
                data, starts if is_whole else starts[rows], ends if is_whole else ends[rows]
            )
            arrays.append(array)
            places.append(rows[found])
            for row, reason in reasons.items():
                dead[int(rows[row])] = reason
        values = (
            arrays[0]
            if len(arrays) == 1
            else pa.concat_arrays(arrays)
            if arrays
            else pa.nulls(0, self.type or pa.null())
        )
        rows = np.concatenate(places) if places else np.zeros(0, dtype=np.int64)
        values, rows = _in_order(values, rows, len(column), present)
        return Decoded(values, rows, _dead_table(column, dead))

    def _forget_unknown(self) -> None:
        """Drop the unknown schema ids, so that they are requested again, if the first is a minute old."""
        if self._unknown and self._clock.monotonic() >= self._retry_at:
            for kind in self._not_read:
                self._readings.pop(kind, None)
            self._not_read.clear()
            self._unknown = 0

    def _reading_of(self, kind: Kind) -> SchemaReading | str:
        """Return a reader for the values of a writer's schema, or the reason why they cannot be read."""
        found = self._readings.get(kind)
        if found is None:
            found = self._new_reading(*kind)
            if len(self._readings) < UNKNOWN_IDS_MAX * 100:
                self._readings[kind] = found
        return found

    def _new_reading(self, schema_id: SchemaId, path: tuple[int, ...]) -> SchemaReading | str:
        named = f"schema {'GUID' if isinstance(schema_id, uuid.UUID) else 'id'} {schema_id}"
        assert self._finder is not None
        if self._unknown >= UNKNOWN_IDS_MAX:
            self._keep_unknown((schema_id, path))
            return f"{named} was not asked for: {UNKNOWN_IDS_MAX} others are unknown to the registry"
        try:
            schema = self._schema_of(schema_id)
        except RegistryError as error:
            if error.code not in _NOT_FOUND:
                raise
            if not self._unknown:
                self._retry_at = self._clock.monotonic() + UNKNOWN_IDS_RETRY_S
            self._unknown += 1
            self._keep_unknown((schema_id, path))
            return f"{named} is unknown to the registry"
        try:
            if schema.type != self._type:
                return f"{named} is of type {schema.type}, not {self._type}"
            if self._format is None:
                self._use(schema)
            assert self._format is not None
            return self._format.reading(schema, self._finder.referenced(schema), path)
        except DecodeError as error:
            return f"{named}: {error}"

    def _keep_unknown(self, kind: Kind) -> None:
        if len(self._not_read) < UNKNOWN_IDS_MAX * 100:
            self._not_read.append(kind)

    def _schema_of(self, schema_id: SchemaId) -> Schema:
        assert self._finder is not None
        if isinstance(schema_id, uuid.UUID):
            return self._finder.schema_by_guid(str(schema_id))
        return self._finder.schema_by_id(schema_id)

    def _use_newest(self, groups: Mapping[Kind, Ints]) -> None:
        """Make the schema with a column's highest id the reader's schema: newer schemas have higher ids."""
        for kind in sorted((each for each in groups if isinstance(each[0], int)), reverse=True):
            if not isinstance(self._reading_of(kind), str):
                return

    def _use(self, schema: Schema) -> None:
        referenced = {} if self._finder is None else self._finder.referenced(schema)
        self._format = _format_of(self._type, schema, referenced, self._message)


def from_schema(
    column: pa.Array | pa.ChunkedArray,
    format: str,
    registry: str | Mapping[str, object] | Finder | None = None,
    *,
    schema: str | Schema | None = None,
    subject: str | None = None,
    headers: pa.Array | pa.ChunkedArray | None = None,
    is_key: bool = False,
    message: str | None = None,
    id_bytes: int | None = None,
) -> Decoded:
    """Decode one column of bytes: see `Decoder` for the arguments, and `Decoder.decode` for the errors.

    >>> from_schema(table["value"], "avro", "http://localhost:8081").whole()
    """
    decoder = Decoder(
        format,
        registry,
        schema=schema,
        subject=subject,
        is_key=is_key,
        message=message,
        id_bytes=id_bytes,
    )
    return decoder.decode(column, headers)


def _format_of(
    kind: str, schema: Schema | None, referenced: Mapping[str, Schema], message: str | None
) -> ValueFormat:
    if kind == AVRO:
        from penstock.registry.avro.columns import AvroFormat

        assert schema is not None
        return AvroFormat(schema, referenced)
    if kind == PROTOBUF:
        from penstock.registry.protobuf.columns import ProtobufFormat

        assert schema is not None
        return ProtobufFormat(schema, referenced, message)
    from penstock.registry.json_schema.columns import JsonFormat

    return JsonFormat(schema, referenced)


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):  # what is too large for one array stays several
        raise ConfigError(
            "the column has more bytes than one Arrow array holds: decode its chunks one by one"
        )
    if not isinstance(column, pa.Array) or not (
        pa.types.is_binary(column.type)
        or pa.types.is_large_binary(column.type)
        or pa.types.is_string(column.type)
    ):
        kind = getattr(column, "type", type(column).__name__)
        raise ConfigError(f"a column of bytes is needed, not {kind}")
    return column


def _spans(column: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """Return the data of a column of bytes, and the positions where each row begins and ends in the data."""
    _, offsets, data = column.buffers()
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    if not len(column):
        return np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    ends = np.frombuffer(offsets, dtype=width)[column.offset : column.offset + len(column) + 1].astype(
        np.int64
    )
    found = (
        np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(0, dtype=np.uint8)
    )
    return found, ends[:-1], ends[1:]


def _presence(column: pa.Array) -> Any:
    if not column.null_count:
        return np.ones(len(column), dtype=np.bool_)
    return pc.is_valid(column).to_numpy(zero_copy_only=False)


def _header_ids(headers: pa.Array | pa.ChunkedArray | None, name: str) -> dict[int, bytes]:
    """Return a dict from row index to the value of the header `name`; the last of several headers counts."""
    if headers is None:
        return {}
    found: dict[int, bytes] = {}
    chunks = headers.chunks if isinstance(headers, pa.ChunkedArray) else [headers]
    first = 0
    for chunk in chunks:
        entries = chunk.flatten()
        if len(entries):
            chosen = np.flatnonzero(
                pc.equal(pc.struct_field(entries, "key"), name).to_numpy(zero_copy_only=False) == True  # noqa: E712
            )
            if len(chosen):
                rows = pc.list_parent_indices(chunk).to_numpy()[chosen] + first
                data = pc.struct_field(entries, "value").take(pa.array(chosen)).to_pylist()
                found.update(
                    (int(row), each) for row, each in zip(rows, data, strict=True) if each is not None
                )
        first += len(chunk)
    return found


def _apicurio_ids(
    headers: pa.Array | pa.ChunkedArray | None, own: str
) -> tuple[dict[int, bytes], dict[int, str]]:
    """Return a dict from row index to the schema id in Apicurio's headers, as a prefix of format 0.

    A second dict has the reason for each row whose headers have no usable id.
    """
    found = {}
    reasons = dict.fromkeys(_header_ids(headers, APICURIO_GLOBAL_ID[own]), NO_GLOBAL_IDS)
    for row, content_id in _header_ids(headers, APICURIO_CONTENT_ID[own]).items():
        reasons.pop(row, None)
        try:
            found[row] = apicurio_prefix(content_id)
        except DecodeError as error:
            reasons[row] = str(error)
    return found, reasons


def _by_schema(
    data: Bytes, starts: Ints, ends: Ints, present: Ints, named: Mapping[int, bytes], id_bytes: int
) -> tuple[dict[SchemaId, Ints], Ints, dict[int, str]]:
    """Return (rows of each schema, start of each value after its prefix, reasons for rows without schema)."""
    begins = starts.copy()
    dead: dict[int, str] = {}
    groups: dict[SchemaId, list[int] | Ints] = {}
    rare = np.zeros(len(starts), dtype=np.bool_)
    for row, header in named.items():
        rare[row] = True
        _sort_in(groups, dead, row, header)
    first = starts[present]
    sizes = ends[present] - first
    is_short = sizes <= id_bytes
    magic = np.ones(len(present), dtype=np.uint8)
    magic[~is_short] = data[first[~is_short]]
    is_plain = (magic == 0) & ~rare[present]
    if id_bytes == 8:  # numbers of 64 bits with a sign hold no larger id; `read_prefix` refuses it
        is_plain[~is_short] &= data[first[~is_short] + 1] < 0x80
    plain = present[is_plain]
    at = starts[plain]
    ids = np.zeros(len(plain), dtype=np.int64)
    for step in range(1, id_bytes + 1):
        ids = (ids << 8) | data[at + step]
    begins[plain] += id_bytes + 1
    for row in present[~is_plain & ~rare[present]].tolist():
        prefix = data[starts[row] : min(ends[row], starts[row] + GUID_BYTES)].tobytes()
        if _sort_in(groups, dead, row, prefix, id_bytes):
            begins[row] += GUID_BYTES
    found = {key: np.array(rows, dtype=np.int64) for key, rows in groups.items()}
    is_one = len(ids) and bool((ids == ids[0]).all())
    for schema_id in [int(ids[0])] if is_one else np.unique(ids).tolist():
        rows = plain if is_one else plain[ids == schema_id]
        more = found.get(schema_id)
        found[schema_id] = rows if more is None else np.sort(np.concatenate([more, rows]))
    return found, begins, dead


def _sort_in(
    groups: dict[SchemaId, list[int] | Ints],
    dead: dict[int, str],
    row: int,
    prefix: bytes,
    id_bytes: int = 4,
) -> bool:
    try:
        framed = read_prefix(prefix, id_bytes)
    except DecodeError as error:
        dead[row] = str(error)
        return False
    rows = groups.setdefault(framed.schema, [])
    assert isinstance(rows, list)
    rows.append(row)
    return True


def _by_message(
    groups: Mapping[SchemaId, Ints],
    data: Bytes,
    begins: Ints,
    ends: Ints,
    named: Mapping[int, bytes],
    dead: dict[int, str],
) -> dict[Kind, Ints]:
    """Divide rows by Protobuf message type; add the size of the message indexes to the starts in `begins`."""
    found: dict[Kind, Ints] = {}
    for schema_id, rows in groups.items():
        has_byte = begins[rows] < ends[rows]
        is_first = has_byte.copy()
        is_first[has_byte] = data[begins[rows[has_byte]]] == 0
        if named:
            is_first &= ~np.isin(rows, np.fromiter(named, dtype=np.int64))
        paths: dict[tuple[int, ...], list[int]] = {}
        for row in rows[~is_first].tolist():
            header = named.get(row)
            begin, end = int(begins[row]), int(ends[row])
            prefix = data[begin : min(end, begin + INDEX_BYTES_MAX)].tobytes() if header is None else header
            try:
                at = 0 if header is None else read_prefix(header).begin
                path, at = read_message_indexes(prefix, at)
            except DecodeError as error:
                dead[row] = str(error)
                continue
            if header is None:
                begins[row] += at
            paths.setdefault(path, []).append(row)
        plain = rows[is_first]
        begins[plain] += 1
        found.update(
            ((schema_id, path), np.array(each, dtype=np.int64))
            for path, each in paths.items()
            if path != (0,)
        )
        first = np.sort(np.concatenate([plain, np.array(paths.get((0,), []), dtype=np.int64)]))
        if len(first):
            found[schema_id, (0,)] = first
    return found


def _in_order(values: pa.Array, rows: Ints, count: int, present: Ints) -> tuple[pa.Array, Ints]:
    """Return (values in row order with the column's nulls inserted, row numbers of these values)."""
    if len(rows) > 1 and not bool((rows[1:] > rows[:-1]).all()):
        order = np.argsort(rows, kind="stable")
        values, rows = values.take(pa.array(order)), rows[order]
    if len(present) == count:
        return values, rows
    is_null = np.ones(count, dtype=np.bool_)
    is_null[present] = False
    every = np.sort(np.concatenate([rows, np.flatnonzero(is_null)]))
    places = np.searchsorted(rows, every)
    return taken_with_nulls(values, np.where(is_null[every], -1, places)), every


def taken_with_nulls(values: pa.Array, places: Ints) -> pa.Array:
    """Return the values at the indices `places`, with a null for each negative index.

    Arrow's own `take` also puts nulls into the fields of struct values, even into fields that are declared
    not nullable, and such an array cannot be written to Parquet.
    """
    with_null = pa.concat_arrays([values, pa.array([None], values.type)])
    return with_null.take(pa.array(np.where(places < 0, len(values), places)))


def _dead_table(column: pa.Array, dead: Mapping[int, str]) -> pa.Table:
    rows = sorted(dead)
    if not rows:
        return DEAD_TYPE.empty_table()
    data = column.take(pa.array(rows, pa.int64())).cast(pa.binary())
    return pa.table(
        [pa.array(rows, pa.int64()), pa.array([dead[row] for row in rows], pa.string()), data],
        schema=DEAD_TYPE,
    )


def reader_version(finder: Finder, subject: str) -> RegisteredSchema:
    """Return the newest version of a subject.

    Raises:
        ConfigError: there is no such subject; the message says which argument to give.
        RegistryError, NetworkError: the registry refuses the request, or cannot be reached.
    """
    found = newest_version(finder, subject)
    if found is None:
        raise ConfigError(
            f"the registry has no subject {subject!r}: give schema=, or subject= of another name"
        )
    return found


def newest_version(finder: Finder, subject: str) -> RegisteredSchema | None:
    """Return the newest version of a subject, or None if there is no such subject.

    Raises:
        RegistryError, NetworkError: the registry refuses the request, or cannot be reached.
    """
    try:
        return finder.version(subject)
    except RegistryError as error:
        if error.code in (40401, 40402, 404):
            return None
        raise
