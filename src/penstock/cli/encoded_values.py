"""``penstock produce --value avro``: encodes JSON texts as keys and values with a schema registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.cli.schema_files import schema_in_file
from penstock.errors import ConfigError, EncodeError

if TYPE_CHECKING:
    from penstock.registry.json_rows import JsonRows


@dataclass(frozen=True)
class Encoding:
    """The encoding of keys or values given on the command line: format, schema file, subject."""

    format: str
    schema: str | None = None
    subject: str | None = None
    message: str | None = None


class EncodedFields:
    """Encodes the keys and values of messages with their schemas, for ``penstock produce``."""

    def __init__(self, encodings: Mapping[str, Encoding], registry: str) -> None:
        """Prepare to encode keys and values as `encodings` describes, with the registry at a URL.

        Raises:
            ConfigError, EncodeError: a schema's file cannot be used, or has another format.
        """
        from penstock.registry.client import RegistryClient
        from penstock.registry.json_rows import JsonRows

        client = RegistryClient(registry)
        self._rows: dict[str, JsonRows] = {
            field: JsonRows(
                each.format,
                client,
                schema=None if each.schema is None else schema_in_file(each.schema),
                subject=each.subject,
                is_key=field == "key",
                message=each.message,
            )
            for field, each in encodings.items()
        }

    def messages(self, messages: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yield messages, tuples like `penstock.cli.produce.Fields`, with their keys and values encoded.

        Raises:
            EncodeError: a text does not fit its schema; the error names the message.
            RegistryError, NetworkError: the registry refuses a schema, or cannot be reached.
        """
        for number, (key, value, partition, timestamp_ms, headers, topic) in enumerate(messages, 1):
            try:
                yield (
                    self._encoded("key", key, topic),
                    self._encoded("value", value, topic),
                    partition,
                    timestamp_ms,
                    headers,
                    topic,
                )
            except EncodeError as error:
                raise EncodeError(f"message {number}: {error}") from None

    def _encoded(self, field: str, data: bytes | None, topic: str) -> bytes | None:
        rows = self._rows.get(field)
        return data if rows is None else rows.encode(data, topic)


def encodings_of(
    value: str | None,
    key: str | None,
    schema: str | None,
    key_schema: str | None,
    subject: str | None,
    message: str | None,
    layout: str,
) -> dict[str, Encoding]:
    """Return the encodings of keys and values that the options on the command line select.

    Raises:
        ConfigError: the options contradict each other.
    """
    alone = {"--schema": schema, "--subject": subject, "--message-type": message}
    for option, given in alone.items():
        if given is not None and value is None:
            raise ConfigError(f"{option} goes with --value, which says how values are written")
    if key_schema is not None and key is None:
        raise ConfigError("--key-schema goes with --key-format, which says how keys are written")
    if message is not None and value != "protobuf":
        raise ConfigError("--message-type goes with --value protobuf")
    found = {}
    if value is not None:
        found["value"] = Encoding(value, schema, subject, message)
    if key is not None:
        found["key"] = Encoding(key, key_schema)
    if found and layout not in ("text", "json"):
        raise ConfigError(f"--value and --key-format take JSON texts, not -f {layout}")
    return found
