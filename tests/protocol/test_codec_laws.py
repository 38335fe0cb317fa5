"""Tests of properties that hold for every message at every version."""

from __future__ import annotations

import random

import pytest

from for_each import for_each
from penstock.errors import DecodeError
from penstock.protocol.codec import codec_for
from protocol import oracle
from protocol.catalogue import NAMES, versions
from protocol.samples import KINDS, extreme, sample

SEEDS = range(3)


@for_each(NAMES)
def test_what_was_written_is_read(name):
    for message_class, definition, version in versions(name):
        codec = codec_for(message_class, version)
        for seed in SEEDS:
            message = sample(message_class, definition, version, seed)
            data = codec.encode(message)
            assert codec.decode(data) == (message, len(data))


@for_each(NAMES)
def test_the_compiled_codec_agrees_with_the_plain_one(name):
    for message_class, definition, version in versions(name):
        codec = codec_for(message_class, version)
        for message in (
            message_class(),
            *(sample(message_class, definition, version, seed) for seed in SEEDS),
            *(extreme(message_class, definition, version, kind) for kind in KINDS if kind != "large"),
        ):
            data = codec.encode(message)
            assert data == oracle.encode(definition, version, message)
            assert codec.decode(data) == (message, len(data))
            assert oracle.decode(definition, version, message_class, data) == (message, len(data))


@for_each(NAMES)
def test_position_trailing_bytes_and_kind_of_buffer_do_not_matter(name):
    for message_class, definition, version in versions(name):
        codec = codec_for(message_class, version)
        message = sample(message_class, definition, version, 0)
        data = codec.encode(message)
        for buffer in (
            b"abc" + data + b"tail",
            bytearray(b"abc" + data),
            memoryview(b"abc" + data + b"\xff"),
        ):
            assert codec.decode(buffer, 3) == (message, 3 + len(data))


@for_each(NAMES)
def test_chunks_are_the_same_bytes(name):
    for message_class, definition, version in versions(name):
        codec = codec_for(message_class, version)
        message = sample(message_class, definition, version, 0)
        assert b"".join(codec.encode_chunks(message)) == codec.encode(message)


@for_each(NAMES)
def test_truncation_is_an_error(name):
    for message_class, definition, version in versions(name):
        codec = codec_for(message_class, version)
        data = codec.encode(sample(message_class, definition, version, 1))
        for end in _places(len(data)):
            with pytest.raises(DecodeError):
                codec.decode(data[:end])


@for_each(NAMES)
def test_corruption_gives_what_the_plain_codec_gives_or_an_error(name):
    for message_class, definition, version in versions(name):
        codec = codec_for(message_class, version)
        data = codec.encode(sample(message_class, definition, version, 2))
        chance = random.Random(f"{name} {version}")
        for place in _places(len(data)):
            broken = bytearray(data)
            broken[place] ^= chance.randrange(1, 256)
            try:
                expected = oracle.decode(definition, version, message_class, broken)
            except oracle.Malformed:
                expected = None
            try:
                found = codec.decode(bytes(broken))
            except DecodeError:
                found = None
            assert found == expected or repr(found) == repr(expected)  # a NaN equals nothing


def _places(size: int) -> list[int]:
    """Return all positions of a message of at most 60 bytes, or 60 random positions of a longer one."""
    return list(range(size)) if size <= 60 else sorted(random.Random(size).sample(range(size), 60))
