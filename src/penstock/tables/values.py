"""Decode the keys and values of topics with their schemas, and collect undecodable records (dead letters)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import ConfigError, DecodeError
from penstock.model import COLUMN_NAMES
from penstock.records.arrow import schema_for
from penstock.registry.dead_letters import SCHEMA, DeadLetters
from penstock.registry.decoding import Decoded, Decoder, reader_version
from penstock.registry.subjects import topic_subject

if TYPE_CHECKING:
    from penstock.model import TopicPartition
    from penstock.registry.client import Finder
    from penstock.registry.schemas import Schema
    from penstock.tables.scans import Batches, PlacedBatches
    from penstock.tables.spec import Topics

PLACES = ("topic", "partition", "offset")
"""The columns that identify an undecodable record (dead letter); they are fetched even if not requested."""


@dataclass(frozen=True)
class Values:
    """Decodes the keys and values that a read returns. It has a decoder for each column to decode."""

    columns: tuple[str, ...]
    decoders: Mapping[str, Decoder]
    dead: DeadLetters | None
    has_registry: bool

    @classmethod
    def checked(
        cls,
        topic: Topics,
        columns: Sequence[str] | None,
        *,
        value: str | None,
        key_format: str | None,
        registry: str | Mapping[str, object] | Finder | None,
        schema: str | Schema | None,
        message: str | None,
        dead_letters: DeadLetters | None,
        needs_types: bool,
    ) -> Values | None:
        """Check the decoding arguments of a read; return None if neither keys nor values have a format.

        `needs_types` requires that the types of the decoded columns are found before any record is read.

        Raises:
            ConfigError: the arguments do not fit each other, a required type is not found, or the registry
                has no such subject.
            RegistryError, NetworkError: the registry refuses the request, or does not answer.
        """
        formats = {"key": key_format, "value": value}
        wanted = {field: each for field, each in formats.items() if each is not None}
        if not wanted:
            if registry is not None or schema is not None or dead_letters is not None or message is not None:
                raise ConfigError(
                    "registry, schema, message and dead_letters decode values: give value=, as 'avro'"
                )
            return None
        chosen = COLUMN_NAMES if columns is None else tuple(columns)
        if missing := [field for field in wanted if field not in chosen]:
            raise ConfigError(f"the {missing[0]} is to be decoded, and columns leaves it out")
        if dead_letters is not None and not isinstance(dead_letters, DeadLetters):
            raise ConfigError(f"dead_letters is {dead_letters!r}: give penstock.registry.DeadLetters()")
        finder = _finder(registry)
        decoders = {}
        for field, each in wanted.items():
            given = schema if field == "value" else None
            if given is None and finder is not None and isinstance(topic, str) and not topic.startswith("^"):
                given = reader_version(finder, topic_subject(topic, field)).schema
            decoders[field] = Decoder(
                each,
                finder,
                schema=given,
                is_key=field == "key",
                message=message if field == "value" else None,
            )
            if needs_types and decoders[field].type is None:
                raise ConfigError(
                    f"a scan has to know the type of the {field} before it reads: give schema=, or one "
                    "topic's name and a registry"
                )
        return cls(chosen, decoders, dead_letters, finder is not None)

    @property
    def fetched(self) -> tuple[str, ...]:
        """The columns to fetch: those requested, topic, partition, offset; with a registry also the headers.

        Headers are fetched because they may have the schema id.
        """
        more = (*PLACES, *(("headers",) if self.has_registry else ()))
        return (*self.columns, *(name for name in more if name not in self.columns))

    @property
    def schema(self) -> pa.Schema:
        """The schema of the decoded batches, once the types are known."""
        fields = [
            pa.field(field.name, self.decoders[field.name].type) if field.name in self.decoders else field
            for field in schema_for(self.columns)
        ]
        return pa.schema(fields)

    def table(self, table: pa.Table) -> pa.Table:
        """Return a table with its keys and values decoded, without the rows that do not decode.

        Raises:
            DecodeError: a row does not decode, and `dead` is None; the message has the partition and offset.
        """
        if any(decoder.type is None for decoder in self.decoders.values()):
            # The reader's schema is the newest that any row names, or what all rows show together.
            table = table.combine_chunks()
        batches = table.to_batches()
        if not batches:
            return self._empty()
        return pa.concat_tables([self._decoded(pa.Table.from_batches([each])) for each in batches])

    def batches(self, batches: Batches) -> DecodedBatches:
        """Return an iterator that decodes the keys and values of `batches`."""
        return DecodedBatches(self, batches)

    def placed_batches(self, batches: PlacedBatches) -> DecodedPlacedBatches:
        """Return an async iterator that decodes the keys and values of `batches`."""
        return DecodedPlacedBatches(self, batches)

    def decoded_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return a batch with decoded columns, or None if no row decodes. Raises the errors of `table`."""
        table = self.table(pa.Table.from_batches([batch]))
        return table.combine_chunks().to_batches()[0] if table.num_rows else None

    def _empty(self) -> pa.Table:
        if any(each.type is None for each in self.decoders.values()):
            return schema_for(self.columns).empty_table()
        return self.schema.empty_table()

    def _decoded(self, table: pa.Table) -> pa.Table:
        for field, decoder in self.decoders.items():
            headers = table["headers"] if self.has_registry else None
            decoded = decoder.decode(table[field], headers)
            if not decoded.is_whole:
                self._bury(table, field, decoded)
                table = table.take(pa.array(decoded.rows))
            table = table.set_column(
                table.schema.get_field_index(field), pa.field(field, decoded.values.type), decoded.values
            )
        return table.select(list(self.columns))

    def _bury(self, table: pa.Table, field: str, decoded: Decoded) -> None:
        places = table.select(list(PLACES)).take(decoded.dead["row"])
        count = decoded.dead.num_rows
        found = pa.table(
            [
                *(places[name] for name in PLACES),
                pa.array([field] * count, pa.string()),
                decoded.dead["reason"],
                decoded.dead["data"],
            ],
            schema=SCHEMA,
        )
        if self.dead is not None:
            self.dead.add(found)
            return
        first: dict[str, Any] = found.slice(0, 1).to_pylist()[0]
        raise DecodeError(
            f"{count:,} {field}s do not decode; the first is at offset {first['offset']} of partition "
            f"{first['partition']} of topic {first['topic']!r}: {first['reason']}. Give "
            "dead_letters=DeadLetters() to have the others"
        )


class DecodedBatches:
    """An iterator that decodes the keys and values of batches lazily, until `close`."""

    def __init__(self, values: Values, batches: Batches) -> None:
        self._values = values
        self._batches = batches

    def __iter__(self) -> DecodedBatches:
        return self

    def __next__(self) -> pa.RecordBatch:
        """Return the next decoded batch with rows. Raises as `Values.table`, and the errors of the read."""
        while True:
            batch = self._values.decoded_batch(next(self._batches))
            if batch is not None:
                return batch

    def close(self) -> None:
        """Close the iterator that the batches come from."""
        self._batches.close()


class DecodedPlacedBatches:
    """An async iterator that decodes batches lazily in another thread, until `aclose`."""

    def __init__(self, values: Values, batches: PlacedBatches) -> None:
        self._values = values
        self._batches = batches

    def __aiter__(self) -> DecodedPlacedBatches:
        return self

    async def __anext__(self) -> tuple[TopicPartition, pa.RecordBatch]:
        """Return (partition, next decoded batch with rows). Raises as `DecodedBatches.__next__`."""
        while True:
            place, found = await self._batches.__anext__()
            batch = await asyncio.to_thread(self._values.decoded_batch, found)
            if batch is not None:
                return place, batch

    async def aclose(self) -> None:
        """Close the async iterator that the batches come from."""
        await self._batches.aclose()


def _finder(registry: str | Mapping[str, object] | Finder | None) -> Finder | None:
    from penstock.registry.client import client_of

    return None if registry is None else client_of(registry)
