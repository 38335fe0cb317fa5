"""Tests of topics with arbitrary contents: every record becomes a row, with a reason if it is no event."""

from __future__ import annotations

import json
import subprocess
import sys
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
    "an attribute twice": (b"x", [*EVENT, ("ce_id", b"2")]),
    "names of headers that are garbage": (b"x", [("\x00\uffff", b"\xff"), ("", None), ("ce_", b"v")]),
    "JSON of other types": (b'{"specversion": 1, "id": [], "source": {}, "type": null}', [JSON]),
    "JSON that is a number": (b"1e999", [JSON]),
    "JSON with a byte order mark": (b"\xef\xbb\xbf{}", [JSON]),
    "JSON with half a character": (b'{"specversion": "1.0", "id": "\\ud800"}', [JSON]),
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


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_records_of_100_mb_take_memory_for_a_few_of_them(tmp_path: Path) -> None:
    """A task's memory holds a few records: those fetched, their columns and the rows passed on."""
    program = Path(__file__).parents[1] / "spark_hostile_sizes.py"
    size_mb = 100
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "checkpoint"), str(size_mb)],
        capture_output=True,
        text=True,
        timeout=2900,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ACCOUNTS ")]
    assert lines, done.stderr[-5000:]
    accounts = json.loads(lines[0].removeprefix("ACCOUNTS "))
    size = size_mb << 20
    assert accounts["letters"] == [1, size, size, size + 1]
    assert accounts["events"] == [4, 4, size]
    assert sorted(reason[: reason.index(":")] for reason in accounts["reasons"]) == ["D8", "J1", "J19", "K15"]
    assert max(map(len, accounts["reasons"])) < 1_000
    assert accounts["worker_mb"] < 300 + 10 * size_mb
    assert accounts["jvm_mb"] < 4_500
