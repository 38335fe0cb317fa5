"""Tests that a request's entries are counted correctly without decoding it, in every API and version."""

from __future__ import annotations

from typing import Any

from broker.bench_node import EVERY_API, make_node, make_topic
from broker.handlers.test_every_version import CASES, REQUESTS
from for_each import for_each
from penstock.broker.requests.request_limits import has_more_entries
from penstock.protocol.api import ApiKey
from penstock.protocol.codec import codec_for


def entries_in(part: Any) -> int:
    """Return the number of array elements in a message, at any depth, plus its unknown tagged fields."""
    total = 0
    for name in (each for base in type(part).__mro__ for each in getattr(base, "__slots__", ())):
        value = getattr(part, name)
        if name == "unknown_tags":
            total += len(value or ())
        elif isinstance(value, list):
            total += len(value) + sum(entries_in(each) for each in value if hasattr(type(each), "__slots__"))
        elif hasattr(type(value), "__slots__") and not isinstance(value, (str, bytes, int, memoryview)):
            total += entries_in(value)
    return total


@for_each(CASES)
def test_entries_are_counted_as_they_are_read(key: ApiKey, version: int) -> None:
    node = make_node(**EVERY_API)
    make_topic(node)
    request = REQUESTS[key](node, version)
    codec = codec_for(type(request), version)
    data = b"".join(map(bytes, codec.encode_chunks(request)))
    frame = memoryview(b"\xff" * 3 + data + b"\xff" * 3)
    entries = entries_in(codec.decode(data)[0])
    assert not has_more_entries(codec.layout, frame, 3, entries)
    if entries:
        assert has_more_entries(codec.layout, frame, 3, entries - 1)
    for end in range(3, len(frame)):
        has_more_entries(codec.layout, frame[:end], 3, 1000)  # what is cut is left to the decoder
