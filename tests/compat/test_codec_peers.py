"""Message codecs of kio and kafka-python: each reads the bytes Penstock wrote, and writes equal bytes."""

from __future__ import annotations

import importlib
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.protocol.message import Message, Struct
from penstock.protocol.messages.api_versions_response import ApiVersionsResponse
from protocol.catalogue import NAMES, versions
from protocol.samples import extreme, sample

pytestmark = [pytest.mark.compat, pytest.mark.filterwarnings("ignore:.*_text is deprecated")]

Again = Callable[[bytes], bytes]
"""A function that decodes a message with the other codec and returns it encoded again."""


def kio(name: str, version: int) -> Again | None:
    """Return kio's codec of a message, or None for versions that Kafka 4 removed, which kio lacks."""
    from kio.serial import entity_reader, entity_writer

    api, end = re.fullmatch("(.*?)(Request|Response|)", name).groups()
    home = re.sub("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", api).lower()
    try:
        module = importlib.import_module(f"kio.schema.{home}.v{version}.{end.lower() or 'data'}")
    except ModuleNotFoundError:
        return None
    entity = getattr(module, name)
    read, write = entity_reader(entity), entity_writer(entity)

    def again(data: bytes) -> bytes:
        made, end = read(data, 0)
        assert end == len(data)
        buffer = io.BytesIO()
        write(buffer, made)
        return buffer.getvalue()

    return again


def kafka_python(name: str, version: int) -> Again | None:
    """Return kafka-python's codec of a message, or None if it does not have this message and version."""
    homes = [
        importlib.import_module(f"kafka.protocol.{each}")
        for each in ("admin", "consumer", "metadata", "producer")
    ]
    cls = next((getattr(home, name) for home in homes if hasattr(home, name)), None)
    if cls is None or not name.endswith(("Request", "Response")) or not 0 <= version <= cls.max_version:
        return None

    def again(data: bytes) -> bytes:
        read = cls.decode(data, version=version)
        read._header = None  # what was read has none, and cannot be written without
        return read.encode(version=version)

    return again


def messages(
    peer: Callable[[str, int], Again | None],
) -> Iterator[tuple[str, type[Message], object, int, Again]]:
    for name in NAMES:
        for message_class, definition, version in versions(name):
            again = peer(name, version)
            if again is not None:
                yield f"{name} v{version}", message_class, definition, version, again


def strip(value: Any) -> Any:
    """Remove unknown tagged fields from a message, which the other codecs drop.

    ApiVersions error codes are set to 0, since kafka-python decodes any ApiVersions response with an error
    as version 0.
    """
    if isinstance(value, list):
        for each in value:
            strip(each)
    elif isinstance(value, Struct):
        value.unknown_tags = None
        for name in value.__slots__:
            strip(getattr(value, name))
        if isinstance(value, ApiVersionsResponse):
            value.error_code = 0
    return value


@pytest.mark.parametrize(("peer", "least"), [(kio, 300), (kafka_python, 500)])
def test_the_same_bytes(peer, least):
    compared, wrong = 0, []
    for title, message_class, definition, version, again in messages(peer):
        compared += 1
        for message in (
            message_class(),
            extreme(message_class, definition, version, "nulls"),
            extreme(message_class, definition, version, "large"),
        ):
            data = strip(message).encode(version)
            if again(data) != data:
                wrong.append((title, data))
    assert wrong == []
    assert compared >= least


KIO_REFUSES = {"ValueError", "OutOfBoundValue"}
"""Errors that kio raises for values it cannot represent.

These are unknown error codes, times before 1970, and durations beyond `timedelta`.
"""


@pytest.mark.parametrize("peer", [kio, kafka_python])
def test_the_same_bytes_of_anything_that_the_other_takes(peer):
    compared, refused, wrong = 0, Counter(), []
    for title, message_class, definition, version, again in messages(peer):
        for seed in range(3):
            data = strip(sample(message_class, definition, version, seed)).encode(version)
            try:
                written = again(data)
            except Exception as error:
                refused[type(error).__name__] += 1
                continue
            compared += 1
            if written != data:
                wrong.append((title, data[:100], written[:100]))
    assert wrong == []
    assert compared > 1000
    assert refused.keys() <= KIO_REFUSES if peer is kio else not refused
