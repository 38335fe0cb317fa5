"""Kafka's consumer group tool shows the progress of a Spark query with the option `commitOffsets`."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from compat.peers import java, maven_classpath, shared_kafka, until
from penstock import Admin, write_topic
from penstock.spark.source.reader import RowWork
from penstock.spark.source.schema import schema_for
from penstock.spark.source.stream_reader import StreamReader

pytestmark = pytest.mark.compat

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def described(servers: str, group: str) -> dict[int, tuple[int, int, int]]:
    """Return the committed offset, end offset and lag that the tool prints for each partition."""
    arguments = ["--bootstrap-server", servers, "--describe", "--group", group]
    printed = java(maven_classpath("kafka-4.3.0"), TOOL, *arguments, check=True).stdout
    rows = [line.split() for line in printed.splitlines() if line.startswith(group)]
    return {int(row[2]): (int(row[3]), int(row[4]), int(row[5])) for row in rows}


def test_kafkas_own_tool_shows_offsets_and_lag_of_a_query() -> None:
    servers = shared_kafka("4.3.0")
    topic, group = f"followed-{uuid.uuid4().hex[:8]}", f"query-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topic(topic, partitions=2)
        places = pa.array([n % 2 for n in range(100)], pa.int32())
        values = pa.array([b"%d" % n for n in range(100)], pa.binary())
        write_topic(pa.table({"value": values, "partition": places}), topic, servers)
        options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
        options |= {"kafka.group.id": group, "commitOffsets": "true", "maxOffsetsPerTrigger": "60"}
        # What Spark asks of the reader on its driver, for two micro-batches.
        reader = StreamReader(RowWork(options, schema_for(False, None), streaming=True))
        start = reader.initialOffset()
        middle = reader.latestOffset(start, ReadMaxRows(60))
        assert middle[topic] == {"0": 30, "1": 30}
        assert reader.latestOffset(middle, ReadMaxRows(60))[topic] == {"0": 50, "1": 50}
        until(
            lambda: sum(at.offset for at in admin.list_group_offsets(group).values()) >= 60,
            "the offsets are committed",
        )
        reader.stop()
    assert described(servers, group) == {0: (30, 50, 20), 1: (30, 50, 20)}
