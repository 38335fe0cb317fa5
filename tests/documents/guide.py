"""Version 0 of the six APIs of "A Guide To The Kafka Protocol", written and read field by field."""

from __future__ import annotations

from typing import NamedTuple

from documents.raw import (
    COMMIT,
    COMMITTED,
    FETCH,
    METADATA,
    OFFSETS,
    PRODUCE,
    Raw,
    array,
    data,
    i16,
    i32,
    i64,
    string,
)

Place = tuple[str, int]
"""A topic and a partition number."""


class PartitionOf(NamedTuple):
    """The description of a partition in a Metadata response."""

    error: int
    leader: int
    replicas: list[int]
    isr: list[int]


class Described(NamedTuple):
    """The decoded contents of a Metadata response."""

    brokers: dict[int, tuple[str, int]]
    errors: dict[str, int]
    partitions: dict[Place, PartitionOf]


def metadata(raw: Raw, *topics: str) -> Described:
    answer = raw.ask(METADATA, array(string(topic) for topic in topics))
    brokers = {}
    for _ in range(answer.i32()):
        node = answer.i32()
        brokers[node] = (answer.name(), answer.i32())
    errors: dict[str, int] = {}
    partitions = {}
    for _ in range(answer.i32()):
        error, topic = answer.i16(), answer.name()
        errors[topic] = error
        for _ in range(answer.i32()):
            error, number, leader = answer.i16(), answer.i32(), answer.i32()
            replicas, isr = answer.array(answer.i32), answer.array(answer.i32)
            partitions[topic, number] = PartitionOf(error, leader, replicas, isr)
    answer.end()
    return Described(brokers, errors, partitions)


def produce_body(sets: dict[Place, bytes], acks: int = 1, timeout_ms: int = 10_000) -> bytes:
    topics = (
        string(topic) + array([i32(number) + data(messages)]) for (topic, number), messages in sets.items()
    )
    return i16(acks) + i32(timeout_ms) + array(topics)


def produce(raw: Raw, sets: dict[Place, bytes], acks: int = -1) -> dict[Place, tuple[int, int]]:
    """Send Produce 0; return the error code and base offset of each partition."""
    answer = raw.ask(PRODUCE, produce_body(sets, acks))
    found = {}
    for _ in range(answer.i32()):
        topic = answer.name()
        for _ in range(answer.i32()):
            number, error, offset = answer.i32(), answer.i16(), answer.i64()
            found[topic, number] = (error, offset)
    answer.end()
    return found


def fetch_body(
    places: dict[Place, int], wait_ms: int = 0, least: int = 0, most: int = 1 << 20, replica: int = -1
) -> bytes:
    topics = (
        string(topic) + array([i32(number) + i64(offset) + i32(most)])
        for (topic, number), offset in places.items()
    )
    return i32(replica) + i32(wait_ms) + i32(least) + array(topics)


def fetch(
    raw: Raw,
    places: dict[Place, int],
    wait_ms: int = 0,
    least: int = 0,
    most: int = 1 << 20,
    replica: int = -1,
) -> dict[Place, tuple[int, int, bytes]]:
    """Send Fetch 0; return the error code, high watermark and message set of each partition."""
    answer = raw.ask(FETCH, fetch_body(places, wait_ms, least, most, replica))
    found = {}
    for _ in range(answer.i32()):
        topic = answer.name()
        for _ in range(answer.i32()):
            number, error, watermark, messages = answer.i32(), answer.i16(), answer.i64(), answer.data()
            assert messages is not None
            found[topic, number] = (error, watermark, messages)
    answer.end()
    return found


def offsets(raw: Raw, place: Place, time_ms: int, most: int = 10) -> tuple[int, list[int]]:
    topic, number = place
    wanted = string(topic) + array([i32(number) + i64(time_ms) + i32(most)])
    answer = raw.ask(OFFSETS, i32(-1) + array([wanted]))
    assert (answer.i32(), answer.name(), answer.i32(), answer.i32()) == (1, topic, 1, number)
    found = answer.i16(), answer.array(answer.i64)
    answer.end()
    return found


def commit(raw: Raw, group: str, place: Place, offset: int, note: str | None) -> int:
    """Commit an offset with version 0; return the error code.

    The response begins with the topics: no release sent the ClientId that the guide shows before them.
    """
    topic, number = place
    wanted = string(topic) + array([i32(number) + i64(offset) + string(note)])
    answer = raw.ask(COMMIT, string(group) + array([wanted]))
    assert (answer.i32(), answer.name(), answer.i32(), answer.i32()) == (1, topic, 1, number)
    error = answer.i16()
    answer.end()
    return error


def committed(raw: Raw, group: str, place: Place) -> tuple[int, bytes | None, int]:
    """Send OffsetFetch 0; return the offset, the metadata and the error code."""
    topic, number = place
    answer = raw.ask(COMMITTED, string(group) + array([string(topic) + array([i32(number)])]))
    assert (answer.i32(), answer.name(), answer.i32(), answer.i32()) == (1, topic, 1, number)
    found = answer.i64(), answer.string(), answer.i16()
    answer.end()
    return found
