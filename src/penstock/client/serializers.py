"""Serializers, from the application's values to bytes, and deserializers, from bytes to values.

Serializers and deserializers take one argument and return one value. They are never called with None: a null
key or value stays null. An exception in one of them becomes an error that names the record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from penstock.errors import DeserializationError, SerializationError
from penstock.model import K, TopicPartition, V

if TYPE_CHECKING:
    from penstock.model import Record

Serializer = Callable[[Any], bytes | None]
Deserializer = Callable[[bytes], Any]

IN_PLACE_OF_JAVA = {
    "StringSerializer": "str.encode",
    "StringDeserializer": "bytes.decode",
    "ByteArraySerializer": "None: bytes are the default",
    "ByteArrayDeserializer": "None: bytes are the default",
    "IntegerSerializer": "lambda number: number.to_bytes(4, 'big', signed=True)",
    "IntegerDeserializer": "lambda data: int.from_bytes(data, 'big', signed=True)",
    "LongSerializer": "lambda number: number.to_bytes(8, 'big', signed=True)",
    "LongDeserializer": "lambda data: int.from_bytes(data, 'big', signed=True)",
    "DoubleSerializer": "struct.Struct('>d').pack",
}
"""A dict from the class name of a Java serializer, without the package, to the Python code that replaces it,
as text for an error message.
"""


def read_function(value: object) -> Callable[[Any], Any]:
    """Return the option `value`, which must be a function of one argument.

    Raises:
        ValueError: `value` is not a function, is a coroutine function, or needs more arguments.
    """
    if isinstance(value, str):
        instead = IN_PLACE_OF_JAVA.get(value.rpartition(".")[2], "str.encode, or bytes.decode to read")
        raise ValueError(f"a function is needed here, not the name of a class; give {instead}")
    if not callable(value):
        raise ValueError("a function of one argument is needed, such as str.encode, or bytes.decode to read")
    import inspect  # rarely needed, and slow to import

    if inspect.iscoroutinefunction(value):
        raise ValueError("an ordinary function is needed, not a coroutine function")
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # some of those written in C have none
        return value
    try:
        signature.bind(None)
    except TypeError:
        raise ValueError(
            f"a function of one argument is needed, and this one is called as {signature}; "
            "wrap it: lambda value: function(value, ...)"
        ) from None
    return value


class Serializers(NamedTuple):
    """The key and value serializers of a producer, called for each record."""

    key: Serializer | None
    value: Serializer | None

    def apply(self, topic: object, key: Any, value: Any) -> tuple[Any, Any]:
        """Return key and value as bytes, each unchanged if it has no serializer.

        Raises:
            SerializationError: a serializer has raised, or has not returned bytes.
        """
        if key is not None and self.key is not None:
            key = _bytes_of(self.key, key, "key_serializer", topic)
        if value is not None and self.value is not None:
            value = _bytes_of(self.value, value, "value_serializer", topic)
        return key, value


def _bytes_of(serializer: Serializer, value: object, name: str, topic: object) -> bytes | None:
    try:
        made: object = serializer(value)
    except Exception as error:
        raise SerializationError(
            f"{name} failed for a {type(value).__name__}: {type(error).__name__}: {error}; "
            f"the record was not sent to topic {topic!r}"
        ) from error
    if made is None or isinstance(made, bytes):
        return made
    if isinstance(made, (bytearray, memoryview)):
        return bytes(made)
    raise SerializationError(
        f"{name} returned {type(made).__name__} for a {type(value).__name__}, bytes or None are needed; "
        f"the record was not sent to topic {topic!r}"
    )


class Deserializers(Generic[K, V]):
    """The key and value deserializers of a consumer, as one function that deserializes a record."""

    __slots__ = ("_key", "_value")

    def __init__(self, key: Deserializer | None, value: Deserializer | None) -> None:
        self._key = key
        self._value = value

    def __call__(self, record: Record) -> Record[K, V]:
        """Return `record` with its key and value deserialized.

        Raises:
            DeserializationError: a deserializer has raised; the error has the original record.
        """
        topic, partition, offset, timestamp, timestamp_type, key, value, headers = record
        read_key: Any = key
        read_value: Any = value
        name = "key_deserializer"
        try:
            if key is not None and self._key is not None:
                read_key = self._key(key)
            name = "value_deserializer"
            if value is not None and self._value is not None:
                read_value = self._value(value)
        except Exception as error:
            raise DeserializationError(
                f"{name} failed for offset {offset} of {TopicPartition(topic, partition)}: "
                f"{type(error).__name__}: {error}; the record is the error's `record`, and the next call "
                "goes on behind it",
                record,
            ) from error
        kind: type[Record[K, V]] = type(record)  # type: ignore[assignment]
        return kind(topic, partition, offset, timestamp, timestamp_type, read_key, read_value, headers)
