"""``penstock consume --value avro``: decodes keys and values with a schema registry to print as JSON."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.cli import waiting
from penstock.cli.outcome import note
from penstock.cli.schema_files import ENVELOPE
from penstock.common.extras import need_arrow

if TYPE_CHECKING:
    from penstock.model import Record
    from penstock.registry.client import RegistryClient
    from penstock.registry.decoding import Decoder


class DecodedFields:
    """Decodes the keys and values of records for ``penstock consume``, one record at a time.

    A field that cannot be decoded stays encoded, and the reason is written to stderr.
    """

    def __init__(self, formats: Mapping[str, str], registry: str) -> None:
        """Prepare to decode keys and values in `formats`, with the schema registry at the URL `registry`.

        Raises:
            ConfigError: the URL is malformed.
            MissingDependencyError: pyarrow is not installed.
        """
        need_arrow("consume --value")
        from penstock.registry.client import RegistryClient

        self._formats = formats
        self._registry: RegistryClient = RegistryClient(registry)
        self._decoders: dict[tuple[str, str], Decoder] = {}

    def text(self, record: Record) -> Record:
        """Return a copy of a record in which the decoded key and value are replaced by JSON text."""
        found: dict[str, Any] = {
            field: None if value is None else json_text(value).encode()
            for field, value in self.values(record).items()
        }
        return record._replace(**found)

    def printer(self, plain_printer: Callable[[Record], bytes]) -> Callable[[Record], bytes]:
        """Return a function that decodes a record's fields to JSON text and calls `plain_printer`."""
        return lambda record: plain_printer(self.text(record))

    def json_printer(self, plain_printer: Callable[[Record], bytes]) -> Callable[[Record], bytes]:
        """Return a function that formats a record as a JSON line, in which decoded fields are JSON values."""

        def line(record: Record) -> bytes:
            found = self.values(record)
            left_out: dict[str, Any] = dict.fromkeys(found)
            shown = json.loads(plain_printer(record._replace(**left_out)))
            shown |= {ENVELOPE[field]: value for field, value in found.items()}
            return json_text(shown).encode() + b"\n"

        return line

    def values(self, record: Record) -> dict[str, Any]:
        """Return a dict from ``key`` and ``value`` to the decoded field, without fields that do not decode.

        Raises:
            RegistryError, NetworkError: the registry refuses a request, or cannot be reached.
        """
        import pyarrow as pa

        from penstock.records.arrow import SCHEMA

        found: dict[str, Any] = {}
        for field in self._formats:
            data = getattr(record, field)
            if data is None:
                found[field] = None
                continue
            headers = pa.array(
                [[{"key": name, "value": value} for name, value in record.headers]],
                SCHEMA.field("headers").type,
            )
            decoded = self._decoder(record.topic, field).decode(pa.array([data], pa.binary()), headers)
            if decoded.is_whole:
                found[field] = decoded.values.to_pylist()[0]
                continue
            reason = decoded.dead["reason"].to_pylist()[0]
            waiting.step_aside()
            place = f"{record.topic} [{record.partition}] at offset {record.offset}"
            note(f"% {place}: the {field} does not decode: {reason}")
        return found

    def _decoder(self, topic: str, field: str) -> Decoder:
        """Return the decoder of a topic's key or value.

        Its reader schema is the newest schema of the subject. Without one, it is the schema whose id is in a
        value.
        """
        decoder = self._decoders.get((topic, field))
        if decoder is None:
            from penstock.registry.decoding import Decoder, newest_version
            from penstock.registry.subjects import topic_subject

            newest = newest_version(self._registry, topic_subject(topic, field))
            schema = None if newest is None else newest.schema
            decoder = Decoder(self._formats[field], self._registry, schema=schema, is_key=field == "key")
            self._decoders[topic, field] = decoder
        return decoder


def json_text(value: object) -> str:
    """Return a decoded value as JSON."""
    return json.dumps(value, ensure_ascii=False, default=plain)


def plain(value: object) -> object:
    """Convert a value for JSON: times, decimals and UUIDs become text, bytes become base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    raise TypeError(f"JSON has nothing for {value!r}")
