"""Topics that others have filled with anything: every record is a row, with a reason where it is no event."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import Admin, read_topic, write_topic
from penstock.spark import follow
from penstock.spark.source.schema import HEADERS_TYPE

pytestmark = pytest.mark.spark

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
EVENT = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"t")]
JSON = ("content-type", b"application/cloudevents+json")
HUGE = 3 << 20

HOSTILE: dict[str, tuple[bytes | None, list[tuple[str, bytes | None]]]] = {
    "nothing": (None, []),
    "headers that are no text": (b"x", [*EVENT[:3], ("ce_type", b"\xff\xfe\x00")]),
    "a header without a value": (b"x", [*EVENT[:3], ("ce_type", None)]),
    "thousands of headers": (b"x", [(f"h{n}", b"v" * 10) for n in range(5_000)]),
    "a name that is no attribute's": (b"x", [*EVENT, ("ce_\x00\x1b[31m", b"v")]),
    "an id of megabytes": (b"x", [*EVENT[:1], ("ce_id", b"\x80" * HUGE), *EVENT[2:]]),
    "JSON that ends early": (b'{"specversion": "1.0", "id": ', [JSON]),
    "JSON of nothing but brackets": (b"[" * 200_000, [JSON]),
    "JSON that is no object": (b"[1, 2, 3]", [JSON]),
    "no JSON at all": (b"\xff" * 1_000, [JSON]),
    "a format that does not exist": (b"x", [("content-type", b"application/cloudevents+perl; x=\x00")]),
    "a content type that is none": (b"x", [*EVENT, ("content-type", b"\x00\x01 / ;;;")]),
    "a batch of events": (b"[]", [("content-type", b"application/cloudevents-batch+json")]),
}


def table() -> pa.Table:
    good = (b"good", EVENT)
    rows = [row for hostile in HOSTILE.values() for row in (hostile, good)]
    return pa.table(
        {
            "value": pa.array([value for value, _ in rows], pa.binary()),
            "headers": pa.array(
                [[{"key": key, "value": value} for key, value in headers] for _, headers in rows], HEADERS
            ),
        }
    )


def test_what_is_no_event_goes_to_the_dead_letters_with_its_reason(
    spark: Any, brokers: str, numbers: Iterator[int], tmp_path: Path
) -> None:
    topic, letters = f"hostile-{next(numbers)}", f"letters-{next(numbers)}"
    with Admin(bootstrap_servers=brokers) as admin:
        admin.create_topic(topic, partitions=1, config={"max.message.bytes": str(8 * HUGE)})
        admin.create_topic(letters, partitions=1)
    write_topic(table(), topic, brokers, config={"message.max.bytes": str(8 * HUGE)})
    events = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("cloudevents", "columns")
        .load()
    )
    dead = events.where("error is not null").selectExpr(
        "value", "array(struct('reason' as key, encode(error, 'utf-8') as value)) as headers"
    )
    assert dead.schema["headers"].dataType.simpleString() == HEADERS_TYPE.simpleString()
    query = (
        dead.writeStream.format("penstock")
        .option("kafka.bootstrap.servers", brokers)
        .option("topic", letters)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    follow(query, lambda _: None)
    reasons = [row[0]["value"] for row in read_topic(letters, brokers)["headers"].to_pylist()]
    assert len(reasons) == len(HOSTILE)
    # A reason names its rule, and quotes neither megabytes nor control characters.
    assert all(0 < len(reason) < 1_000 for reason in reasons)
    assert not any(byte < 32 for reason in reasons for byte in reason)
    good = (
        spark.read.format("penstock")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", topic)
        .option("cloudevents", "columns")
        .load()
        .where("error is null and cast(data as string) = 'good'")
    )
    assert good.count() == len(HOSTILE)
