"""Tests of encoding and decoding OTLP metrics; damaged bytes raise only documented errors."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.protobuf import (
    ProtobufError,
    TooManyFieldsError,
    double_field,
    fixed64_field,
    length_field,
    varint_bytes,
    varint_field,
)
from penstock.telemetry.otlp import FIELDS_MAX, Pushed, read_metrics, write_metrics
from penstock.telemetry.points import MetricKind, Point

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LABELS = st.dictionaries(TEXTS, TEXTS, max_size=3).map(lambda labels: tuple(sorted(labels.items())))
VALUES = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
TIMES = st.integers(0, 2**64 - 1)
POINTS = st.builds(Point, TEXTS, st.sampled_from(MetricKind), VALUES, LABELS, TIMES, TIMES)


@given(st.lists(POINTS, max_size=4), st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_what_is_written_is_read(points: list[Point], attributes: dict[str, str]) -> None:
    assert read_metrics(write_metrics(points, attributes)) == Pushed(attributes, points)


@given(st.lists(POINTS, min_size=1, max_size=3), st.binary(max_size=6), st.data())
def test_cut_and_trailing_bytes_give_points_or_an_error(
    points: list[Point], tail: bytes, data: st.DataObject
) -> None:
    whole = write_metrics(points, {"group_id": "g"})
    cut = data.draw(st.integers(0, len(whole)))
    for damaged in (whole[:cut], whole + tail, whole[:cut] + tail + whole[cut:]):
        try:
            found = read_metrics(damaged)
        except (ProtobufError, TooManyFieldsError):
            continue
        assert all(type(point.value) in (int, float) for point in found.points)
    if 0 < cut < len(whole):
        with pytest.raises(ProtobufError):
            read_metrics(whole[:cut])


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_metrics(data)
    except (ProtobufError, TooManyFieldsError):
        return


def metric(name: str, number: int, *fields: bytes) -> bytes:
    """Return an encoded MetricsData message with one metric; `number` is the field of its type.

    The fields are ``gauge`` (5), ``sum`` (7), ``histogram`` (9), ...
    """
    of_metric = length_field(1, name.encode()) + length_field(number, b"".join(fields))
    return length_field(1, length_field(2, length_field(2, of_metric)))


POINT = length_field(1, fixed64_field(3, 7) + fixed64_field(6, -5))


def test_what_opentelemetry_may_add_is_passed_over() -> None:
    added = varint_field(1000, 1) + length_field(99, b"x") + fixed64_field(98, 1) + varint_bytes(97 << 3 | 5)
    added += b"four"
    point = length_field(1, added + fixed64_field(6, 4) + added)
    assert read_metrics(added + metric("m", 5, added, point, added) + added).points == [
        Point("m", MetricKind.GAUGE, 4)
    ]


def test_histograms_and_points_without_a_value_are_left_out() -> None:
    assert read_metrics(metric("m", 9, POINT)).points == []
    assert read_metrics(metric("m", 5, length_field(1, fixed64_field(3, 7)))).points == []


@pytest.mark.parametrize(
    ("temporality", "kind"),
    [(0, MetricKind.TOTAL), (1, MetricKind.DELTA), (2, MetricKind.TOTAL), (77, MetricKind.TOTAL)],
)
def test_temporality_behind_or_before_the_points(temporality: int, kind: MetricKind) -> None:
    said = varint_field(2, temporality)
    for fields in ((said, POINT), (POINT, said)):
        assert [point.kind for point in read_metrics(metric("m", 7, *fields)).points] == [kind]


def test_attributes_of_every_type() -> None:
    def attribute(name: str, value: bytes) -> bytes:
        return length_field(7, length_field(1, name.encode()) + length_field(2, value))

    labels = [
        attribute("text", length_field(1, b"a")),
        attribute("yes", varint_field(2, 1)),
        attribute("minus", varint_field(3, -2)),
        attribute("half", double_field(4, 0.5)),
        attribute("list", length_field(5, b"")),
        attribute("none", b""),
    ]
    point = length_field(1, double_field(4, math.inf) + b"".join(labels))
    (found,) = read_metrics(metric("m", 5, point)).points
    assert dict(found.labels) == {"text": "a", "yes": "true", "minus": "-2", "half": "0.5"}
    assert found.value == math.inf


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x0b", "wire type 3"),
        (b"\x00", "no number of a field"),
        (b"\x0a\x05ab", "ends 3 bytes too late"),
        (b"\x80", "middle of a number"),
        (b"\xff" * 11, "64 bits"),
        (metric("m", 5, varint_field(1, 3)), "wire type 0, not 2"),
        (metric("m", 5, length_field(1, varint_field(4, 3))), "wire type 0, not 1"),
        (metric("\udcff".encode("utf-8", "surrogatepass").decode("latin-1"), 5, POINT)[:-1], "too late"),
        (length_field(1, length_field(2, length_field(2, length_field(1, b"\xff")))), "not UTF-8"),
    ],
)
def test_what_is_wrong_is_named(data: bytes, text: str) -> None:
    with pytest.raises(ProtobufError, match=text):
        read_metrics(data)


def test_a_field_inside_a_message_does_not_reach_behind_it() -> None:
    inner = varint_bytes(1 << 3 | 2) + varint_bytes(50)  # says that it is longer than its message
    with pytest.raises(ProtobufError, match="too late"):
        read_metrics(length_field(1, inner) + bytes(100))
    with pytest.raises(ProtobufError, match="middle"):
        read_metrics(length_field(1, b"\x08\x80") + b"\x01")


def test_fields_are_counted_over_all_messages() -> None:
    flood = varint_field(3, 1) * FIELDS_MAX
    assert read_metrics(flood).points == []
    with pytest.raises(TooManyFieldsError):
        read_metrics(flood + varint_field(3, 1))
    nested = length_field(1, length_field(2, varint_field(3, 1) * 8))
    assert read_metrics(nested, fields_max=10).points == []
    with pytest.raises(TooManyFieldsError):
        read_metrics(nested, fields_max=9)


def test_a_thread_may_pause_between_resources() -> None:
    pauses: list[int] = []
    read_metrics(metric("a", 5, POINT) + metric("b", 5, POINT), between=lambda: pauses.append(1))
    assert len(pauses) == 2


def test_doubles_are_little_endian() -> None:
    assert double_field(4, 1.5) == b"\x21" + struct.pack("<d", 1.5)
